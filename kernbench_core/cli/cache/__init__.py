"""`kernbench cache`: what is kept, and making room."""
