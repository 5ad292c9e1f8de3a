"""`kernbench triton`: scripts and modules that are written in Triton, on a machine."""
