"""How a kernel runs on a PE: the bridge to its greenlet, its commands, its queues, and the runner that serves them.

In: a launch. Out: commands to the units of a PE. Control processors call the runner, kernels the language in `tl`.
"""
