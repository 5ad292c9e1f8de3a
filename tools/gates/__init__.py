"""Compare this tree, in Python and compiled, with the pure Python of an older commit: times as fast, in one run."""
