"""The commands that show saved runs and sweeps: pages to look at, and a site of them."""
