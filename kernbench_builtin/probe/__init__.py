"""Measure the machine itself, without a kernel: lone transfers, loaded ones, synthetic traffic, one DRAM controller.

In: a graph. Out: rates and latencies beside what arithmetic says. `kernbench probe` calls it.
"""
