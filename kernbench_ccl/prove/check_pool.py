"""Prove many algorithms for many numbers of ranks, in several processes, and give what is found in its order.

Of each algorithm the largest number of ranks is proved first, so that no process idles at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, redirect_stdout
from functools import lru_cache

from attrs import define, evolve, frozen

from kernbench_ccl.catalogue import Algorithm, Catalogue
from kernbench_ccl.prove.algorithm_check import (
    Checked,
    Ranks,
    Wanted,
    by_network,
    cases,
    network_or_refusal,
    prove_ranks,
)
from kernbench_ccl.prove.kernel_prints import KernelPrints
from kernbench_ccl.prove.processes import process_pool
from kernbench_core.plugins import Plugins, load_plugins

_LOOK_S = 0.25
_MUCH = 1000
"""Cases times ranks from which on it pays to start processes."""


Tell = Callable[[str], None]
"""Is told in words what is proved, and how far that is."""


@frozen
class Task:
    """One algorithm for one number of ranks on some networks, which are as many `cases`."""

    algorithm: str
    collective: str
    world: int
    wanted: Wanted
    cases: int

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from the others."""
        return self.algorithm, self.world

    @property
    def portable(self) -> Task:
        """The same for another process, which has a registry of its own."""
        return evolve(self, wanted=evolve(self.wanted, registry=None))

    def spelt(self, network: str | None = None) -> str:
        """Say in words what is proved, as `ccl.ring_all_reduce, 5 ranks on ring`."""
        names = self.wanted.networks or ()
        where = network or (names[0] if len(names) == 1 else f"{len(names)} networks")
        return f"{self.algorithm}, {self.world} {'rank' if self.world == 1 else 'ranks'} on {where}"


@define
class _Count:
    """How many cases there are and are done."""

    tell: Tell | None
    all: int
    done: int = 0

    def say(self, what: str) -> None:
        if self.tell is not None:
            self.tell(f"case {min(self.done + 1, self.all):,} of {self.all:,}: {what}")


def check_all(
    algorithms: Sequence[Algorithm], wanted: Wanted, jobs: int = 1, tell: Tell | None = None
) -> Iterator[tuple[Algorithm, list[Checked]]]:
    """Yield what is found of each algorithm, on each network that it supports, in their order.

    `jobs` processes prove; those have the installed plug-ins. What kernels print goes to stderr, each line once for
    each rank. Where a kernel has no end, fewer ranks are not tried.
    """
    tasks = {algorithm.name: _tasks(algorithm, wanted) for algorithm in algorithms}
    every = [task for own in tasks.values() for task in own]
    count = _Count(tell, sum(task.cases for task in every))
    remote = jobs > 1 and len(every) > 1 and sum(task.cases * task.world for task in every) >= _MUCH
    prints = KernelPrints(sys.stderr)
    with _pool(min(jobs, len(every)) if remote else 0, wanted.timeout_s) as pool:
        futures = {} if pool is None else {task.key: pool.submit(_prove_remotely, task.portable) for task in every}
        for algorithm in algorithms:
            own = tasks[algorithm.name]
            if futures:
                found = dict(_waited(own, every, futures, count))
            else:
                found = dict(_in_turn(algorithm, own, count, prints))
            names = own[0].wanted.networks or () if own else ()
            yield algorithm, by_network(algorithm, names, [found[world] for world in wanted.ranks if own])


def _tasks(algorithm: Algorithm, wanted: Wanted) -> list[Task]:
    """Return the tasks of an algorithm, the largest first; none where it supports none of the networks."""
    names = tuple(algorithm.topologies if wanted.networks is None else filter(algorithm.knows, wanted.networks))
    own = evolve(wanted, networks=names)
    tasks = []
    for world in sorted(wanted.ranks, reverse=True) if names else ():
        networks = [network_or_refusal(algorithm, name, world, wanted.registry) for name in names]
        able = [network for network in networks if not isinstance(network, str)]
        number = sum(1 for _ in cases(algorithm, able[0], wanted.pes, wanted.counts)) if able else 0
        tasks.append(Task(algorithm.name, algorithm.collective, world, own, len(able) * number))
    return tasks


def _proved(algorithm: Algorithm, task: Task, count: _Count, prints: KernelPrints) -> tuple[Ranks, ...]:
    """Do a task in this process."""
    before = count.done

    def report(network: str) -> None:
        count.say(task.spelt(network))
        count.done += 1

    with redirect_stdout(prints):
        found = prove_ranks(algorithm, task.wanted.networks or (), task.world, task.wanted, report)
    count.done = before + task.cases
    return found


def _waited(
    own: Sequence[Task],
    every: Sequence[Task],
    futures: Mapping[tuple[str, int], Future[tuple[Ranks, ...]]],
    count: _Count,
) -> Iterator[tuple[int, tuple[Ranks, ...]]]:
    """Yield what other processes found for an algorithm's tasks, by the number of ranks."""
    for number, task in enumerate(own):
        while not futures[task.key].done():
            count.done = sum(task.cases for task in every if futures[task.key].done())
            count.say(task.spelt())
            left = [futures[task.key] for task in own[number:] if not futures[task.key].done()]
            wait(left, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
        found = futures[task.key].result()
        yield task.world, found
        if any(ranks.endless for ranks in found):
            for other in own[number + 1 :]:
                if every[-1].algorithm != task.algorithm:  # else the processes are about to be ended anyway
                    futures[other.key].cancel()
                yield other.world, _untried(other, task)
            return


def _in_turn(
    algorithm: Algorithm, own: Sequence[Task], count: _Count, prints: KernelPrints
) -> Iterator[tuple[int, tuple[Ranks, ...]]]:
    """Do an algorithm's tasks in this process, by the number of ranks, until a kernel does not end."""
    stuck: Task | None = None
    for task in own:
        found = _proved(algorithm, task, count, prints) if stuck is None else _untried(task, stuck)
        yield task.world, found
        if stuck is None and any(ranks.endless for ranks in found):
            stuck = task


def _untried(task: Task, stuck: Task) -> tuple[Ranks, ...]:
    """Return what is found of a task that is left out because another one did not end."""
    why = f"it did not end with {stuck.world} ranks."
    return tuple(Ranks(task.world, refusal=why, tried=False) for _ in task.wanted.networks or ())


@contextmanager
def _pool(workers: int, limit_s: float | None) -> Iterator[ProcessPoolExecutor | None]:
    """Give so many processes, which end with the block; None for none."""
    if not workers:
        yield None
        return
    with process_pool(workers, limit_s) as pool:
        yield pool


@lru_cache(maxsize=1)
def _kernel_prints() -> KernelPrints:
    return KernelPrints(sys.stderr)


@lru_cache(maxsize=1)
def _plugins() -> Plugins:
    return load_plugins()


@lru_cache(maxsize=1)
def _catalogue() -> Catalogue:
    return Catalogue.of(_plugins())


@lru_cache(maxsize=4)
def _opened(name: str, collective: str) -> Algorithm:
    return _catalogue().open(name, collective)


def _prove_remotely(task: Task) -> tuple[Ranks, ...]:
    """Do a task in a process that was started for it."""
    with redirect_stdout(_kernel_prints()):
        algorithm = _opened(task.algorithm, task.collective)
        wanted = evolve(task.wanted, registry=_plugins().networks)
        return prove_ranks(algorithm, wanted.networks or (), task.world, wanted)
