"""The language of kernels, `tl`: Triton's names beside `ref`, `composite`, `wait`, `send`, `recv` and `free`.

In: what a kernel's line says. Out: tensors, pointers and commands for the dispatcher. Kernels call it, through the
runner.
"""
