"""Kernels and files that are written in Triton: `triton` and `triton.language`, as a file imports them.

In go functions that `triton.jit` decorates, grids, and arrays of the host; out come launches of a run, figures and a
result. Who calls: files of kernels, by the names that `modules.imports.replaced` puts in their way, `kb.triton`,
`kernbench triton`, and `kernbench run FILE:KERNEL`.
"""
