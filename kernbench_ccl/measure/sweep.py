"""Measure a collective over a range of sizes, in several processes, and give the rows in their order.

The smallest size begins at once, so that the first row comes soon, then the largest ones, so that no process idles at
the end; rows come out from small to large.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from attrs import field, frozen

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import CollectiveKind
from kernbench_ccl.measure.choice import Choice, Chooser, Question, check_question, chosen_name
from kernbench_ccl.measure.machine import Setup, TimedMachine, machine_of
from kernbench_ccl.measure.measurement import closed_form, measure, measure_remotely
from kernbench_ccl.measure.table import Measured, SweepRow
from kernbench_ccl.measure.timed_run import TimedCase
from kernbench_ccl.plan import load_ccl
from kernbench_ccl.plan.configuration import AUTO
from kernbench_ccl.prove.processes import process_pool
from kernbench_core.engine import Limits, Progress
from kernbench_core.errors import DeadlockError, KernbenchError, KernelError, LimitError, SanityError, UsageError
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs import open_backend, tell_warnings
from kernbench_core.units import format_bytes
from kernbench_core.values.dtypes import dtype_of, itemsize

ReportProgress = Callable[[str, Progress], None]
End = Measured | KernbenchError
NO_SUCH_LINKS = "its module's form is below the lower bound: it counts on links that"
_LOOK_S = 0.25
_SMALL = 1 << 20
#: How many small cases take no longer one after another than processes take to start.
_FEW = 24
_ENDS = {DeadlockError.exit_code: "deadlock", LimitError.exit_code: "limit", SanityError.exit_code: "not sane"}


@frozen
class Failed:
    """A run that ended with an error, of a size in bytes and an algorithm by its full name, or an entry by its own."""

    size: int
    algorithm: str
    error: KernbenchError

    @property
    def word(self) -> str:
        """What kind of end it was, in a word for a cell of the table."""
        return _ENDS.get(self.error.exit_code, "error")

    def to_json(self) -> dict[str, object]:
        """Return plain JSON types."""
        code = self.error.exit_code
        return {"size": self.size, "algorithm": self.algorithm, "exit_code": code, "sentence": str(self.error)}


def counts_of(sizes: Sequence[int], kind: CollectiveKind, dtype: str, world: int) -> list[int]:
    """Return nccl's counts for sizes in bytes, at least 1 each, and each once."""
    item = itemsize(dtype)
    return list(dict.fromkeys(max(1, kind.count_of(size // item, world)) for size in sizes))


def size_of(count: int, kind: CollectiveKind, dtype: str, world: int) -> int:
    """Return the size in bytes that nccl-tests prints for a count."""
    return kind.size_count(count, world) * itemsize(dtype)


def sizes_of(least: int, most: int, factor: float | None, step: int | None) -> list[int]:
    """Return the sizes from least to most, each `factor` times the last one, or `step` bytes more."""
    found = [least]
    while True:
        following = found[-1] + step if step is not None else max(int(found[-1] * (factor or 2)), found[-1] + 1)
        if following > most:
            return found
        found.append(following)


@frozen
class Sweep:
    """Run cases and put them together; `report(what, progress)` is told how far it is."""

    question: Question
    setup: Setup
    machine: TimedMachine
    plugins: Plugins
    workers: int = 2
    report: ReportProgress | None = None
    limits: Limits | None = None
    """When each simulation is to be stopped."""
    in_place: bool = True
    """Whether to run in place too, where the collective has that."""
    known: dict[TimedCase, Measured] = field(factory=dict, eq=False, repr=False)
    """What was measured on this machine: that does not run again, and what does is added."""

    def rows(self, planned: Sequence[tuple[int, Choice]]) -> Iterator[SweepRow]:
        """Yield a row for each (count, algorithm), in order, out of place and in place where there is that."""
        both = (False, True) if self.question.kind.in_place and self.in_place else (False,)
        cases = [[self.case(count, choice, place) for place in both] for count, choice in planned]
        for (_, choice), asked in zip(planned, cases, strict=True):
            closed_form(asked[0], self.machine, choice.algorithm)  # what is wrong with it is told before anything runs
        for (_, choice), asked, found in zip(planned, cases, self._ended(cases), strict=True):
            yield self._row(choice, asked[0], [end for end in found if isinstance(end, Measured)])

    def comparison(self, counts: Sequence[int], choices: Mapping[str, Choice]) -> Iterator[list[SweepRow | Failed]]:
        """Yield for each count a row of each algorithm, out of place only, or how it failed."""
        cases = [[self.case(count, choice, False) for choice in choices.values()] for count in counts]
        for asked, found in zip(cases, self._ended(cases, keep=True), strict=True):
            yield [
                self._row_or_failure(choice, case, end)
                for choice, case, end in zip(choices.values(), asked, found, strict=True)
            ]

    def _row_or_failure(self, choice: Choice, case: TimedCase, end: End) -> SweepRow | Failed:
        if isinstance(end, Measured):
            try:
                return self._row(choice, case, [end])
            except KernelError as error:
                end = error
        return Failed(case.nbytes, case.settings.name, end)

    def case(self, count: int, choice: Choice, in_place: bool) -> TimedCase:
        """Return the run of one size by one algorithm."""
        asked = self.question
        return TimedCase(
            asked.collective, choice.algorithm.name, asked.dtype, count,
            size_of(count, asked.kind, asked.dtype, self.machine.world), asked.redop, asked.root, in_place,
            choice.settings, asked.contributors,
        )  # fmt: skip

    def _row(self, choice: Choice, case: TimedCase, found: Sequence[Measured]) -> SweepRow:
        kind = self.question.kind
        bound = self.machine.bound(kind, case.nbytes, case.root)
        used = found[0].used
        formula = closed_form(case, self.machine, choice.algorithm, used.pes if used is not None else None)
        if not isinstance(formula, str) and formula < bound.ns:
            formula = f"{NO_SUCH_LINKS} {self.machine.network.name} has not"
        return SweepRow(
            size=case.nbytes,
            count=case.count,
            dtype=case.dtype,
            redop=case.redop or "none",
            root=case.root if kind.rooted else -1,
            algorithm=case.algorithm,
            out_of_place=found[0],
            in_place=found[1] if len(found) > 1 else None,
            bound_ns=bound.ns,
            bound_reason=bound.reason,
            formula_ns=None if isinstance(formula, str) else formula,
            formula_reason=formula if isinstance(formula, str) else None,
            settings=choice.settings,
            network=choice.settings.topology or self.machine.network.name,
        )

    def _ended(self, groups: Sequence[Sequence[TimedCase]], keep: bool = False) -> Iterator[list[End]]:
        """Yield what each group of cases measured, in order; with `keep` also the errors that ended one."""
        weights = {case: case.nbytes for group in groups for case in group if case not in self.known}
        progress = _Progress(self.report, sum(weights.values()) + _SMALL * len(weights), len(weights))
        if self.workers > 1 and len(weights) > 1 and (len(weights) > _FEW or max(weights.values()) >= _SMALL):
            yield from self._in_processes(groups, weights, progress, keep)
            return
        for group in groups:
            yield [self.known.get(case) or self._here(case, weights[case], progress, keep) for case in group]

    def _here(self, case: TimedCase, weight: int, progress: _Progress, keep: bool) -> End:
        """Run a case in this process."""
        made: End
        try:
            made = measure(
                case, self.machine, self.plugins, checked=self.setup.checked, backend=self.setup.backend,
                limits=self.limits, on_progress=progress.running,
            )  # fmt: skip
        except KernbenchError as error:
            if not keep:
                error.add_note(self._which(case))
                raise
            made = error
        else:
            self.known[case] = made
        progress.ended(weight + _SMALL, made)
        return made

    def _which(self, case: TimedCase) -> str:
        where = "in place" if case.in_place else "out of place"
        return f"This was {format_bytes(case.nbytes)} by {case.algorithm}, {where}."

    def _in_processes(
        self, groups: Sequence[Sequence[TimedCase]], weights: Mapping[TimedCase, int], progress: _Progress, keep: bool
    ) -> Iterator[list[End]]:
        with process_pool(self.workers, self.limits.timeout_s if self.limits else None) as pool:
            jobs = {
                pool.submit(measure_remotely, self.setup, case, self.limits): case
                for case in _in_good_order(groups, self.workers)
                if case in weights
            }
            found: dict[TimedCase, End] = {**self.known}
            for group in groups:
                for case in group:
                    while case not in found:
                        self._wait(jobs, found, weights, progress)
                    end = found[case]
                    if isinstance(end, KernbenchError) and not keep:  # the first in order, whichever ended first
                        end.add_note(self._which(case))
                        raise end
                yield [found[case] for case in group]

    def _wait(
        self, jobs: dict[Future[Measured], TimedCase], found: dict[TimedCase, End], weights: Mapping[TimedCase, int],
        progress: _Progress,
    ) -> None:  # fmt: skip
        """Wait until a case has ended, or for a moment, and note what came out of those that have."""
        done, _ = wait(jobs, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
        for future in done:
            case = jobs.pop(future)
            found[case] = end = _end_of(future)
            if isinstance(end, Measured):
                self.known[case] = end
            progress.ended(weights[case] + _SMALL, end)
        progress.report()


def _end_of(future: Future[Measured]) -> End:
    """Return what another process measured, or the error that ended it."""
    try:
        return future.result()
    except KernbenchError as error:
        return error


class _Progress:
    """Add up what has ended, and report it."""

    def __init__(self, report: ReportProgress | None, whole: int, runs: int) -> None:
        self._report, self._whole, self._runs = report, whole, runs
        self._done = self._ended = self._events = 0
        self._sim_ns = 0.0
        self._began = time.perf_counter()

    def ended(self, weight: int, end: End) -> None:
        self._done += weight
        self._ended += 1
        if isinstance(end, Measured):
            self._events += end.events
            self._sim_ns += end.time_ns
        self.report()

    def running(self, one: Progress) -> None:
        self.report(one.sim_ns, one.events)

    def report(self, sim_ns: float = 0.0, events: int = 0) -> None:
        if self._report is not None:
            wall = time.perf_counter() - self._began
            found = Progress(self._sim_ns + sim_ns, self._events + events, wall, self._done / self._whole)
            self._report(f"{self._ended} of {self._runs} runs", found)


def _in_good_order(groups: Sequence[Sequence[TimedCase]], workers: int) -> list[TimedCase]:
    """Put a small group first, then enough of the largest to keep the other workers busy, then the rest ascending."""
    cases = [case for group in groups for case in group]
    first = len(groups[0]) if groups else 0
    largest = cases[first:][-(workers - 1) :] if workers > 1 else []
    rest = cases[first : len(cases) - len(largest)]
    return [*cases[:1], *largest, *cases[1:first], *rest]


def _refuse_what_it_has_not(kind: CollectiveKind, redop: str, root: int, contributors: str) -> None:
    """Raise UsageError for an argument that a collective has no use for, where it is given."""
    for name, given, usual, has in (
        ("redop", redop, "sum", kind.reduces), ("root", root, 0, kind.rooted),
        ("contributors", contributors, "sip", kind.per_pe),
    ):  # fmt: skip
        if not has and given != usual:
            raise UsageError(f"{name} must be left out for {kind.name}, which has none, not {given!r}.")
    if contributors not in ("sip", "pe"):
        raise UsageError(f"contributors must be one of sip, pe, not {contributors!r}.")


def time_collective(
    collective: str,
    sizes: Sequence[int],
    topology: str = "default",
    *,
    algo: str | None = None,
    dtype: str = "f16",
    redop: str = "sum",
    root: int = 0,
    ranks: int | None = None,
    components: str | None = None,
    set: Sequence[str] = (),
    config: str | None = None,
    idealised: bool = False,
    pipeline: bool | None = None,
    pes: int | None = None,
    contributors: str = "sip",
    check: bool = True,
    backend: str = "numpy",
    trials: bool = True,
    in_place: bool = True,
    jobs: int = 1,
    limits: Limits | None = None,
    known: dict[TimedCase, Measured] | None = None,
    plugins: Plugins | None = None,
) -> list[SweepRow]:
    """Return the rows of `kernbench ccl COLLECTIVE`, for sizes in bytes; see there what the arguments mean.

    `collective` is called by its own name (`all_to_all`, not `alltoall`), and `algo` is one algorithm, entry or auto.
    `limits` are those of each simulation. Without `trials` auto tries nothing where no table was measured; without
    `in_place` nothing runs in place. What is in `known`, of calls with this machine, does not run again.

    Raise the KernbenchError that says what is wrong. Wrong data is no error: it is in the rows.
    """
    found = load_plugins() if plugins is None else plugins
    catalogue = Catalogue.of(found)
    kind = catalogue.collectives.get(collective)
    if kind is None or kind.barrier:
        names = ", ".join(name for name in catalogue.collectives if name != "barrier")
        raise UsageError(f"a collective must be one of {names}, not {collective!r}.")
    dtype = dtype_of(dtype)
    sips = () if ranks is None else (f"system.sips={ranks}",)
    open_backend(found, backend)
    setup = Setup(topology, components, (*sips, *set), idealised, check, backend)
    machine = machine_of(setup, found)
    tell_warnings(machine.graph)
    _refuse_what_it_has_not(kind, redop, root, contributors)
    question = Question(kind, dtype, redop if kind.reduces else None, root, pipeline, pes, contributors)
    check_question(question, machine)
    settings = load_ccl(config, catalogue=catalogue)
    if not trials:
        settings = settings.without_trials()
    chooser = Chooser(question, machine, settings, found)
    name = chosen_name(settings, collective, algo)
    counts = counts_of(sizes, kind, dtype, machine.world)
    asked = [size_of(n, kind, dtype, machine.world) for n in counts]
    choices = [chooser.best(nbytes) for nbytes in asked] if name == AUTO else [chooser.named(name)] * len(counts)
    planned = list(zip(counts, choices, strict=True))
    known = {} if known is None else known
    return list(Sweep(question, setup, machine, found, jobs, None, limits, in_place, known).rows(planned))
