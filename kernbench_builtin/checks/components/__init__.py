"""The kit for hardware models: each is put into a machine, fed by a driver that fits its kind, and looked at.

`monitor` looks on, `testbench` is where a driver puts the model, `drivers` has those of core, `kit` all checks.
"""
