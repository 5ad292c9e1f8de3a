"""`kernbench cache`: what the user's cache holds, one entry of it, and making room; and what runs say of the cache."""
