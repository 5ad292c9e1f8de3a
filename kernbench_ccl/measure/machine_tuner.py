"""Measure every algorithm of collectives on a machine, for numbers of ranks and sizes: the table that `auto` goes by.

A measurement is one short simulation, as `auto` makes them, and is kept in the user's cache as soon as it has ended: a
command that was stopped, by whatever means, goes on where it was when it is called again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import lru_cache, partial
from typing import Final

from attrs import evolve, field, frozen

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.measure.choice import Chooser, Question
from kernbench_ccl.measure.machine import Setup, machine_of
from kernbench_ccl.measure.sweep import counts_of, size_of
from kernbench_ccl.measure.trials import AlgorithmTrials
from kernbench_ccl.plan import load_ccl
from kernbench_ccl.plan.candidates import changed_settings
from kernbench_ccl.plan.machine_tuning import MeasuredTimes
from kernbench_ccl.prove import Wanted, check_all
from kernbench_ccl.prove.processes import process_pool
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.spread import Contest, TimeSpread, contest

__tracebackhide__ = True

MOST_EVENTS: Final = 100_000_000
"""The events after which a simulation is stopped: one of 64 MiB and 16 ranks takes a quarter of that."""

_LOOK_S = 0.25
_SMALL = 1 << 18
"""What the fixed cost of a simulation counts as, in bytes."""

Done = Callable[[int, int, float], None]
"""Told how many measurements of how many have ended, and which part of the work is done."""


@frozen
class TunedCell:
    """What is measured together: a collective on a machine with a number of ranks; `config` is a ccl.yaml."""

    collective: str
    setup: Setup
    dtype: str
    config: str | None = None

    def trials(self, plugins: Plugins) -> AlgorithmTrials:
        """Return what times its algorithms; UsageError for a machine of one SIP."""
        catalogue = Catalogue.of(plugins)
        machine = machine_of(self.setup, plugins)
        if machine.world < 2:
            raise UsageError(
                "a collective must have at least 2 ranks, and this topology has 1 SIP; give --ranks, or another "
                "--topology."
            )
        kind = catalogue.collectives[self.collective]
        question = Question(kind, self.dtype, "sum" if kind.reduces else None, 0)
        chooser = Chooser(question, machine, load_ccl(self.config, catalogue=catalogue), plugins)
        return evolve(chooser.trials, most_events=MOST_EVENTS)


@frozen
class Measurement:
    """One simulation of a cell, of bytes as nccl-tests counts them."""

    cell: TunedCell
    algorithm: str
    nbytes: int

    def run(self, trials: AlgorithmTrials) -> float | str:
        """Return its time in ns, or the sentence with which it ended."""
        found = trials.time(self.algorithm, self.nbytes)
        return trials.failures[self.algorithm] if found is None else found.ns


SpreadOf = Callable[[TunedCell, AlgorithmTrials, int, str], TimeSpread]
"""Returns what the time of an algorithm, by its registered name, comes to at a size in bytes."""


@lru_cache(maxsize=4)
def _prepared(cell: TunedCell) -> AlgorithmTrials:
    """Compile the machine of a cell once in a worker process."""
    return cell.trials(load_plugins())


def _run_remotely(asked: Measurement) -> float | str:
    return asked.run(_prepared(asked.cell))


@frozen(eq=False)
class MachineTuner:
    """Measures cells at sizes in bytes; `failures` has the sentence of each measurement that did not end well."""

    cells: Sequence[TunedCell]
    sizes: Sequence[int]
    plugins: Plugins
    workers: int = 2
    done: Done = lambda *_: None
    spread_of: SpreadOf | None = None
    """What shakes an algorithm of a cell at a size; None where single times are compared."""
    contests: dict[tuple[str, int, int], Contest] = field(factory=dict, init=False)
    """How the leaders of a (collective, ranks, bytes) did then."""
    failures: dict[Measurement, str] = field(factory=dict, init=False)
    wrong: dict[tuple[str, int], str] = field(factory=dict, init=False)
    """What is wrong with algorithms of plug-ins, by their registered names and the number of ranks."""

    def run(self) -> Iterator[MeasuredTimes]:
        """Yield what was measured of each cell that has algorithms to choose from, in order."""
        asked = [(cell, trials, self._measurements(cell, trials)) for cell, trials in self._prepared()]
        every = [each for _, _, several in asked for each in several]
        found: dict[Measurement, float | str] = {}
        ended = self._ended(every, {cell: trials for cell, trials, _ in asked})
        for cell, trials, several in asked:
            while not all(each in found for each in several):
                each, end = next(ended)
                found[each] = end
                self._report_progress(found, every)
            rows = self._rows(several, found)
            if rows:
                rows = self._shaken(cell, trials, rows)
                changed = changed_settings({name: settings for name, (_, settings) in trials.able.items()})
                yield MeasuredTimes(cell.collective, trials.machine.network.name, trials.world, rows, changed)

    def _prepared(self) -> Iterator[tuple[TunedCell, AlgorithmTrials]]:
        for cell in self.cells:
            trials = cell.trials(self.plugins)
            able = {name: each for name, each in trials.able.items() if self._right(name, trials)}
            trials = evolve(trials, able=able)
            if len(trials.able) > 1:
                yield cell, trials

    def _right(self, name: str, trials: AlgorithmTrials) -> bool:
        """Prove an algorithm of a plug-in: a wrong one may well be the fastest. Tests prove our own."""
        if name.startswith("ccl."):
            return True
        algorithm, settings = trials.able[name]
        network = settings.topology or trials.machine.network.name
        wanted = Wanted(ranks=[trials.world], networks=[network], registry=self.plugins.networks)
        faults = [fault for _, found in check_all([algorithm], wanted) for each in found for fault in each.faults]
        if faults:
            self.wrong[name, trials.world] = faults[0].sentence
        return not faults

    def _measurements(self, cell: TunedCell, trials: AlgorithmTrials) -> list[Measurement]:
        kind = trials.call.kind
        counts = counts_of(self.sizes, kind, cell.dtype, trials.world)
        sizes = [size_of(count, kind, cell.dtype, trials.world) for count in counts]
        return [Measurement(cell, name, size) for size in sorted(set(sizes)) for name in trials.able]

    def _rows(
        self, several: Sequence[Measurement], found: dict[Measurement, float | str]
    ) -> tuple[tuple[int, dict[str, float]], ...]:
        """Put the times of each size together; note what did not end well."""
        rows: dict[int, dict[str, float]] = {}
        for each in several:
            end = found[each]
            if isinstance(end, str):
                self.failures[each] = end
            else:
                rows.setdefault(each.nbytes, {})[each.algorithm] = end
        return tuple(rows.items())

    def _shaken(
        self, cell: TunedCell, trials: AlgorithmTrials, rows: tuple[tuple[int, dict[str, float]], ...]
    ) -> tuple[tuple[int, dict[str, float]], ...]:
        """Put the median in the place of the single time of whoever is near the best, where that is asked for."""
        if self.spread_of is None:
            return rows
        for nbytes, times in rows:
            found = contest(times, partial(self.spread_of, cell, trials, nbytes))
            self.contests[cell.collective, trials.world, nbytes] = found
            times.update({name: spread.median_ns for name, spread in found.spreads.items()})
        return rows

    def _report_progress(self, found: dict[Measurement, float | str], every: Sequence[Measurement]) -> None:
        whole = sum(each.nbytes + _SMALL for each in every)
        self.done(len(found), len(every), sum(each.nbytes + _SMALL for each in found) / whole)

    def _ended(
        self, every: Sequence[Measurement], trials: dict[TunedCell, AlgorithmTrials]
    ) -> Iterator[tuple[Measurement, float | str]]:
        """Yield measurements as they end: here, or in processes where there are several."""
        if self.workers == 1 or len(every) == 1:
            yield from ((each, each.run(trials[each.cell])) for each in every)
            return
        with process_pool(self.workers) as pool:
            jobs: dict[Future[float | str], Measurement] = {pool.submit(_run_remotely, each): each for each in every}
            while jobs:
                over, _ = wait(jobs, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
                for job in over:
                    yield jobs.pop(job), job.result()
