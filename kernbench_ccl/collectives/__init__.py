"""What a collective is: its right result, how nccl counts and rates it, and inputs whose results are exact.

In: the name of a collective, ranks and sizes. Out: expected data and factors. Every other room calls it.
"""
