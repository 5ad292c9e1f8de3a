"""What to try, and why: rules that read the figures of a run."""
