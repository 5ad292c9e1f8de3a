"""Runs and commands whose answers are kept for the next time: `--cached`, and the command `cache`."""
