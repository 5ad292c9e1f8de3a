"""Public systems: presets that were fitted to published measurements, against each published row.

The rows lie beside `kernbench calibrate` with their sources; what they say of a real machine shares nothing with its
models. Rows measured in place are left out: they are as far off as those beside them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from kernbench_builtin.calibrate import SYSTEMS, compare_system
from kernbench_builtin.calibrate.systems import write_known_errors
from kernbench_core.plugins import Plugins, load_plugins

ABOUT = SimpleNamespace(
    title="Public systems",
    reference="What was published of three systems: all-reduces of eight A100 on the NVSwitches of one node, by "
    "nccl-tests (Oracle Japan); all-gathers over four devices of TPU7x chips in a 2x2 torus (Google); latency and "
    "stream of the two HBM2 stacks of an Alveo U280 (Shuhai, FCCM 2020). docs/calibration.md has the sources.",
    equal="The figures on paper: ranks, networks, sizes, channels, the timings of the standard. Bandwidth and "
    "latency of a link of the first two, and the controller's overhead of the last, were fitted to these rows.",
    differs="The first two have links alone of their system: dies on which nothing binds, kernbench's own ring "
    "and torus, no launches, no protocols of a library. The last has no ports of an FPGA, and refreshes as a "
    "smaller die.",
    direction="Too fast where a library changes protocols and channels: by 12 to 65 % for all-reduces of 128 KiB to "
    "128 MiB on the A100, the most at 2 to 8 MiB, which one bandwidth and one latency cannot describe. Elsewhere "
    "within 8.1 % either way; the TPU's 8 MiB 6 % too fast, as a launch is before the data and a latency hides "
    "behind them; the HBM's stream 4 % too fast.",
    cost="20 s for the A100, 5 s for the TPU, 2 s for the HBM; sizes above 32 MiB are continued from there.",
    within=0.67,
)
"""What the page says of it."""


def compare(plugins: Plugins | None = None) -> list[tuple[str, float, float, str, float]]:
    """Simulate every published row; times in us."""
    found = load_plugins() if plugins is None else plugins
    return [
        (f"{system.name}: {row.case}", row.simulated / 1e3, row.published / 1e3, "us", row.error)
        for system in SYSTEMS
        for row in compare_system(system, found).rows
        if not row.case.endswith(", in place")
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["--known"]:  # in the commit that says which model changed, and why
        write_known_errors([compare_system(system, load_plugins()) for system in SYSTEMS])
    for case, ours, right, unit, error in compare():
        print(f"{case:60} {ours:12.6g} {right:12.6g} {unit} {error:+8.2%}")
