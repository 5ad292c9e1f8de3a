"""Benches that use collectives: rank programs with kernels and `kernbench_ccl.distributed`."""
