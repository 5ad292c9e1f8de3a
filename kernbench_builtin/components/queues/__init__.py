"""What PEs' queues are made of: their two ends, and what they put on wires.

In: sends and receipts of kernels. Out: messages. `builtin.pe_ipcq` and `builtin.pe_dma` call it.
"""
