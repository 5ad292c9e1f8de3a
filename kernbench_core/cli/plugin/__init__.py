"""`kernbench plugins`: which there are, what each brings, whether it keeps its word, and the beginning of a new one."""
