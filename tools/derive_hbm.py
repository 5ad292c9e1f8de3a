"""Derive the efficiency of `builtin.hbm_ctrl` from `builtin.hbm_ctrl_bank`, and say how far the two are apart.

    python tools/derive_hbm.py

Both models are driven alone, with their default parameters. The efficiency is what the bank model sustains for
sequential reads, as a part of the peak; the factors are by how much the fast model is too fast for other patterns.
"""

from __future__ import annotations

import sys
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_builtin.probe.dram_driver import DramCase, DramProbe
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core.plugins import Plugins, load_plugins

FAST, BANK = "builtin.hbm_ctrl", "builtin.hbm_ctrl_bank"
#: Requests under way: enough to keep every queue of the bank model full.
OUTSTANDING = {4096: 16}
MANY = 1024


@attrs.frozen
class Row:
    """One pattern: GB/s of the fast model and of the bank model."""

    name: str
    fast: float
    bank: float

    @property
    def factor(self) -> float:
        """How many times too fast the fast model is."""
        return self.fast / self.bank


def probe(plugins: Plugins, impl: str, **params: object) -> DramProbe:
    """Return a probe of one model with default parameters but for `params`."""
    values, problems = resolve_params(plugins.components.declared(impl), params, lambda name: f"{impl}.{name}")
    assert not problems, problems
    return DramProbe(Node("hbm_ctrl0", "hbm_ctrl", impl, values), plugins.components)


def efficiency(plugins: Plugins, requests: int = 4096, **params: object) -> float:
    """Return the part of the peak that the bank model sustains for sequential reads of 4 KiB."""
    case = DramCase("sequential", 4096, requests)
    return probe(plugins, BANK, **params).closed_loop(case, OUTSTANDING[4096]).share


def rows(plugins: Plugins) -> list[Row]:
    """Measure both models for several patterns."""
    bank, fast = probe(plugins, BANK), probe(plugins, FAST)
    cases = [
        ("sequential reads, 4 KiB", DramCase("sequential", 4096, 4096)),
        ("sequential writes, 4 KiB", DramCase("sequential", 4096, 4096, 0.0)),
        ("sequential, half reads, 4 KiB", DramCase("sequential", 4096, 4096, 0.5)),
        ("random reads, 4 KiB", DramCase("random", 4096, 2048)),
        ("random reads, 256 B", DramCase("random", 256, 16384)),
        ("random reads, 32 B", DramCase("random", 32, 32768)),
        ("random, half reads, 32 B", DramCase("random", 32, 32768, 0.5)),
    ]
    found = []
    for name, case in cases:
        outstanding = OUTSTANDING.get(case.chunk, MANY)
        both = [each.closed_loop(case, outstanding).achieved for each in (fast, bank)]
        found.append(Row(name, *both))
    # the rows of one bank, whose addresses only the bank model knows; the fast model serves them from one channel
    one = bank.closed_loop(DramCase("onebank", 32, 4096), 64).achieved
    rate = fast.geometry.channel_bandwidth * fast.geometry.sustained
    found.append(Row("one bank, a row each, 32 B", rate, one))
    return found


def main() -> None:
    """Print the efficiency and the table."""
    plugins = load_plugins()
    print(f"efficiency of {FAST}: {efficiency(plugins):.3f}")
    print(f"without refresh: {efficiency(plugins, tREFI='0 ns'):.3f}\n")
    print(f"| pattern | {FAST}, GB/s | {BANK}, GB/s | too fast by |\n|---|---|---|---|")
    for row in rows(plugins):
        print(f"| {row.name} | {row.fast:.1f} | {row.bank:.1f} | {row.factor:.2f} |")


if __name__ == "__main__":
    main()
