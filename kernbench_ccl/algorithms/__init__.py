"""The collective algorithms that come with kernbench, one module each."""
