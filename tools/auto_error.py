"""Compare what `auto` takes on networks that are in no table with the best of all algorithms, every one simulated.

    python tools/auto_error.py                          # 12 points of each of ten networks: some hours of one processor
    python tools/auto_error.py --points 3 --seed 7 --network 4 -j 1
    python tools/auto_error.py --largest 64M --points 1     # with sizes whose simulations take minutes

The ten networks have links and numbers of ranks that the package's table has not, one of them a shape of the example
plug-in. Points are drawn by the seed: a collective with algorithms to choose from, and a size, evenly over its
logarithm. Printed are for each point what `auto` takes and how much longer than the best that is, what it took before
it simulated (the nearest measurement, else a rule), and how many simulations it needs of how many; at the end the worst
and the mean. Times are those of `kernbench ccl tune`, kept in the user's cache. The exit code is 1 when `auto` takes
more than 10 % longer than the best anywhere.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from random import Random

from attrs import evolve, frozen

from kernbench_core.plugins import own_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "plugins_example"))

from kernbench_ccl.measure import Setup
from kernbench_ccl.measure.machine_tuner import TunedCell
from kernbench_ccl.measure.sweep import counts_of, size_of
from kernbench_ccl.measure.trials import MOST_EVENTS, AlgorithmTrials
from kernbench_ccl.plan.trial_choice import choose_by_trial
from kernbench_ccl.plan.tuning import shipped
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.units import format_bytes

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all")
SOURCES = (*own_plugins(), "example = kernbench_example.plugin")
SMALLEST, LARGEST = 8, 4 << 20
TOLERANCE = 1.10


@frozen
class UnmeasuredNetwork:
    """A network of SIPs as those of a topology: shape, ranks, GB/s and ns of a link."""

    shape: str
    ranks: int
    bandwidth: float
    latency: float
    topology: str = "default"

    @property
    def sets(self) -> tuple[str, ...]:
        """The settings that make it."""
        network = "system.network"
        return (
            f"system.sips={self.ranks}", f"{network}.topology={self.shape}",
            f"{network}.bandwidth={self.bandwidth:g}GB/s", f"{network}.latency={self.latency:g}ns",
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.shape} of {self.ranks}, {self.bandwidth:g} GB/s, {self.latency:g} ns"


NETWORKS = (
    UnmeasuredNetwork("ring", 5, 40, 1500),
    UnmeasuredNetwork("ring", 12, 200, 100),
    UnmeasuredNetwork("mesh_2d", 9, 25, 300),
    UnmeasuredNetwork("mesh_2d", 10, 400, 1000),
    UnmeasuredNetwork("torus_2d", 12, 50, 2000),
    UnmeasuredNetwork("torus_2d", 16, 150, 250),
    UnmeasuredNetwork("fully_connected", 5, 20, 800),
    UnmeasuredNetwork("fully_connected", 7, 300, 200),
    UnmeasuredNetwork("switch", 10, 64, 700),
    UnmeasuredNetwork("example.hypercube", 8, 80, 400),
)


@frozen
class ChoicePoint:
    """A collective of a size in bytes on a network."""

    network: UnmeasuredNetwork
    collective: str
    asked: int


@frozen
class ChoiceError:
    """What `auto` takes at a point and took before, over the best; how many simulations it needs of how many."""

    point: ChoicePoint
    size: int
    best: str
    auto: str
    ratio: float
    before: str
    ratio_before: float
    simulations: int
    able: int

    def __str__(self) -> str:
        mark = "" if self.ratio <= TOLERANCE else "  TOO SLOW"
        return (
            f"{self.point.network}, {self.point.collective} of {format_bytes(self.size)}: {self.auto} {self.ratio:.3f} "
            f"x {self.best}, {self.simulations} simulations of {self.able}; before {self.before} "
            f"{self.ratio_before:.3f} x{mark}"
        )


def points(networks: Sequence[UnmeasuredNetwork], number: int, seed: int, largest: int = LARGEST) -> list[ChoicePoint]:
    """Draw points of each network."""
    drawn = Random(seed)
    return [
        ChoicePoint(network, drawn.choice(COLLECTIVES), int(SMALLEST * (largest / SMALLEST) ** drawn.random()))
        for network in networks
        for _ in range(number)
    ]


@lru_cache(maxsize=1)
def plugins() -> Plugins:
    """Load the plug-ins of the tree, the example among them."""
    return load_plugins(list(SOURCES), installed=False)


def trials_of(point: ChoicePoint) -> AlgorithmTrials:
    """Return what times the algorithms of a point."""
    setup = Setup(point.network.topology, None, point.network.sets, checked=False)
    return TunedCell(point.collective, setup, "f16").trials(plugins())


def error_at(point: ChoicePoint) -> ChoiceError:
    """Simulate every algorithm, and see what `auto` takes."""
    trials = trials_of(point)
    kind, network = trials.call.kind, trials.machine.network
    size = size_of(counts_of([point.asked], kind, "f16", trials.world)[0], kind, "f16", trials.world)
    able = tuple(trials.able)
    times = {name: time.ns for name in able if (time := trials.time(name, size)) is not None}
    best = min(times, key=lambda name: (times[name], name))
    chosen = choose_by_trial(able, size, evolve(trials, most_events=MOST_EVENTS))
    before = shipped().choose(point.collective, network.name, network.world, size, able)
    assert chosen.name is not None and before is not None
    return ChoiceError(
        point, size, best, chosen.name, times[chosen.name] / times[best], before, times[before] / times[best],
        len(chosen.tried), len(able),
    )  # fmt: skip


def errors(asked: Sequence[ChoicePoint], workers: int) -> Iterator[ChoiceError]:
    """Yield the error of each point, in order."""
    if workers == 1:
        yield from map(error_at, asked)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(error_at, asked)


def summary(found: Sequence[ChoiceError]) -> str:
    """Say the worst and the mean, before and now."""
    now, before = [each.ratio for each in found], [each.ratio_before for each in found]
    simulations, able = sum(each.simulations for each in found), sum(each.able for each in found)
    return (
        f"{len(found)} points: auto takes at most {max(now):.3f} x the best, {sum(now) / len(now):.3f} x in the mean, "
        f"by {simulations} simulations where there are {able} algorithms; before at most {max(before):.3f} x, "
        f"{sum(before) / len(before):.3f} x in the mean, more than {TOLERANCE} x at "
        f"{sum(ratio > TOLERANCE for ratio in before)}"
    )


def _bytes(text: str) -> int:
    from kernbench_ccl.cli.group import read_size

    return read_size("--largest", text)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=12, metavar="N", help="of each network (12)")
    parser.add_argument("--seed", type=int, default=0, help="what draws them (0)")
    parser.add_argument("--network", type=int, action="append", metavar="I", help="0 to 9; several times (all)")
    parser.add_argument("--largest", type=_bytes, default=LARGEST, metavar="SIZE", help="bytes (4M)")
    parser.add_argument("-j", type=int, default=2, help="processes (2)")
    given = parser.parse_args(argv)
    found = []
    chosen = [NETWORKS[i] for i in given.network] if given.network else list(NETWORKS)
    for error in errors(points(chosen, given.points, given.seed, given.largest), given.j):
        print(error, flush=True)
        found.append(error)
    print(summary(found))
    return 0 if all(error.ratio <= TOLERANCE for error in found) else 1


if __name__ == "__main__":
    sys.exit(main())
