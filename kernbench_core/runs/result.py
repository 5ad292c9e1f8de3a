"""What a run answers: times, where they went, the verdict on the data, and what was not modelled."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from kernbench_core.compute.on_demand import BranchValues, HostReads
from kernbench_core.errors import UsageError
from kernbench_core.host.figures.columns import ColumnTable
from kernbench_core.host.figures.components import component_kinds
from kernbench_core.host.figures.listing import Document, Listing
from kernbench_core.memory.outside import count_outside
from kernbench_core.process.notebook import Pictured
from kernbench_core.runs.outputs import Outputs
from kernbench_core.units import finite, format_time

if TYPE_CHECKING:
    from kernbench_core.compute.backends import ComputedBy
    from kernbench_core.compute.verification import Verification
    from kernbench_core.host.figures.kernels import KernelFigures
    from kernbench_core.host.figures.launch import LaunchFigures
    from kernbench_core.host.rows import Row
    from kernbench_core.host.timing import NotModelled, ResourceUse, TimingResult
    from kernbench_core.kernel.tl.python_reads import PythonReads
    from kernbench_core.memory.hazard import Hazard
    from kernbench_core.memory.outside import OutsideAccess
    from kernbench_core.oplog.log import OpLog
    from kernbench_core.values.memory_store import MemoryStore

SCHEMA = "kernbench.run/1"
#: The phases of a run in the order in which a reader expects them; their times sum to the total.
PHASES = ("host_to_device", "launch", "kernel", "device_to_host")
Styled = tuple[str, str]
"""A piece of a line, and how a terminal shows it: "" as everything else."""
Found = TypeVar("Found")
_GOOD, _BAD, _OPEN = "bold green", "bold red", "yellow"
#: What a result says of the cache.
_OF_CACHE = ("from_cache", "cache_key", "cache_note")


def _listed(found: Iterable[Any]) -> Listing[Any]:
    return Listing(found)


@attrs.frozen(repr=False, eq=False)
class RunResult(Pictured):
    """One finished (or interrupted) run. `to_json` gives what `--json` prints.

    Results are equal where all values are but wall times; `outputs`, which follow from the rest, are not compared. A
    pickled result, or one from the cache, has its figures, launches, links, ops and the outputs that were computed;
    `op_log` and `store` stay behind. `from_cache` says that it was not simulated now, `cache_key` what the cache knows
    it by; None where it is not kept, for the reason in `cache_note`, or the cache was not asked.

    `branch_values` says how many values kernels branched on that only phase 2 knows, and how many it confirmed,
    `host_reads` the same of what the host read before the end. `python_reads` says what of loaded data kernels read
    into Python, whose arithmetic is not timed; None where they read nothing.
    `verified` is None when the data was not verified, or the bench checks no tensor. `op_log` and `store`
    are phase 1's own, so that a notebook can go on from here. `launches` have figures of their own, `kernels` what they
    did together; `links` are all wires and channels, `components` all components, `lines` the lines of kernels with the
    ops that they gave, `functions` the functions that these are in, `op_kinds` the op log by name of op, `models` the
    SHA-256 of the code of each implementation ("" where it has no file), `outputs` what kernels wrote. `parts` are what
    parts of runs answered, by name, as `explain`, `tcm_map` and `timeline`, None for those that were not asked; each is
    an attribute, too, and `part` finds it by its class. `hazards` are uses of memory that nothing orders, found with
    and without data; `outside` are accesses to elements outside of tensors, where these are no errors. `rows` are what
    the bench reported with `rt.report`. `op_verification` is None unless ops were to be verified. `computed_by` says
    what computed data, None where nothing did. `unwritten` are the options of files, as "--out", that an interrupt left
    unwritten.

    >>> result = kb.run("vector-add", "tiny", {"n": 64}, verify_data=True)  # a RunResult
    >>> result.verified, [record.op_name for record in result.op_log].count("add")
    (True, 4)
    >>> max(result.phases, key=result.phases.get)
    'host_to_device'
    """

    bench: str
    params: Mapping[str, Any]
    topology: str
    device: str
    timing: TimingResult
    wall_s: float
    verification: Verification | None
    op_log_sha256: str | None
    manifest: Mapping[str, Any] = attrs.field(converter=Document)
    _op_log: OpLog | None
    _store: MemoryStore | None
    interrupted: bool = False
    parts: Mapping[str, Any] = attrs.field(factory=dict)
    hazards: tuple[Hazard, ...] = attrs.field(default=(), converter=_listed)
    outside: tuple[OutsideAccess, ...] = attrs.field(default=(), converter=_listed)
    branch_values: BranchValues = attrs.field(factory=BranchValues)
    host_reads: HostReads = attrs.field(factory=HostReads)
    python_reads: PythonReads | None = None
    rows: tuple[Row, ...] = attrs.field(default=(), converter=_listed)
    op_verification: Verification | None = None
    computed_by: ComputedBy | None = None
    launches: tuple[LaunchFigures, ...] = attrs.field(default=(), converter=_listed)
    kernels: KernelFigures | None = None
    links: ColumnTable = attrs.field(factory=lambda: ColumnTable(0, {}))
    components: ColumnTable = attrs.field(factory=lambda: ColumnTable(0, {}))
    lines: ColumnTable = attrs.field(factory=lambda: ColumnTable(0, {}))
    functions: ColumnTable = attrs.field(factory=lambda: ColumnTable(0, {}))
    op_kinds: ColumnTable = attrs.field(factory=lambda: ColumnTable(0, {}))
    models: Mapping[str, str] = attrs.field(factory=dict)
    outputs: Outputs = attrs.field(factory=lambda: Outputs(None))
    unwritten: tuple[str, ...] = ()
    from_cache: bool = False
    cache_key: str | None = None
    cache_note: str = ""
    _all_links: bool = False
    asked: tuple[str, ...] = ()
    _op_columns: list[ColumnTable] = attrs.field(factory=list)

    @property
    def op_log(self) -> OpLog:
        """What phase 1 recorded; UsageError where the result was unpickled, or is from the cache."""
        if self._op_log is None:
            raise _left_behind("op log", "r.ops has its columns")
        return self._op_log

    @property
    def store(self) -> MemoryStore:
        """What memory holds at the end; UsageError where the result was unpickled, or is from the cache."""
        if self._store is None:
            raise _left_behind("memory store", "r.outputs has what was computed of it")
        return self._store

    @property
    def total_ns(self) -> float:
        """Simulated time of the whole run, in ns."""
        return self.timing.total_ns

    @property
    def phases(self) -> Mapping[str, float]:
        """Simulated time of each of `PHASES`, in ns; they sum to `total_ns`."""
        return self.timing.phases

    @property
    def events(self) -> int:
        """How many events the simulator processed."""
        return self.timing.events

    @property
    def ops(self) -> ColumnTable:
        """The op log by column, a row for each record; `len` counts them."""
        if not self._op_columns:
            from kernbench_core.host.figures.ops import op_columns

            self._op_columns.append(op_columns(self.op_log))
        return self._op_columns[0]

    @property
    def masked_share(self) -> float:
        """The share of the blocks that DMAs loaded and stored, in bytes, that masks left out, from 0 to 1.

        Which lanes of a computation lead to a result is not known: FLOP are of all lanes.
        """
        from kernbench_core.host.figures.ops import masked_share

        return masked_share(self.ops)

    @property
    def busiest(self) -> tuple[ResourceUse, ...]:
        """The resources with the highest utilisation, highest first."""
        return Listing(self.timing.busiest)

    @property
    def not_modelled(self) -> tuple[NotModelled, ...]:
        """What the components that this run's traffic crossed ignore."""
        return Listing(self.timing.not_modelled)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the machine is beyond the hardware of today, or was taken for something else: a sentence each."""
        return self.timing.warnings

    @property
    def verified(self) -> bool | None:
        """Whether every checked tensor is right; None when that was not asked for, or no tensor is checked."""
        return self.verification.ok if self.verification is not None and self.verification.checked else None

    @property
    def ops_verified(self) -> bool | None:
        """Whether every op gives what it gives when computed anew by itself; None when that was not asked for."""
        return None if self.op_verification is None else self.op_verification.ok

    @property
    def right(self) -> bool:
        """Whether nothing that was verified is wrong."""
        return self.verified is not False and self.ops_verified is not False

    @property
    def max_abs_error(self) -> float | None:
        """The largest absolute difference from what was expected; None when nothing was compared."""
        return self.verification.max_abs_error if self.verification is not None and self.verification.checked else None

    def to_json(self) -> dict[str, object]:
        """Return the object that `--json` prints: plain JSON types, times in ns."""
        timing = self.timing
        return {
            "schema": SCHEMA,
            "bench": self.bench,
            "params": dict(self.params),
            "topology": self.topology,
            "device": self.device,
            "total_ns": timing.total_ns,
            "phases": {name: timing.phases[name] for name in PHASES},
            "ops": timing.ops,
            "events": timing.events,
            "hops": timing.hops,
            "wall_s": self.wall_s,
            "from_cache": self.from_cache,
            "interrupted": self.interrupted,
            "verified": self.verified,
            "max_abs_error": finite(self.max_abs_error),
            **self.verdict_json(),
            "ops_verified": self.ops_verified,
            "ops_checked": 0 if self.op_verification is None else self.op_verification.checked,
            "ops_wrong": 0 if self.op_verification is None else self.op_verification.wrong,
            "op_failures": [] if self.op_verification is None else list(self.op_verification.failures),
            "computed_by": None if self.computed_by is None else attrs.asdict(self.computed_by),
            "late_starts": [attrs.asdict(late) for late in timing.late_starts],
            "busiest": [attrs.asdict(use) for use in timing.busiest],
            "kernels": None if self.kernels is None else self.kernels.to_json(),
            "launches": [launch.to_json() for launch in self.launches],
            **({"links": self.links.to_json()} if self._all_links else {}),
            "components": [*component_kinds(self.components)],
            "op_kinds": [*self.op_kinds],
            "lines": [*self.lines],
            "functions": [*self.functions],
            "models": dict(self.models),
            "outputs": self.outputs.to_json(),
            "branch_values": attrs.asdict(self.branch_values),
            "host_reads": attrs.asdict(self.host_reads),
            **({} if self.python_reads is None else {"python_reads": self.python_reads.to_json()}),
            "hazards": [attrs.asdict(hazard) for hazard in self.hazards],
            "outside": [attrs.asdict(each) for each in self.outside],
            "rows": [
                {name: finite(cell) if isinstance(cell, float) else cell for name, cell in row.items()}
                for row in self.rows
            ],
            "warnings": list(self.warnings),
            "statistics": [attrs.asdict(each) for each in timing.statistics],
            "not_modelled": [attrs.asdict(item) for item in timing.not_modelled],
            **{name: part.to_json() for name, part in self._answers() if hasattr(part, "to_json")},
            "op_log_sha256": self.op_log_sha256,
            "manifest": dict(self.manifest),
        }

    def __getattr__(self, name: str) -> Any:
        """Return the answer of a part of the run, None where it was not asked."""
        if name != "parts" and name in self.parts:
            return self.parts[name]
        raise AttributeError(f"a run has no {name!r}; its parts are {', '.join(sorted(self.parts)) or 'none'}")

    def part(self, kind: type[Found]) -> Found | None:
        """Return the answer of a class, as `Explanation`; None where no part gave one."""
        return next((each for each in self.parts.values() if isinstance(each, kind)), None)

    def _answers(self) -> Iterator[tuple[str, Any]]:
        """Yield what parts answered, by name."""
        return ((name, each) for name, each in sorted(self.parts.items()) if each is not None)

    def __repr__(self) -> str:
        verdict = {True: "verified", False: "WRONG DATA", None: "data not verified"}[self.verified]
        hazards = f", {count_hazards(self.hazards)}" if self.hazards else ""
        note = ", interrupted" if self.interrupted else ""
        return (
            f"<RunResult {self.bench} on {self.topology}: {format_time(self.total_ns)}, "
            f"{self.timing.ops} ops, {self.events} events, {verdict}{hazards}{note}>"
        )

    def verdict_json(self) -> dict[str, Any]:
        """Return what was checked, what of it is wrong, and how."""
        found = self.verification
        if found is None:
            return {"checked": 0, "wrong": 0, "failures": []}
        return {"checked": found.checked, "wrong": found.wrong, "failures": list(found.failures)}

    def _values(self) -> tuple[Any, ...]:
        """Return all that makes two results equal."""
        apart = ("wall_s", "timing", "outputs", "_op_log", "_store", "_all_links", "asked", "_op_columns", *_OF_CACHE)
        own = (_settled(getattr(self, field.name)) for field in attrs.fields(RunResult) if field.name not in apart)
        return (attrs.evolve(self.timing, wall_s=0.0), *own)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, RunResult) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.bench, self.topology, self.total_ns, self.op_log_sha256))

    def __getstate__(self) -> dict[str, Any]:
        """Leave op log and store behind; the columns of the op log go along."""
        _ = self.ops
        found = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        return {**found, "_op_log": None, "_store": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


def _settled(value: Any) -> Any:
    """Return a value with one and the same NaN everywhere, which a tuple finds equal, as it is the same object."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {key: _settled(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return tuple(map(_settled, value))
    from kernbench_core.compute.verification import Verification  # a run without data does not load it

    if isinstance(value, Verification):
        return tuple(_settled(getattr(value, each.name)) for each in attrs.fields(Verification) if each.eq)
    return value


def _left_behind(what: str, instead: str) -> UsageError:
    return UsageError(
        f"the {what} must be looked at where the run was made, as a result that was pickled or is from the cache "
        f"leaves it behind; {instead}, and a folder written with out= holds the whole run."
    )


def count_hazards(hazards: Sequence[Hazard]) -> str:
    """Say how many hazards there are."""
    return "1 hazard" if len(hazards) == 1 else f"{len(hazards)} hazards"


def verdict(result: RunResult) -> Iterator[Styled]:
    """Say in words whether the data is right, and how many hazards there are, each piece with its style."""
    yield from _of_data(result)
    ops = result.op_verification
    if ops is not None:
        yield ", ", ""
        yield ("ops verified", _GOOD) if ops.ok else ("OPS ARE WRONG", _BAD)
        yield (f": {ops.checked:,}" if ops.ok else f": {ops.wrong:,} of {ops.checked:,}"), ""
    if result.hazards:
        yield ", ", ""
        yield count_hazards(result.hazards), _BAD
    if result.outside:
        yield ", ", ""
        yield count_outside(result.outside), _BAD
    if result.python_reads is not None and result.python_reads.many:
        yield ", ", ""
        yield result.python_reads.words, _BAD


def _of_data(result: RunResult) -> Iterator[Styled]:
    found, host = result.verification, result.host_reads
    if result.interrupted:
        yield f"interrupted: everything here covers only what ran{_unwritten(result.unwritten)}", "bold yellow"
    elif found is None:
        yield "data not verified (--verify-data does)", _OPEN
    elif found.checked:
        tensors = f"{found.checked} tensor{'' if found.checked == 1 else 's'}"
        yield ("data verified", _GOOD) if found.ok else ("DATA IS WRONG", _BAD)
        of = tensors if found.ok else f"{found.wrong} of {tensors}"
        yield f"{_by(result.computed_by)}: {of}, largest error {found.max_abs_error:.3g}", ""
    elif host.read:
        yield host.words, _GOOD if host.confirmed == host.read else _OPEN
        yield "; the run compares no tensor with a reference", ""
    else:
        yield "data not verified: nothing compares it with a reference (rt.check does)", _OPEN


def _by(found: ComputedBy | None) -> str:
    """Say what computed the data where that is not numpy: " by torch:cpu (...)"."""
    return "" if found is None or found.backend == "numpy" else f" by {found.words}"


def _unwritten(options: Sequence[str]) -> str:
    """Say of files that were asked for that they are not written: "; --out and --trace are not written"."""
    if not options:
        return ""
    names = " and ".join(filter(None, (", ".join(options[:-1]), options[-1])))
    return f"; {names} {'is' if len(options) == 1 else 'are'} not written"


def json_text(value: object) -> str:
    """Write a JSON object for people and programs: indented, keys in their given order, strict numbers."""
    return json.dumps(value, indent=2, allow_nan=False)
