"""The front end for kernels that are written in Triton: `triton` and `triton.language`, as a file imports them.

In go functions that `triton.jit` decorates, grids, and arrays of the host; out come launches of a run that
`runs.triton_run` holds open. Who calls: files of kernels, by the names that `imports.replaced` puts in their way.
"""
