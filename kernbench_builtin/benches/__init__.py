"""The built-in benches: one module each, a function `bench(rt, …)`."""
