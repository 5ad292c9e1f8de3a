"""Make each resource of a machine twice as good, and tell where that makes gemm slower: in one run, and in the median.

    python tools/monotony.py [--size 512] [--topology default] [--runs 8] [RESOURCE ...]

A single run may get slower by chance, as who meets whom changes; the median of shaken runs (`--shake`) must not, by
more than the mean of both spreads. The exit code is 1 where it does. Times are those of the kernel phase.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import kernbench as kb
from kernbench_builtin.sweeps.shaken import Shaken
from kernbench_core.spread import TimeSpread

#: What is set, by resource: of the presets' base, each latency halved or each rate or number doubled.
RESOURCES: Mapping[str, Mapping[str, Any]] = {
    "HBM bandwidth": {"components.hbm_ctrl.params.channel_bandwidth": "51.2 GB/s"},
    "HBM latency": {"components.hbm_ctrl.params.channel_latency": "15.95 ns"},
    "HBM controllers": {"components.hbm_ctrl.params.overhead": "5 ns"},
    "NoC bandwidth": {"cube.noc.bandwidth": "256 GB/s"},
    "NoC latency": {"cube.noc.latency": "0.25 ns", "cube.noc.ns_per_mm": "0.05 ns/mm"},
    "routers": {"components.router.params.overhead": "2 ns"},
    "UCIe bandwidth": {"sip.ucie.rate": "64 GT/s"},
    "UCIe latency": {"sip.ucie.adapter_latency": "1 ns", "components.ucie.params.overhead": "2 ns"},
    "PCIe": {"host.pcie.lanes": 32},
    "matrix units": {"components.pe_gemm.params.clock": "2 GHz"},
    "vector units": {"components.pe_math.params.clock": "1.92 GHz"},
    "DMA descriptors": {"components.pe_dma.params.descriptor_overhead": "8 ns"},
    "DMA chunks": {"components.pe_dma.params.overhead": "2 ns"},
    "DMA in flight": {"components.pe_dma.params.servers": 16},
    "scratchpad latency": {"components.pe_tcm.params.latency": "1.5 ns"},
    "dispatch": {"components.pe_cpu.params.dispatch_overhead": "5 ns"},
    "page walks": {"components.pe_mmu.params.walk_time": "50 ns"},
    "page walkers": {"components.pe_mmu.params.walkers": 8},
    "TLB look-ups": {"components.pe_mmu.params.tlb_overhead": "1 ns"},
}


def kernel_times(size: int, topology: str, runs: int, sets: Mapping[str, Any]) -> tuple[float, TimeSpread]:
    """Return how long gemm's kernel takes in the run itself, and in shaken ones."""
    result = kb.run("gemm", topology, dict.fromkeys("MNK", size), data=False, set=dict(sets), shake=runs)
    answer = result.part(Shaken)
    assert answer is not None
    return result.phases["kernel"], answer.phases["kernel"]


def measure(names: Sequence[str], size: int, topology: str, runs: int) -> int:
    """Print a line for each resource; return how many make the median slower by more than chance."""
    own, usual = kernel_times(size, topology, runs, {})
    print(f"gemm of {size}^3 on {topology}: kernel {usual}; in one run {own:,.1f} ns")
    slower = 0
    for name in names:
        one, found = kernel_times(size, topology, runs, RESOURCES[name])
        differs = usual.differs_from(found)
        worse = differs and found.median_ns > usual.median_ns
        slower += worse
        told = "SLOWER" if worse else "faster" if differs else "within the spread"
        change = found.median_ns / usual.median_ns - 1
        print(f"{name:18} one run {one / own - 1:+7.2%}, median {change:+7.2%}, {told}", flush=True)
    return slower


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return 1 where a better machine is slower."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("resources", nargs="*", choices=[[], *RESOURCES], default=[], metavar="RESOURCE")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--topology", default="default")
    parser.add_argument("--runs", type=int, default=8)
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slower = measure(options.resources or list(RESOURCES), options.size, options.topology, options.runs)
    print(f"{slower} of {len(options.resources or RESOURCES)} better machines are slower beyond the spread")
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
