"""Minimal framework: contracts, configuration, topology, engine, kernels, two phases and the command-line shell."""
