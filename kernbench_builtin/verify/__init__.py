"""Second ways to the results of ops, in plain numpy, by which `--verify-ops` finds wrong ones."""
