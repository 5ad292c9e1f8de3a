"""`kernbench plugins`: which there are, and what each brings; and the options that say which are wanted."""
