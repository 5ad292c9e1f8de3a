"""What any process of kernbench keeps, whatever it runs: interrupts, limits, files and the terminal.

In: limits, paths and text. Out: interrupts that arrive, files that are whole or not there. Every room calls it.
"""
