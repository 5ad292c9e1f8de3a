"""Calibrate by measured collectives: nccl-tests' output, or a CSV. Fits bandwidth and latency of the scale-up links."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

from attrs import evolve, field, frozen

from kernbench_ccl.calibrate.heading import Heading, Ran
from kernbench_ccl.calibrate.nccl_log import NcclTable, is_nccl, read_nccl
from kernbench_ccl.catalogue import Catalogue, meant
from kernbench_ccl.collectives import CollectiveKind
from kernbench_ccl.contract import Cost
from kernbench_ccl.measure import Chooser, Setup, TimedMachine, machine_of, time_collective
from kernbench_ccl.measure.choice import Choice, Question, chosen_name
from kernbench_ccl.measure.sweep import counts_of
from kernbench_ccl.plan import load_ccl
from kernbench_ccl.plan.configuration import AUTO
from kernbench_core.calibration import CsvForm, LogOptions, LogRow, MachineChoice, SimulatedRow, Unknown
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.units import format_bytes
from kernbench_core.values.dtypes import itemsize

LINK_BANDWIDTH = Unknown(
    "link-bandwidth",
    "system.network.bandwidth",
    "bandwidth",
    0.985,
    900.0,
    "one lane of PCIe 3.0, by the standard, to NVLink 5 of a GPU, 900 GB/s each way, NVIDIA",
    "large vectors, of many MiB a rank, where bandwidth decides",
    inverse=True,
)
LINK_LATENCY = Unknown(
    "link-latency",
    "system.network.latency",
    "time",
    2.0,
    10e3,
    "adapters and PHYs of UCIe 1.1, to five times the 2 us of a step with software, AWS Neuron docs [chosen]",
    "small vectors, of some KiB, where latency decides",
)
UNKNOWNS = (LINK_BANDWIDTH, LINK_LATENCY)
_ALONE = "one rank has nobody to communicate with"
_STEP = 1e-3
"""By which part of it a parameter is changed to see how steep a closed form is."""


@frozen
class CollectiveCase:
    """A measured collective; `nbytes` is its size as nccl-tests counts it.

    `ran` is the algorithm that a log of `kernbench ccl` names, and `heading` what it says besides.
    """

    collective: str
    ranks: int
    nbytes: int
    dtype: str
    redop: str | None
    root: int = 0
    in_place: bool = False
    ran: Ran | None = None
    heading: Heading | None = field(default=None, eq=False, repr=False)

    @property
    def table(self) -> tuple[Hashable, ...]:
        """What it has in common with those that are simulated together."""
        return self.collective, self.ranks, self.dtype, self.redop, self.root, self.ran


class NcclLog:
    """Read nccl-tests' output, out of place and in place; simulate its rows as `kernbench ccl` does."""

    FORM: ClassVar[str] = "nccl-tests' text output, with the header of its table"

    def __init__(self, plugins: Plugins, options: LogOptions) -> None:
        self._plugins, self._options = plugins, options

    @staticmethod
    def recognises(text: str) -> bool:
        """Tell whether there is the header of a table of nccl-tests."""
        return is_nccl(text)

    def read(self, name: str, text: str) -> list[LogRow]:
        """Return the rows of all tables, two for each line that was measured in place too."""
        found: list[LogRow] = []
        tables, problems = read_nccl(name, text, self._options.ranks)
        for table in tables:
            kind, ranks, faults = self._of_table(name, table)
            problems += faults
            if kind is None or ranks is None:
                continue
            problems += self._ran_faults(table)
            for line in table.lines:
                problems += _redop_faults(f"{name}:{line.line}", kind, line.redop)
                redop = (line.redop or "sum") if kind.reduces else None
                both = ((False, line.out_of_place), (True, line.in_place if kind.in_place else None))
                for in_place, ns in both:
                    if ns is not None:
                        said = table.heading
                        case = CollectiveCase(kind.name, ranks, line.size, line.dtype, redop, line.root, in_place,
                                              None if said is None else said.of(line.size), said)  # fmt: skip
                        found.append(LogRow(f"{name}:{line.line}", _label(case), ns, case))
        if not found and not problems:
            problems.append(f"{name}:1: a log must have a time for at least one size; give one that was measured.")
        if problems:
            raise ConfigError(*sorted(problems, key=lambda one: int(one.removeprefix(f"{name}:").partition(":")[0])))
        return found

    def _ran_faults(self, table: NcclTable) -> list[str]:
        """Say why what a log names cannot run here."""
        found = []
        for ran in [] if table.heading is None else table.heading.ran:
            if ran.entry is not None and self._options.config is None:
                found.append(
                    f"the entry of the log, {ran.entry!r}, must be in a --config, and none is given; give the one that "
                    "it was measured with."
                )
            elif ran.algorithm not in Catalogue.of(self._plugins).algorithms and self._options.algo in (None, AUTO):
                found.append(
                    f"the algorithm of the log, {ran.algorithm!r}, must be one that is registered; load its plug-in, "
                    "or give its file by --algo."
                )
        return [f"{table.heading.place}: {one}" for one in found] if table.heading is not None else []

    def settings(self, rows: Sequence[LogRow]) -> tuple[str, ...]:
        """Return that there are as many packages as the largest log has ranks."""
        return (f"system.sips={max(_case(row).ranks for row in rows)}",)

    def unknowns(self, rows: Sequence[LogRow], machine: MachineChoice) -> tuple[Unknown, ...]:
        """Return what a scale-up link has; what launches take is in no collective's time."""
        return UNKNOWNS

    def slopes(
        self, rows: Sequence[LogRow], machine: MachineChoice, values: Mapping[str, float]
    ) -> list[dict[str, float]]:
        """Return how steep the closed form of each row's algorithm is in latency and in one over bandwidth."""
        forms = {table: _Forms(self._plugins, self._options, machine, case) for table, case in _tables(rows).items()}
        return [forms[_case(row).table].slopes(_case(row).nbytes, values) for row in rows]

    def simulate(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[SimulatedRow]:
        """Simulate each size of each table once, in and out of place; larger sizes are continued."""
        limit = self._options.simulate_to
        times: dict[tuple[Hashable, ...], dict[tuple[int, bool], float]] = {}
        for table, case in _tables(rows).items():
            asked = {_case(row).nbytes for row in rows if _case(row).table == table}
            larger = {limit // 2, limit} if any(nbytes > limit for nbytes in asked) else set()
            sizes = sorted({nbytes for nbytes in asked if nbytes <= limit} | larger)
            times[table] = self._times(case, sizes, machine)

        def of(case: CollectiveCase) -> SimulatedRow:
            known = times[case.table]
            return SimulatedRow.along(case.nbytes, limit, lambda nbytes: known[nbytes, case.in_place])

        return [of(_case(row)) for row in rows]

    def _times(
        self, case: CollectiveCase, sizes: Sequence[int], machine: MachineChoice
    ) -> dict[tuple[int, bool], float]:
        """Return the simulated times of sizes in bytes, out of place (False) and in place (True)."""
        kind = Catalogue.of(self._plugins).collectives[case.collective]
        rows = time_collective(
            case.collective, sizes, machine.topology, algo=_asked(self._options, case), dtype=case.dtype,
            redop=case.redop or "sum", root=case.root, set=(*machine.sets, f"system.sips={case.ranks}"),
            config=self._options.config, check=False, jobs=self._options.jobs, plugins=self._plugins,
        )  # fmt: skip
        of_count = {row.count: row for row in rows}
        found: dict[tuple[int, bool], float] = {}
        for nbytes in sizes:
            (count,) = counts_of([nbytes], kind, case.dtype, case.ranks)
            row = of_count[count]
            found[nbytes, False] = row.out_of_place.time_ns
            found[nbytes, True] = (row.in_place or row.out_of_place).time_ns
        return found

    def _of_table(self, name: str, table: NcclTable) -> tuple[CollectiveKind | None, int | None, list[str]]:
        """Return the collective and the ranks of a table, from the log or the command line, and what is wrong."""
        options, problems = self._options, list[str]()
        there = None if table.collective is None else self._kind(table.collective)
        given = None if options.collective is None else self._kind(options.collective)
        called = options.collective or table.collective
        kind = given if options.collective is not None else there
        at = f"{name}:{table.at}"
        if called is None:
            problems.append(f"{at}: the collective must be told, as nothing above the table does; give --collective.")
        elif kind is None:
            known = ", ".join(self._known())
            problems.append(f"{at}: the collective must be one of {known}, not {called!r}; give --collective.")
        elif there not in (None, kind):
            problems.append(
                f"{at}: the collective must be that of the log, {table.collective}, not {called}; leave --collective "
                "out."
            )
        if table.ranks is None and options.ranks is None:
            problems.append(f"{at}: the number of ranks must be told, as nothing above the table does; give --ranks.")
        elif table.ranks is not None and table.ranks < 2:
            must = "the number of ranks must be at least 2"
            problems.append(f"{at}: {must}, not {table.ranks}: {_ALONE}; leave the table out.")
        elif options.ranks is not None and table.ranks not in (None, options.ranks):
            problems.append(
                f"{at}: the number of ranks must be that of the log, {table.ranks}, not {options.ranks}; leave "
                "--ranks out."
            )
        return kind, table.ranks or options.ranks, problems

    def _known(self) -> list[str]:
        return [name for name, kind in Catalogue.of(self._plugins).collectives.items() if not kind.barrier]

    def _kind(self, called: str) -> CollectiveKind | None:
        """Return the collective of a name, ours or nccl-tests'; None where nobody knows it, or nothing is sent."""
        kinds = Catalogue.of(self._plugins).collectives
        name = meant(called, [one for pair in _names(kinds) for one in pair])
        found = [kinds[own] for own, other in _names(kinds) if name is not None and name in (own, other)]
        return found[0] if found and not found[0].barrier else None


class CollectiveCsv(NcclLog):
    """Read a CSV of collectives, as of libraries that have no nccl-tests; all else is as for nccl-tests' output."""

    FORM: ClassVar[str] = "a CSV of collectives with the columns collective, ranks, bytes and time"
    _CSV: ClassVar[CsvForm] = CsvForm({"collective": str, "ranks": CsvForm.whole, "bytes": CsvForm.size})

    @staticmethod
    def recognises(text: str) -> bool:
        """Tell whether the first line names collective, ranks, bytes and a time."""
        return CollectiveCsv._CSV.recognises(text)

    def read(self, name: str, text: str) -> list[LogRow]:
        """Return the rows of a CSV: out of place, of f32, summed up where anything is reduced."""
        columns = {**self._CSV.columns, "collective": self._read_kind, "ranks": _read_ranks}
        found: list[LogRow] = []
        problems: list[str] = []
        for row in CsvForm(columns).read(name, text):
            kind, ranks = row.values["collective"], row.values["ranks"]
            _, _, faults = self._of_table(name, NcclTable(kind.name, ranks, (), row.line))
            problems += faults
            case = CollectiveCase(kind.name, ranks, row.values["bytes"], "f32", "sum" if kind.reduces else None)
            found.append(LogRow(f"{name}:{row.line}", _label(case), row.ns, case))
        if problems:
            raise ConfigError(*problems)
        return found

    def _read_kind(self, text: str) -> CollectiveKind:
        kind = self._kind(text)
        if kind is None:
            raise ValueError(f"must be one of {', '.join(self._known())}, not {text!r}.")
        return kind


def _read_ranks(text: str) -> int:
    ranks = CsvForm.whole(text)
    if ranks < 2:
        raise ValueError(f"must be an integer of at least 2, not {text!r}: {_ALONE}.")
    return ranks


class _Forms:
    """The closed forms of the algorithms that serve the sizes of a table."""

    def __init__(self, plugins: Plugins, options: LogOptions, machine: MachineChoice, case: CollectiveCase) -> None:
        catalogue = Catalogue.of(plugins)
        setup = Setup(machine.topology, None, (*machine.sets, f"system.sips={case.ranks}"), checked=False)
        self._machine: TimedMachine = machine_of(setup, plugins)
        self._item = itemsize(case.dtype)
        self._config = load_ccl(options.config, catalogue=catalogue)
        question = Question(catalogue.collectives[case.collective], case.dtype, case.redop, case.root)
        self._chooser = Chooser(question, self._machine, self._config, plugins)
        self._name = chosen_name(self._config, case.collective, _asked(options, case))
        self._free = options.algo in (None, AUTO)
        if case.heading is not None:
            self._require_as_said(case.heading, case.ran)

    @cached_property
    def _named(self) -> Choice | None:
        return None if self._name == AUTO else self._chooser.named(self._name)

    def _require_as_said(self, said: Heading, ran: Ran | None) -> None:
        """Raise UsageError where a log says that another network, algorithm or way of running was measured."""
        network = self._machine.network
        here = Heading("", "", 0, False, False, network.name, (network.width, network.height))
        grid = here.grid if network.height > 1 else None
        if said.network is not None and (said.network, said.grid) != (network.name, grid):
            there = evolve(here, grid=grid).shape
            raise UsageError(
                f"{said.place}: the network must be that of the log, a {said.shape}, not a {there}, as this machine's "
                f"is; give {said.sets}, or the --topology that was measured."
            )
        choice = self._named
        if ran is None or choice is None:
            return
        if choice.algorithm.name != ran.algorithm:
            raise UsageError(
                f"{said.place}: the algorithm must be that of the log, {ran.algorithm}, not {choice.algorithm.name}; "
                f"give --algo {ran.algorithm}, or leave it out."
            )
        way = "pipelined" if choice.settings.pipeline else "step by step"
        if way != ran.way:
            raise UsageError(
                f"{said.place}: {ran.algorithm} must run {ran.way}, as in the log, not {way}; give a --config with "
                f"'defaults: {{pipeline: {'on' if ran.way == 'pipelined' else 'off'}}}'."
            )

    def slopes(self, nbytes: int, values: Mapping[str, float]) -> dict[str, float]:
        """Return d ns / d latency and d ns / d (1 / bandwidth) at these values of a link."""
        bandwidth, latency = self._machine.link()
        bandwidth, latency = values.get(LINK_BANDWIDTH.name, bandwidth), values.get(LINK_LATENCY.name, latency)
        choice = self._pointing(nbytes, bandwidth, latency)

        def form(inverse: float, latency: float) -> float:
            found = self._form(choice, nbytes, 1 / inverse, latency)
            if isinstance(found, str):
                raise _no_form(choice.algorithm.name, found)
            return found

        inverse, more = 1 / bandwidth, 1 + _STEP
        here = form(inverse, latency)
        return {
            LINK_BANDWIDTH.name: (form(inverse * more, latency) - here) / (inverse * _STEP),
            LINK_LATENCY.name: (form(inverse, latency * more) - here) / (latency * _STEP),
        }

    def _form(self, choice: Choice, nbytes: int, bandwidth: float, latency: float) -> float | str:
        settings = choice.settings
        cost = Cost(self._machine.world, nbytes, bandwidth, latency, self._machine.network, settings.pipeline,
                    settings.tile(self._item) * self._item, self._machine.stored,
                    settings.pes or self._machine.pes)  # fmt: skip
        return choice.algorithm.closed_form(cost)

    def _pointing(self, nbytes: int, bandwidth: float, latency: float) -> Choice:
        """Return the algorithm whose form points the way: the one that runs, or the fastest where nobody named one.

        What is simulated is not changed by it. UsageError where there is no form.
        """
        choice = self._named or self._chooser.best(nbytes)
        found = self._form(choice, nbytes, bandwidth, latency)
        if not isinstance(found, str):
            return choice
        name = choice.algorithm.name
        if self._free:
            forms = [(self._form(one, nbytes, bandwidth, latency), one) for one in self._chooser.able().values()]
            known = [(ns, one) for ns, one in forms if not isinstance(ns, str)]
            if known:
                return min(known, key=lambda pair: pair[0])[1]
            name = f"{name}, which {'auto chose' if self._named is None else 'is asked for'},"
        raise _no_form(name, found)


def _asked(options: LogOptions, case: CollectiveCase) -> str | None:
    """Return the algorithm that the command line asks for; where it leaves that to auto, the one that a log names."""
    if case.ran is None or options.algo not in (None, AUTO):
        return options.algo
    return case.ran.entry or case.ran.algorithm


def _no_form(name: str, why: str) -> UsageError:
    return UsageError(
        f"{name} must have a closed form, for a fit to know which way to go, and has none: {why}; choose another with "
        "--algo."
    )


def _names(kinds: Mapping[str, CollectiveKind]) -> list[tuple[str, str]]:
    """Return what collectives are called, here and by nccl-tests."""
    return [(name, kinds[name].command) for name in kinds]


def _redop_faults(at: str, kind: CollectiveKind, redop: str | None) -> list[str]:
    """Say whether a line's reduction is none that its collective can have; None is what old tables do not tell."""
    if redop is None or (redop != "none") == kind.reduces:
        return []
    must = "a reduction" if kind.reduces else "none"
    return [
        f"{at}: redop must be {must} for {kind.name}, not {redop!r}; name the collective that was measured with "
        "--collective."
    ]


def _tables(rows: Sequence[LogRow]) -> dict[tuple[Hashable, ...], CollectiveCase]:
    """Return one case of each set of rows that are simulated together."""
    return {_case(row).table: _case(row) for row in rows}


def _case(row: LogRow) -> CollectiveCase:
    assert isinstance(row.case, CollectiveCase)
    return row.case


def _label(case: CollectiveCase) -> str:
    place = ", in place" if case.in_place else ""
    return f"{case.collective} of {case.ranks} ranks, {format_bytes(case.nbytes)}{place}"
