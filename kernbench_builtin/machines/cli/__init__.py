"""The commands that list and show what machines are made of, and what runs on them."""
