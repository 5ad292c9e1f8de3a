"""Try algorithms for many sizes at once, in several processes, before `auto` is asked for each size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from attrs import frozen

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.measure.machine import Setup, machine_of
from kernbench_ccl.measure.trials import AlgorithmTrials, TrialCall
from kernbench_ccl.plan.trial_choice import TrialTime, choose_by_trial, tried_sizes
from kernbench_ccl.prove.processes import process_pool
from kernbench_core.errors import KernbenchError
from kernbench_core.plugins import load_plugins

if TYPE_CHECKING:
    from kernbench_ccl.plan import Settings

KnownTrials = list[tuple[str, int, TrialTime]]
"""Times of trials: (algorithm, size, time)."""


@frozen
class PortableTrials:
    """What another process makes the same trials of; `settings` are those of the algorithms by their names."""

    setup: Setup
    collective: str
    dtype: str
    redop: str | None
    root: int
    settings: tuple[tuple[str, Settings], ...]


@lru_cache(maxsize=2)
def _opened(asked: PortableTrials) -> AlgorithmTrials:
    plugins = load_plugins()
    catalogue = Catalogue.of(plugins)
    call = TrialCall(catalogue.collectives[asked.collective], asked.dtype, asked.redop, asked.root)
    able = {name: (catalogue.open(name, asked.collective), settings) for name, settings in asked.settings}
    return AlgorithmTrials(call, machine_of(asked.setup, plugins), plugins, able)


def _tried(asked: PortableTrials, nbytes: int) -> KnownTrials:
    """Choose for a size, and return the times that it took."""
    trials = _opened(asked)
    found = choose_by_trial(tuple(trials.able), nbytes, trials)
    return [(name, size, time) for name, size in found.tried if (time := trials.time(name, size)) is not None]


@frozen
class _KeptTimes:
    """Times that are known without a simulation; LookupError for any other."""

    trials: AlgorithmTrials

    @property
    def steady(self) -> int:
        return self.trials.steady

    def form(self, name: str, nbytes: int) -> float | None:
        return self.trials.form(name, nbytes)

    def time(self, name: str, nbytes: int) -> TrialTime:
        found = self.trials.kept(name, nbytes)
        if found is None:
            raise LookupError
        return found


def _is_known(trials: AlgorithmTrials, nbytes: int) -> bool:
    try:
        choose_by_trial(tuple(trials.able), nbytes, _KeptTimes(trials))
    except LookupError:
        return False
    return True


def try_ahead(
    trials: AlgorithmTrials, setup: Setup, sizes: Sequence[int], workers: int, told: Callable[[int, int], None]
) -> None:
    """Let `trials` know the times that choosing for `sizes` takes; `told(n, of)` is told how many sizes are done.

    What it does not know afterwards, as of an algorithm that fails, or that other processes have not, it simulates when
    it is asked.
    """
    by_tried = {tried_sizes(nbytes, trials.steady): nbytes for nbytes in sizes}
    left = [nbytes for nbytes in by_tried.values() if not _is_known(trials, nbytes)]
    if len(left) < 2 or workers < 2:
        return
    call = trials.call
    asked = PortableTrials(
        setup, call.kind.name, call.dtype, call.redop, call.root,
        tuple((name, settings) for name, (_, settings) in trials.able.items()),
    )  # fmt: skip
    with process_pool(workers) as pool:
        jobs = [pool.submit(_tried, asked, nbytes) for nbytes in sorted(left, reverse=True)]
        for number, job in enumerate(as_completed(jobs), 1):
            with suppress(KernbenchError):
                trials.learn(job.result())
            told(number, len(jobs))
