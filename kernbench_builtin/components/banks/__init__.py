"""DRAM banks: when each command may be given, and which bank an address is in.

In: requests of one pseudo-channel. Out: when each is served. `builtin.hbm_ctrl_bank` calls it.
"""
