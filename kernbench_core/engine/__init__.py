"""What runs a graph: components and wires are built, events happen within limits, faults become sentences.

In: a graph and its components. Out: events in order, and the lower bounds to hold them against. The host's session
calls it.
"""
