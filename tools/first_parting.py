"""Show where two runs of the same program part: the first op, and the first wire or channel, with another order.

    kernbench run gemm-naive --no-data --out a
    kernbench run gemm-naive --no-data --out b --set components.hbm_ctrl.params.channel_latency='31.93 ns'
    python tools/first_parting.py a b [--count 3] [--within 0.1%]

A perturbation of a machine moves times a little everywhere. Where two things that met changed their order, a run goes
another way: that is the place to look at. For each sort of places (units, then channels and wires) this prints the
first places whose order changed, who came first in A and who in B, with PE, op and kernel line, and by how many ns
they were apart; then the first op that began at a time that the perturbation (`--within`, of the time since the first
kernel began) does not explain.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np

from kernbench_builtin.pages.timeline import Timeline, load, op_of


@attrs.frozen
class Parting:
    """A place at which the order changed: when in A, who came at that turn in A and in B, and when each came in A."""

    at_ns: float
    place: str
    in_a: int
    in_b: int
    turn: int


@attrs.frozen
class Run:
    """The spans of a run by the place that they are at, in order of time; whole ops only, not their parts."""

    timeline: Timeline

    def places(self, kinds: tuple[str, ...]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each place of some kinds, with the rows of its spans that are of an op."""
        spans = self.timeline.spans
        for track in self.timeline.tracks:
            if track.kind in kinds and track.node:
                first, last = np.searchsorted(spans.track, (track.id, track.id + 1))
                rows = np.arange(first, last)
                yield track.node, rows[(spans.op[rows] >= 0) & (spans.parent[rows] < 0)]

    def began_ns(self) -> float:
        """Return when the first op began."""
        spans = self.timeline.spans
        return float(spans.start_ns[spans.op >= 0].min())

    def told(self, row: int) -> str:
        """Say whose a span is: PE, op, what it does, line, and when it was."""
        spans = self.timeline.spans
        pe, op = op_of(spans.op[row]) or (-1, -1)
        line = "" if spans.line[row] < 0 else self._line(int(spans.line[row]))
        name = self.timeline.names[spans.name[row]]
        when = f"{spans.start_ns[row]:,.3f} to {spans.end_ns[row]:,.3f} ns"
        return f"PE {pe} op {op} ({name}{line}) at {self.timeline.tracks[spans.track[row]].node}, {when}"

    def _line(self, number: int) -> str:
        return f", {Path(self.timeline.lines[number]).name}: {self.timeline.sources[number].strip()}"


def partings(a: Run, b: Run, kinds: tuple[str, ...]) -> list[Parting]:
    """Return the places of some kinds where the order of ops changed, the earliest first."""
    others = dict(b.places(kinds))
    found = []
    for place, rows in a.places(kinds):
        theirs = others.get(place)
        if theirs is None:
            continue
        ops, their_ops = a.timeline.spans.op[rows], b.timeline.spans.op[theirs]
        shared = min(len(ops), len(their_ops))
        turns = np.flatnonzero(ops[:shared] != their_ops[:shared])
        if len(turns):
            turn = int(turns[0])
            row = int(rows[turn])
            found.append(Parting(float(a.timeline.spans.start_ns[row]), place, row, int(theirs[turn]), turn))
    return sorted(found, key=lambda parting: (parting.at_ns, parting.place))


def overtaker(a: Run, b: Run, parting: Parting) -> int | None:
    """Return the row in A of what came at this turn in B."""
    op, spans = b.timeline.spans.op[parting.in_b], a.timeline.spans
    rows = np.flatnonzero((spans.track == spans.track[parting.in_a]) & (spans.op == op))
    later = rows[rows > parting.in_a]
    return int(later[0]) if len(later) else None


def moved_op(a: Run, b: Run, within: float) -> tuple[int, int] | None:
    """Return the rows, in A and in B, of the first op that began earlier or later than the perturbation explains."""
    began, other_began = a.began_ns(), b.began_ns()
    theirs = {
        (place, int(b.timeline.spans.op[row])): int(row) for place, rows in b.places(("unit",)) for row in rows[::-1]
    }
    found = []
    for place, rows in a.places(("unit",)):
        for row in rows:
            other = theirs.get((place, int(a.timeline.spans.op[row])))
            if other is None:
                continue
            since = float(a.timeline.spans.start_ns[row]) - began
            change = float(b.timeline.spans.start_ns[other]) - other_began - since
            if abs(change) > within * since + 1e-3:
                found.append((since, int(row), other))
    return min(found)[1:] if found else None


def main(arguments: list[str] | None = None) -> int:
    """Print where two saved runs part; return 0 where nothing changed its order, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("a", type=Path)
    parser.add_argument("b", type=Path)
    parser.add_argument("--count", type=int, default=3, help="tell of so many places of each sort")
    parser.add_argument("--within", default="0.1%", help="what the perturbation explains, of the time since the start")
    options = parser.parse_args(arguments)
    a, b = (Run(load(folder / "timeline.npz")) for folder in (options.a, options.b))
    parted = False
    for title, kinds in (("channels and wires", ("channel", "wire")), ("units", ("unit",))):
        found = partings(a, b, kinds)
        parted = parted or bool(found)
        print(f"{title}: {len(found)} places changed their order")
        for parting in found[: options.count]:
            print(f"  {parting.place}, turn {parting.turn}:")
            print(f"    A: {a.told(parting.in_a)}")
            other = overtaker(a, b, parting)
            if other is not None:
                gap = float(a.timeline.spans.start_ns[other]) - parting.at_ns
                print(f"       before {a.told(other)}, {gap:,.3f} ns later")
            print(f"    B: {b.told(parting.in_b)}")
    moved = moved_op(a, b, float(options.within.rstrip("%")) / 100)
    if moved is not None:
        print(f"first op that moved by more than {options.within}:\n  A: {a.told(moved[0])}\n  B: {b.told(moved[1])}")
    return 1 if parted else 0


if __name__ == "__main__":
    sys.exit(main())
