"""`kernbench sweep`: what it is asked for, and the rows that it prints."""
