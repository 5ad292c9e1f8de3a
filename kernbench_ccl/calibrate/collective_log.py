"""Calibrate by measured collectives: nccl-tests' output, or a CSV. Fits bandwidth and latency of the scale-up links."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from attrs import evolve

from kernbench_ccl.calibrate.forms import LINK_BANDWIDTH, LINK_LATENCY, CollectiveCase, Forms, asked_for
from kernbench_ccl.calibrate.nccl_log import NOT_MEASURED, NcclLine, NcclTable, agree, is_nccl, read_nccl
from kernbench_ccl.calibrate.table_times import EndTimes, TableRow, TableTimes
from kernbench_ccl.catalogue import Catalogue, meant
from kernbench_ccl.collectives import CollectiveKind
from kernbench_ccl.measure import time_collective
from kernbench_ccl.measure.sweep import counts_of
from kernbench_ccl.measure.table import Measured
from kernbench_ccl.plan.configuration import AUTO
from kernbench_core.calibration import BEGIN, CsvForm, LogOptions, LogRow, MachineChoice, SimulatedRow, Unknown
from kernbench_core.errors import ConfigError
from kernbench_core.plugins import Plugins
from kernbench_core.units import format_bytes

UNKNOWNS = (LINK_BANDWIDTH, LINK_LATENCY)
_MANY = 8
"""Sizes of a table from which on a search simulates the ends of each algorithm's alone."""
_ALONE = "one rank has nobody to communicate with"


class NcclLog:
    """Read nccl-tests' output, out of place and in place; simulate its rows as `kernbench ccl` does."""

    FORM: ClassVar[str] = "nccl-tests' text output, with the header of its table"

    def __init__(self, plugins: Plugins, options: LogOptions) -> None:
        self._plugins, self._options = plugins, options
        self._last: dict[tuple[Hashable, ...], tuple[MachineChoice, TableTimes]] = {}  # what ran last out of place
        self._evenly: dict[tuple[Hashable, ...], int] = {}  # from where on times of a table grew evenly so far

    @staticmethod
    def recognises(text: str) -> bool:
        """Tell whether there is the header of a table of nccl-tests, or what `kernbench ccl` says in JSON."""
        return is_nccl(text) or _is_json(text)

    def read(self, name: str, text: str) -> list[LogRow]:
        """Return the rows of all tables, two for each line that was measured in place too."""
        if _is_json(text):
            raise ConfigError(
                f"{name}:1: a log of kernbench ccl must be its table, not the object of --json; give what it prints "
                "without."
            )
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
                problems += _busbw_faults(f"{name}:{line.line}", kind, ranks, line)
                redop = (line.redop or "sum") if kind.reduces else None
                both = ((False, line.out_of_place), (True, line.in_place if kind.in_place else None))
                for in_place, ns in both:
                    if ns is not None:
                        said = table.heading
                        case = CollectiveCase(kind.name, ranks, line.size, line.dtype, redop, line.root, in_place,
                                              None if said is None else said.of(line.size), said)  # fmt: skip
                        check = in_place and line.out_of_place is not None
                        found.append(LogRow(f"{name}:{line.line}", _label(case), ns, case, check))
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
        forms = {table: Forms(self._plugins, self._options, machine, case) for table, case in _tables(rows).items()}
        return [forms[_case(row).table].slopes(_case(row).nbytes, values) for row in rows]

    def otherwise(self, rows: Sequence[LogRow]) -> tuple[str, NcclLog] | None:
        """Return that all may have run step by step, and who simulates that; None where it is said how they ran."""
        if self._options.pipeline is not None or any(_case(row).ran is not None for row in rows):
            return None
        stepped = type(self)(self._plugins, evolve(self._options, pipeline=False))
        return "step by step, as kernbench ccl has it with --pipeline off", stepped

    def ran(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[str]:
        """Say by which algorithm each size was simulated, how, and which options of `kernbench ccl` do the same."""
        sizes: dict[tuple[str, str, str], list[int]] = {}
        for table, case in _tables(rows).items():
            forms = Forms(self._plugins, self._options, machine, case)
            for nbytes in sorted({_case(row).nbytes for row in rows if _case(row).table == table}):
                called = f"{case.collective} of {case.ranks} ranks"
                sizes.setdefault((called, *forms.how(nbytes)), []).append(nbytes)
        return [
            f"{called}, {_span(own)}, ran by {how} (kernbench ccl {options})."
            for (called, how, options), own in sizes.items()
        ]

    def quick(self, rows: Sequence[LogRow]) -> NcclLog | None:
        """Return who simulates the ends of each algorithm's sizes alone; None where that leaves hardly any out."""
        if self._options.whole or len({_case(row).nbytes for row in rows}) < _MANY * len(_tables(rows)):
            return None
        return type(self)(self._plugins, evolve(self._options, ends=True))

    def simulate(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[SimulatedRow]:
        """Simulate each size of each table once; sizes above where times grow evenly are continued."""
        times: dict[tuple[Hashable, ...], TableTimes | EndTimes] = {}
        for table, case in _tables(rows).items():
            asked = {(_case(row).nbytes, _case(row).in_place) for row in rows if _case(row).table == table}
            most = max(asked)[0] if self._options.whole else self._options.simulate_to
            begin = most if self._options.whole else self._evenly.get(table, BEGIN)
            run = partial(self._measured, case, machine)
            last = self._out_of_place(table, machine, asked)
            if self._options.ends or last is not None:
                forms = Forms(self._plugins, self._options, machine, case)
                times[table] = EndTimes.simulated(run, asked, min(BEGIN, most), forms.algorithm, last)
                continue
            times[table] = found = TableTimes.simulated(run, asked, begin, most)
            self._last[table], self._evenly[table] = (machine, found), found.most
        return [times[_case(row).table].of(_case(row).nbytes, _case(row).in_place) for row in rows]

    def _out_of_place(
        self, table: tuple[Hashable, ...], machine: MachineChoice, asked: Collection[TableRow]
    ) -> TableTimes | None:
        """Return what a table took out of place on this machine, where only times in place are wanted, and many."""
        there, found = self._last.get(table, (None, None))
        many = len(asked) >= _MANY and all(in_place for _, in_place in asked)
        return found if there == machine and many and not self._options.whole else None

    def _measured(
        self, case: CollectiveCase, machine: MachineChoice, sizes: Collection[int], in_place: bool
    ) -> dict[TableRow, Measured]:
        """Simulate sizes in bytes, out of place (False), and in place (True) if asked."""
        kind = Catalogue.of(self._plugins).collectives[case.collective]
        rows = time_collective(
            case.collective, list(sizes), machine.topology, algo=asked_for(self._options, case), dtype=case.dtype,
            redop=case.redop or "sum", root=case.root, set=(*machine.sets, f"system.sips={case.ranks}"),
            config=self._options.config, pipeline=self._options.pipeline, check=False, trials=False,
            in_place=in_place, jobs=self._options.jobs, plugins=self._plugins,
            known=self._options.simulated.setdefault(machine, {}),
        )  # fmt: skip
        of_count = {row.count: row for row in rows}
        found: dict[TableRow, Measured] = {}
        for nbytes in sizes:
            (count,) = counts_of([nbytes], kind, case.dtype, case.ranks)
            row = of_count[count]
            found[nbytes, False] = row.out_of_place
            found[nbytes, True] = row.in_place or row.out_of_place
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


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{") and '"kernbench.ccl/' in text


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


def _busbw_faults(at: str, kind: CollectiveKind, ranks: int, line: NcclLine) -> list[str]:
    """Say where the bus bandwidth of a line is that of another collective or number of ranks."""
    found = []
    for ns, (time, word) in zip((line.out_of_place, line.in_place), line.bus, strict=False):
        if ns is None or word in NOT_MEASURED or ranks < 2:
            continue
        moved = kind.busbw(line.size, 1.0, ranks)
        if not agree(moved, ns, time, word):
            found.append(
                f"{at}: busbw must be that of {kind.name} of {ranks} ranks, {moved / ns:.4g} GB/s, not {word!r}; check "
                "what stands above the table, --collective and --ranks."
            )
    return found


def _tables(rows: Sequence[LogRow]) -> dict[tuple[Hashable, ...], CollectiveCase]:
    """Return one case of each set of rows that are simulated together."""
    return {_case(row).table: _case(row) for row in rows}


def _span(sizes: Sequence[int]) -> str:
    """Tell one size, or the least and the largest of several."""
    least, most = format_bytes(min(sizes)), format_bytes(max(sizes))
    return least if least == most else f"{least} to {most}"


def _case(row: LogRow) -> CollectiveCase:
    assert isinstance(row.case, CollectiveCase)
    return row.case


def _label(case: CollectiveCase) -> str:
    place = ", in place" if case.in_place else ""
    return f"{case.collective} of {case.ranks} ranks, {format_bytes(case.nbytes)}{place}"
