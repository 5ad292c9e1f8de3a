"""Measure how often `--shake` calls runs different that are not, and how often it misses a gain that is one.

    python tools/shake_gates.py [--pairs 100] [--gains 40] [--json]

A pair that changes nothing is one case shaken with two seeds: at most one of 100 may be called different. A gain is the
same case on a machine whose PCIe is faster, by so much that the total time falls by twice the usual spread of the case:
none may be missed. Both go by the total time, with the usual 8 runs. The exit code is 1 where a gate is not kept. It
takes ten minutes of a core; fewer pairs and gains are dealt to the cases in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import warnings
from typing import Any

import attrs

import kernbench as kb
from kernbench_builtin.sweeps.shaken import Shaken
from kernbench_core.spread import TimeSpread

CASES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("gemm-naive", "default", {"M": 512, "N": 512, "K": 256}),
    ("gemm-naive", "default", {"M": 256, "N": 256, "K": 256}),
    ("gemm-composite", "default", {"M": 256, "N": 256, "K": 256}),
    ("gemm-naive", "tiny", {"M": 256, "N": 256, "K": 256, "tile_m": 64, "tile_n": 64, "tile_k": 64}),
    ("softmax", "default", {}),
    ("layernorm", "tiny", {}),
    ("attention", "tiny", {}),
    ("mlp", "tiny", {"tokens": 64, "hidden": 256, "ffn": 512}),
    ("vector-add", "default", {"n": 65536}),
    ("vector-add", "tiny", {"n": 16384}),
)
_LATENCY_NS = 300.0
"""Latency of PCIe in all cases; `_faster` takes from it."""


@attrs.define
class Case:
    """A bench on a machine, and the answers that it gave so far; a seed is used once."""

    bench: str
    topology: str
    params: dict[str, Any]
    answers: list[TimeSpread] = attrs.field(factory=list)
    seeds: int = 0

    def shaken(self, latency_ns: float = _LATENCY_NS) -> TimeSpread:
        """Shake the case by the next seed."""
        self.seeds += 1
        answer = self._run(latency_ns, shake=8, shake_seed=self.seeds).part(Shaken)
        assert answer is not None
        total: TimeSpread = answer.total
        return total

    def pair(self) -> bool:
        """Shake it twice; return whether that is called different."""
        one, other = self.shaken(), self.shaken()
        self.answers += [one, other]
        return one.differs_from(other)

    def gain(self) -> tuple[float, bool]:
        """Compare it with a faster machine; return the gain in usual spreads, and whether it is called."""
        while len(self.answers) < 2:
            self.answers.append(self.shaken())
        usual_ns = statistics.median(each.width_ns for each in self.answers)
        at_once_ns = self._total_ns(_LATENCY_NS) - self._total_ns(_LATENCY_NS - 1.0)  # the total has many crossings
        latency_ns = _LATENCY_NS - 2.0 * usual_ns / at_once_ns
        true_ns = self._total_ns(_LATENCY_NS) - self._total_ns(latency_ns)
        before, after = self.shaken(), self.shaken(latency_ns)
        return true_ns / usual_ns, before.differs_from(after) and after.median_ns < before.median_ns

    def _total_ns(self, latency_ns: float) -> float:
        total: float = self._run(latency_ns).total_ns
        return total

    def _run(self, latency_ns: float, **more: Any) -> Any:
        sets = {"host.pcie.latency": f"{latency_ns:.6f} ns"}
        return kb.run(self.bench, self.topology, self.params, data=False, set=sets, **more)

    def __str__(self) -> str:
        sizes = ",".join(f"{name}={value}" for name, value in self.params.items())
        return f"{self.bench} on {self.topology}{' ' if sizes else ''}{sizes}"


def measure(pairs: int, gains: int) -> dict[str, Any]:
    """Carry out pairs and gains, and return what was called, for each case and in all."""
    cases = [Case(*each) for each in CASES]
    rows = []
    for at, case in enumerate(cases):
        of_pairs, of_gains = (count // len(cases) + (at < count % len(cases)) for count in (pairs, gains))
        different = sum(case.pair() for _ in range(of_pairs))
        found = [case.gain() for _ in range(of_gains)]
        widths = [each.width_ns / each.median_ns for each in case.answers] or [0.0]
        rows.append(
            {"case": str(case), "pairs": of_pairs, "different": different, "gains": of_gains,
             "called": sum(called for _, called in found), "spreads": [ratio for ratio, _ in found],
             "width": statistics.median(widths)}
        )  # fmt: skip
        print(_line(rows[-1]), file=sys.stderr, flush=True)
    return {"rows": rows} | {name: sum(row[name] for row in rows) for name in ("pairs", "different", "gains", "called")}


def _line(row: dict[str, Any]) -> str:
    gained = f", gains of {min(row['spreads']):.2f} to {max(row['spreads']):.2f} spreads" if row["spreads"] else ""
    return (
        f"{row['case']}: usual spread {row['width']:.2%}, {row['different']} of {row['pairs']} pairs called different, "
        f"{row['called']} of {row['gains']} gains called{gained}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return 1 where a gate is not kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--gains", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measure(options.pairs, options.gains)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{found['different']} of {found['pairs']} pairs that change nothing are called different")
        print(f"{found['called']} of {found['gains']} gains of twice the spread are called")
    return int(found["different"] * 100 > found["pairs"] or found["called"] < found["gains"])


if __name__ == "__main__":
    sys.exit(main())
