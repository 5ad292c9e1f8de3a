"""Who serves the messages of `run` models: workers, in the place of SimPy processes.

In: messages, and what a model's generator yields. Out: services, one after another. Components are made of it.
"""
