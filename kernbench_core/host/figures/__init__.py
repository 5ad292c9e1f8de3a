"""The figures of a run beside its total time: of each launch, of each link.

In: totals that wires, units and the fabric keep. Out: frozen figures, and columns of numbers. The session asks.
"""
