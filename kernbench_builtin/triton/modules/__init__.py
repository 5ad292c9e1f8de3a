"""What `import triton` gives a file beside the language, and torch's CUDA where a script asks for it."""
