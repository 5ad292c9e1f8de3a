"""A standard of memories: HBM3 at 4 Gb/s, for `standard: example.hbm3_4000` of a controller with banks."""

from __future__ import annotations

from attrs import evolve

from kernbench_builtin.memory_standards import HBM3_6400, Figure

STANDARD = evolve(
    HBM3_6400,
    channel_bandwidth=Figure("16 GB/s", "32 bit at 4 Gb/s, so a clock of 1 ns; other times are those at 6.4 Gb/s"),
    tCCD_S=Figure("2 ns", "2 clocks, as at 6.4 Gb/s"),
    tCCD_L=Figure("4 ns", "4 clocks, as at 6.4 Gb/s"),
    tWR=Figure("21 ns", "unverified: 20.625 ns at 6.4 Gb/s, in whole clocks"),
)
