"""Composites: one command for a whole tiled pipeline, and the names by which kernels give it."""
