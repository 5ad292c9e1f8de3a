"""Check closed forms of collective algorithms: each against the idealised machine, on every network it has one for.

    python tools/check_forms.py                             # all shipped algorithms, 2 to 32 ranks: about an hour
    python tools/check_forms.py --ranks 2-9,16 --only direct --only ring:all_reduce:switch
    python tools/check_forms.py --ranks 64 --size 64K --only direct:all_reduce -j 2 --json
    python tools/check_forms.py --ranks 2-9 --set system.network.bandwidth=10GB/s --set system.network.latency=100ns

Step by step a time must be within 1 % of the form, pipelined never above the form of that by more. PEs of a rank are
those that "auto" takes. Printed are the worst cases of each algorithm and network as soon as all of these are done, and
at the end where there is no form; a terminal is told how far it has come. The exit code is 1 when a time is out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import groupby, islice
from multiprocessing import get_context
from pathlib import Path

from attrs import asdict, evolve, frozen

from kernbench_ccl.plugin import ALGORITHMS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_ccl.catalogue import Algorithm, Catalogue
from kernbench_ccl.contract import NETWORKS
from kernbench_ccl.measure import Setup, TimedMachine, machine_of
from kernbench_ccl.measure.measurement import closed_form, measure
from kernbench_ccl.measure.sweep import counts_of, size_of
from kernbench_ccl.measure.timed_run import TimedCase
from kernbench_ccl.plan import load_ccl
from kernbench_core.errors import KernbenchError
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.units import format_bytes, format_time, parse_quantity

TOPOLOGY = "tiny"
DTYPE = "f16"
TOLERANCE = 0.01
SIZE = 256 << 10
"""Bytes as nccl-tests counts them: of 32 ranks messages of a few chunks, of two many messages."""
SIZES = (16 << 10, SIZE, 1 << 20)
"""What few ranks are run with: what waits for latency more, and what waits for bandwidth more."""
RANKS = "2-32"
FEW = (*range(2, 10), 16)
PER_PE = 16
"""What sizes are divided by where each PE brings a vector."""


@frozen(order=True)
class Case:
    """An algorithm (by its registered name) on a network of so many ranks, with so many bytes, pipelined or not.

    `sets` are settings of the machine.
    """

    algorithm: str
    network: str
    world: int
    size: int
    pipeline: bool
    sets: tuple[str, ...] = ()


@frozen
class Row:
    """What a case took, its closed form, and the lower bound; in ns."""

    case: Case
    time_ns: float
    formula_ns: float
    bound_ns: float

    @property
    def error(self) -> float:
        """The time over the form, less one."""
        return self.time_ns / self.formula_ns - 1

    @property
    def out(self) -> str | None:
        """What is wrong, in a word or two, or None."""
        if self.time_ns < self.bound_ns * (1 - 1e-12):
            return "below its bound"
        if self.formula_ns < self.bound_ns * (1 - 1e-12):
            return "a form below the bound"
        if self.error > TOLERANCE:
            return "above its form"
        return "below its form" if not self.case.pipeline and self.error < -TOLERANCE else None

    def to_json(self) -> dict[str, object]:
        """Return plain JSON types."""
        return {**asdict(self.case), "time_ns": self.time_ns, "formula_ns": self.formula_ns, "error": self.error,
                "out": self.out}  # fmt: skip


@cache
def plugins() -> Plugins:
    """Load the plug-ins once a process."""
    return load_plugins()


@cache
def machine(network: str, world: int, sets: tuple[str, ...] = ()) -> TimedMachine:
    """Compile the idealised machine."""
    sets = (f"system.sips={world}", f"system.network.topology={network}", *sets)
    return machine_of(Setup(TOPOLOGY, None, sets, idealised=True, checked=False), plugins())


def opened_by_name(name: str) -> Algorithm:
    """Open an algorithm by its registered name."""
    catalogue = Catalogue.of(plugins())
    return catalogue.open(name, catalogue.collective_of(name))


def opened(case: Case) -> Algorithm:
    """Open the algorithm of a case."""
    return opened_by_name(case.algorithm)


def timed(case: Case) -> TimedCase:
    """Return the run of a case."""
    kind, settings = opened(case).kind, load_ccl(catalogue=Catalogue.of(plugins())).settings(case.algorithm)
    [count] = counts_of([case.size], kind, DTYPE, case.world)
    return TimedCase(
        kind.name, case.algorithm, DTYPE, count, size_of(count, kind, DTYPE, case.world),
        "sum" if kind.reduces else None, 0, False, evolve(settings, pipeline=case.pipeline),
        opened(case).contributors[0],
    )  # fmt: skip


def form(case: Case) -> float | str:
    """Return the closed form in ns, or why there is none."""
    return closed_form(timed(case), machine(case.network, case.world, case.sets), opened(case))


def check(case: Case) -> Row:
    """Run a case."""
    on, asked, formula = machine(case.network, case.world, case.sets), timed(case), form(case)
    assert not isinstance(formula, str)
    measured = measure(asked, on, plugins(), checked=False)
    return Row(case, measured.time_ns, formula, on.bound(opened(case).kind, asked.nbytes, asked.root).ns)


Without = dict[tuple[str, str, str], list[int]]
"""Numbers of ranks by algorithm, network, and why there is no closed form."""


class Terminal:
    """Tell a terminal behind stderr, in one line that is written over, how far the work has come; nobody else."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, text: str = "") -> None:
        """Write over the line; without a text, take it away."""
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


def cases(
    ranks: Sequence[int],
    sizes: Sequence[int],
    wanted: Sequence[str],
    terminal: Terminal | None = None,
    sets: Sequence[str] = (),
) -> tuple[list[Case], Without]:
    """Return every case that has a closed form, and what has none.

    Without `sizes` few ranks have several, and others one. `wanted` are METHOD[:COLLECTIVE[:NETWORK]]; what an
    algorithm refuses is in neither.
    """
    found: list[Case] = []
    without: Without = {}
    for name in sorted(name for name in plugins().of(ALGORITHMS) if name.startswith("ccl.")):
        for network in NETWORKS:
            if wanted and not any(_fits(name, network, one) for one in wanted):
                continue
            if terminal is not None:
                terminal.show(f"looking for cases: {name} on {network}")
            for world in ranks:
                one = Case(name, network, world, SIZE, False, tuple(sets))
                if _refused(one):
                    continue
                if isinstance(formula := form(one), str):
                    without.setdefault((name, network, formula), []).append(world)
                    continue
                some = sizes or (SIZES if world in FEW else (SIZE,))
                every = (evolve(one, size=n, pipeline=p) for n in _sizes(name, some) for p in (False, True))
                found += [each for each in every if not isinstance(form(each), str)]
    return found, without


def _sizes(name: str, sizes: Sequence[int]) -> Sequence[int]:
    """Return sizes for an algorithm: a barrier has none, and of vectors of PEs there are several to a rank."""
    if name.endswith("_barrier"):
        return (2,)
    return [max(2, size // PER_PE) for size in sizes] if "pe" in opened_by_name(name).contributors else sizes


def _fits(name: str, network: str, wanted: str) -> bool:
    method, _, rest = wanted.partition(":")
    collective, _, where = rest.partition(":")
    own = Catalogue.of(plugins()).collective_of(name)
    called = name.removeprefix("ccl.").removesuffix(f"_{own}")
    return (called, collective or own, where or network) == (method, own, network)


def _refused(case: Case) -> bool:
    try:
        on = machine(case.network, case.world, case.sets)
    except KernbenchError:
        return True
    algorithm = opened(case)
    return algorithm.refusal(on.network, contributors=algorithm.contributors[0]) is not None


def _kind(case: Case) -> tuple[str, str, bool]:
    return case.algorithm, case.network, case.pipeline


def ordered(asked: Sequence[Case]) -> list[Case]:
    """Return cases in groups of an algorithm, a network and a way of running; groups and cases, the largest first."""

    def work(case: Case) -> int:
        return case.world * case.world * case.size

    most: dict[tuple[str, str, bool], int] = {}
    for case in asked:
        most[_kind(case)] = max(most.get(_kind(case), 0), work(case))
    return sorted(asked, key=lambda case: (-most[_kind(case)], _kind(case), -work(case)))


def checked(order: Sequence[Case], workers: int) -> Iterator[Row]:
    """Run cases, and yield them in their order as they are done."""
    if workers == 1:
        yield from map(check, order)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(check, order)


def worst(rows: Sequence[Row]) -> str:
    """Return the line for an algorithm, a network and a way of running: of all cases the one farthest from the form."""
    name, network, pipeline = _kind(rows[0].case)
    bad = [row for row in rows if row.out]
    far = max(bad or rows, key=lambda row: row.error if pipeline else abs(row.error))
    return (
        f"{name:36} {network:15} {'pipelined' if pipeline else 'steps':9} {len(rows):4} cases "
        f"{far.error:+8.2%}  {far.case.world:2} ranks {format_bytes(far.case.size):>8} "
        f"{format_time(far.time_ns):>10}, form {format_time(far.formula_ns):>10}"
        + (f"  {len(bad)} OUT: {far.out}" if bad else "")
    )


def printed(asked: Sequence[Case], workers: int, terminal: Terminal, *, as_json: bool) -> list[Row]:
    """Run cases, and print them as they come: each as JSON, or a line for each group of them."""
    rows: list[Row] = []
    order = ordered(asked)
    running = checked(order, workers)
    terminal.show(f"0 of {len(order)} cases")
    for _, group in groupby(order, _kind):
        several = []
        for row in islice(running, len(list(group))):
            several.append(row)
            rows.append(row)
            terminal.show()
            if as_json:
                print(json.dumps(row.to_json()), flush=True)
            terminal.show(f"{len(rows)} of {len(order)} cases, {row.case.algorithm} on {row.case.network}")
        terminal.show()
        if not as_json:
            print(worst(several), flush=True)
    return rows


def numbers(text: str) -> list[int]:
    """Read "2-9,16"."""
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        if low.isdecimal() and (high or low).isdecimal():
            found.update(range(int(low), int(high or low) + 1))
    if not found or min(found) < 2:
        raise argparse.ArgumentTypeError(f"must be numbers of at least 2, as 2-9,16, not {text!r}")
    return sorted(found)


def nbytes(text: str) -> int:
    """Read a size, as 64K."""
    try:
        return int(parse_quantity(text if text[-1:] in "0123456789B" else f"{text}iB", "size"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a size, as 64K, not {text!r}") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Check, print the worst cases, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=numbers, default=numbers(RANKS), metavar="N,N-N", help=f"({RANKS})")
    sizes = "bytes; several times (256K, and 16K and 1M of 2-9,16 ranks)"
    parser.add_argument("--size", action="append", type=nbytes, help=sizes)
    parser.add_argument("--only", action="append", default=[], metavar="METHOD[:COLLECTIVE[:NETWORK]]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the machine, as its links")
    parser.add_argument("-j", type=int, default=2, help="processes (2)")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each case, as it is done")
    given = parser.parse_args(argv)
    terminal = Terminal()
    asked, without = cases(given.ranks, given.size or (), given.only, terminal, given.set)
    terminal.show()
    if not asked and not without:
        parser.error(f"--only must name an algorithm of these ranks, as direct:all_reduce:ring, not {given.only}")
    rows = printed(asked, given.j, terminal, as_json=given.json)
    if not given.json:
        for (name, network, why), ranks in without.items():
            print(f"no form: {name} on {network} of {', '.join(map(str, ranks))} ranks: {why}")
    bad = sum(row.out is not None for row in rows)
    print(f"{len(rows)} cases, {bad} out of {TOLERANCE:.0%}", file=sys.stderr)
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
