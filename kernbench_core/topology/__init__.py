"""From configuration to a machine: what a topology file says, checked as a whole, laid out and wired.

In: YAML and overrides, and the shapes of networks that are registered. Out: a `Machine`, which is a graph of nodes and
edges with its design; the routes through it and the owner of each address. The engine, the host and the command line
call it.
"""
