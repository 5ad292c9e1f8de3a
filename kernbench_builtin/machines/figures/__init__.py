"""The figures of a run beside its total time: of each launch, of each link, of lines of kernels, of the op log.

In: totals that wires, units and the fabric keep. Out: frozen figures, and columns of numbers, in every result.
"""
