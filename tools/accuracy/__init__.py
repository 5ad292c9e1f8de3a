"""Comparisons of kernbench with what shares no code with it, a module for each."""
