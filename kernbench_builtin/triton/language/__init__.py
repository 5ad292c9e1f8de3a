"""What kernels written in Triton have beside the `tl` of kernbench's own: one file for each family of names."""
