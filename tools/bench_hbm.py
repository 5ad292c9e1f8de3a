"""Compare what `builtin.hbm_ctrl_bank` costs to simulate with that of another checkout: processor time, as ratios.

    python tools/bench_hbm.py TREE [--rounds N] [--part P]

Two processes take turns, pattern by pattern, so that what else the machine does falls on both; of each the shortest
time counts. docs/hbm.md has the figures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Name, pattern, bytes of a request, requests, part that reads, requests under way.
PATTERNS = (
    ("sequential reads, 4 KiB", "sequential", 4096, 256, 1.0, 16),
    ("sequential writes, 4 KiB", "sequential", 4096, 256, 0.0, 16),
    ("sequential, half reads, 4 KiB", "sequential", 4096, 256, 0.5, 16),
    ("random reads, 4 KiB", "random", 4096, 192, 1.0, 16),
    ("random reads, 256 B", "random", 256, 1200, 1.0, 256),
    ("random reads, 32 B", "random", 32, 3000, 1.0, 1024),
    ("random, half reads, 32 B", "random", 32, 3000, 0.5, 1024),
    ("one bank, a row each, 32 B", "onebank", 32, 1500, 1.0, 64),
)

IN_A_PROCESS = """
import gc, sys, time
from kernbench_builtin.probe.dram_driver import DramCase, DramProbe
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core.plugins import load_plugins, own_plugins
model, part = "builtin.hbm_ctrl_bank", float(sys.argv[1])
plugins = load_plugins(own_plugins("builtin"), installed=False)
values, _ = resolve_params(plugins.components.declared(model), {}, str)
probe = DramProbe(Node("hbm_ctrl0", "hbm_ctrl", model, values), plugins.components)
for line in sys.stdin:
    pattern, chunk, requests, reads, outstanding = line.split()
    case = DramCase(pattern, int(chunk), max(1, int(int(requests) * part)), float(reads))
    gc.collect()
    gc.disable()
    began = time.process_time()
    probe.closed_loop(case, int(outstanding))
    print(time.process_time() - began, flush=True)
"""


class Model:
    """The model of a tree, in a process of its own."""

    def __init__(self, tree: Path, part: float) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", IN_A_PROCESS, str(part)],
            env=environment, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def seconds(self, *case: object) -> float:
        """Return the processor time that it takes."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(*case, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def ratios(one: Model, other: Model, rounds: int) -> list[float]:
    """Return how many times as long `one` takes as `other`, for each pattern."""
    best = [[float("inf"), float("inf")] for _ in PATTERNS]
    for _ in range(rounds):
        for shortest, (_, *case) in zip(best, PATTERNS, strict=True):
            for index, model in enumerate((one, other)):
                shortest[index] = min(shortest[index], model.seconds(*case))
    return [first / second for first, second in best]


def main(arguments: list[str] | None = None) -> int:
    """Be the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tree", type=Path, metavar="TREE", help="a checkout whose model is the measure")
    parser.add_argument("--rounds", type=int, default=9, help="how often each pattern is run (9)")
    parser.add_argument("--part", type=float, default=1.0, help="part of the requests (1)")
    options = parser.parse_args(arguments)
    one, other = Model(ROOT, options.part), Model(options.tree.resolve(), options.part)
    try:
        found = ratios(one, other, options.rounds)
    finally:
        one.close()
        other.close()
    print("| pattern | times as long |\n|---|---|")
    for (name, *_), ratio in zip(PATTERNS, found, strict=True):
        print(f"| {name} | {ratio:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
