"""What is compared: this tree in both its forms, and a checkout of the commit before the core was compiled."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import field, frozen

ROOT = Path(__file__).resolve().parent.parent.parent
#: The last commit without compiled modules, of pure Python.
BEFORE = "cad6103c777ccdfaccecaf432bfcbe811693ba4e"


@frozen
class Gate:
    """How many times as fast as before a job must be in each form; None where nothing is asked.

    `most_s` are the seconds that it may take as it is installed: compiled, and in Python where nothing is compiled.
    """

    pure: float | None
    compiled: float | None
    most_s: float | None = None


@frozen
class Job:
    """A measurement: a program that prints a JSON object with `s`, and what it is given as its first argument.

    `s` is what is compared, in seconds: of processor time where not said otherwise in `label`. What else is in the
    object (`events`, `peak_mib`, ...) is told. `quick` is given instead where tests ask. With `first` nothing is kept
    on disk from one measurement to the next, neither answers nor bytecode.
    """

    label: str
    program: str = field(repr=False)
    order: Any
    quick: Any
    gate: Gate
    rounds: int = 3
    first: bool = False


@frozen
class Side:
    """One tree in one form, and the interpreter that runs it."""

    name: str
    tree: Path
    pure: bool = True

    def measure(self, job: Job, quick: bool, cache: str) -> dict[str, Any]:
        """Run a job in a process of its own; its object."""
        environment = {**os.environ, "PYTHONPATH": str(self.tree), "PYTHONHASHSEED": "0", "KERNBENCH_CACHE": cache}
        for name in ("PYTHONDONTWRITEBYTECODE", "KERNBENCH_PURE"):
            environment.pop(name, None)
        if self.pure:
            environment["KERNBENCH_PURE"] = "1"
        if job.first:
            environment["PYTHONPYCACHEPREFIX"] = f"{cache}-bytecode"
        command = [sys.executable, "-c", job.program, json.dumps(job.quick if quick else job.order)]
        done = subprocess.run(command, cwd=self.tree, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{job.label} in {self.tree} must end well, not with {done.returncode}.")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


@frozen
class Finding:
    """What a job took on each side: the median of the ratios to the side before, and what the last round told."""

    job: Job
    pure: float
    compiled: float | None
    told: Mapping[str, Mapping[str, Any]]

    @property
    def ok(self) -> bool:
        """Whether all gates hold."""
        pairs = ((self.pure, self.job.gate.pure), (self.compiled, self.job.gate.compiled))
        return self.in_time and all(gate is None or ratio is None or ratio >= gate for ratio, gate in pairs)

    @property
    def in_time(self) -> bool:
        """Whether it takes no more seconds than it may."""
        most_s = self.job.gate.most_s
        return most_s is None or self.told["pure" if self.compiled is None else "compiled"]["s"] <= most_s


def compare(job: Job, sides: Sequence[Side], quick: bool) -> Finding:
    """Run a job on the sides in turn, the order turned round each time; the first side is the measure.

    A first round, which is not counted, writes the bytecode of all and fills what they keep on disk. Where there are
    several, a quick comparison has that one and another.
    """
    took: list[dict[str, float]] = []
    told: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        caches = {side.name: f"{folder}/{side.name}" for side in sides}
        for number in range(min(job.rounds, 2) if quick else job.rounds + (job.rounds > 1)):
            for side in sides if number % 2 else reversed(sides):
                kept = f"{caches[side.name]}{number if job.first else ''}"
                told[side.name] = side.measure(job, quick, kept)
            took.append({name: found["s"] for name, found in told.items()})
    counted = took[1:] or took
    ratios = {
        side.name: statistics.median(each[sides[0].name] / each[side.name] for each in counted) for side in sides[1:]
    }
    for side in sides:
        told[side.name]["s"] = statistics.median(each[side.name] for each in counted)
    return Finding(job, ratios["pure"], ratios.get("compiled"), told)


def sides_of(before: Path, compiled: bool) -> tuple[Side, ...]:
    """Return the checkout before, and this tree in Python and, where it is, compiled."""
    return (Side("before", before), Side("pure", ROOT), *((Side("compiled", ROOT, False),) if compiled else ()))


@contextmanager
def checkout(given: Path | None) -> Iterator[Path]:
    """Yield the tree to compare with: the one that is given, or `BEFORE` in a folder that goes when done."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        clone = ["clone", "-q", "--shared", "--no-checkout", str(ROOT), str(tree)]
        for words in (clone, ["-C", str(tree), "checkout", "-q", BEFORE]):
            if subprocess.run(["git", *words], check=False).returncode:
                raise SystemExit(
                    f"git must find commit {BEFORE[:8]} in {ROOT} to compare with; fetch the history (git fetch "
                    "--unshallow), or name a checkout of it by --before TREE."
                )
        yield tree
