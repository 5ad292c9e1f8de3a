"""Kernels as files in Triton have them, family by family.

`kernels/` has files that import `triton`; what they compute is held against formulas in float64, and a fault that is
planted in each must be found.
"""
