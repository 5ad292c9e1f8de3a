"""The page of a sweep: its points as table, parallel coordinates and scatter, and what each parameter moves."""
