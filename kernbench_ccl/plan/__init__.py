"""Which algorithm serves a call, and on which PEs and queues it runs.

In: `ccl.yaml`, measured tables, a call. Out: a launch. Distributed programs and measurements call it.
"""
