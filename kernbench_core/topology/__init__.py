"""From configuration to a graph: what a topology file says, checked as a whole, laid out and wired.

In: YAML and overrides. Out: a graph of nodes and edges, the routes through it and the owner of each address. The
engine, the host and the command line call it.
"""
