"""Where tensors live: device memory, allocators, the page table, placement, scratchpads, and the hazards of their use.

In: shapes, placements and uses. Out: addresses, and the uses that nothing orders. Kernels and host programs call it.
"""
