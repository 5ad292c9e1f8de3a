"""What a run answers: times, where they went, the verdict on the data, and what was not modelled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from kernbench_core.errors import PluginError, UsageError, in_words
from kernbench_core.process.notebook import Pictured
from kernbench_core.runs.answers import Correctness, GivenByCorrectness, Styled, count_hazards, words_of
from kernbench_core.runs.listing import Document, Listing, listed
from kernbench_core.runs.outputs import Outputs
from kernbench_core.units import finite, format_time

if TYPE_CHECKING:
    from kernbench_core.host.rows import Row
    from kernbench_core.host.timing import NotModelled, ResourceUse, TimingResult
    from kernbench_core.oplog.log import OpLog
    from kernbench_core.values.memory_store import MemoryStore

SCHEMA = "kernbench.run/1"
#: The phases of a run in the order in which a reader expects them; their times sum to the total.
PHASES = ("host_to_device", "launch", "kernel", "device_to_host")
_Answer = TypeVar("_Answer")


@attrs.frozen(repr=False, eq=False)
class RunResult(GivenByCorrectness, Pictured):
    """One finished (or interrupted) run. `to_json` gives what `--json` prints.

    Results are equal where what `--json` prints is, but wall times, and `outputs`, which follow from the rest. A
    pickled result, or one from the cache, has its figures, launches, links, ops and the outputs that were computed;
    `op_log` and `store` stay behind.

    `correctness` says whether it is right, and what it has is here, too, as `verified` and `hazards`. `op_log` and
    `store` are phase 1's own, so that a notebook can go on from here. `outputs` are what kernels wrote, `rows` what the
    bench reported with `rt.report`. `parts` are what parts of runs answered, by name, as `explain`, `tcm_map` and
    `timeline`, None for those that were not asked; each is an attribute, too, and `part` finds it by its class. What
    the part `figures` has of launches, links, kernel lines and ops are attributes as well: `launches`, `kernels`,
    `links`, `components`, `lines`, `functions`, `op_kinds`, `models`, `ops`, `masked_share`. `asked` names the parts
    that were asked for, and not only needed by others. `unwritten` are the options of files, as "--out", that an
    interrupt left unwritten.

    >>> result = kb.run("vector-add", "tiny", {"n": 64}, verify_data=True)  # a RunResult
    >>> result.verified, [record.op_name for record in result.op_log].count("add")
    (True, 8)
    >>> max(result.phases, key=result.phases.get)
    'host_to_device'
    """

    bench: str
    params: Mapping[str, Any]
    topology: str
    device: str
    timing: TimingResult
    wall_s: float
    _op_log_sha256: str | OpLog | None
    _manifest: Mapping[str, Any]
    _op_log: OpLog | None
    _store: MemoryStore | None
    correctness: Correctness = attrs.field(factory=Correctness)
    rows: tuple[Row, ...] = attrs.field(default=(), converter=listed)
    outputs: Outputs = attrs.field(factory=lambda: Outputs(None))
    parts: Mapping[str, Any] = attrs.field(factory=dict)
    asked: tuple[str, ...] = ()
    interrupted: bool = False
    unwritten: tuple[str, ...] = ()

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
    def op_log_sha256(self) -> str | None:
        """The hash of the op log, worked out when it is first asked for; None of a run that was interrupted."""
        known = self._op_log_sha256
        if known is not None and not isinstance(known, str):
            known = known.sha256()
            object.__setattr__(self, "_op_log_sha256", known)
        return known

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What it takes to run it again, and the hash of its op log: the document `manifest.json` without its files."""
        return Document({**self._manifest, "op_log_sha256": self.op_log_sha256} if self._manifest else {})

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
    def from_cache(self) -> bool:
        """Whether it was not simulated now."""
        return getattr(self.parts.get("cached"), "hit", False)

    @property
    def cache_key(self) -> str | None:
        """What the cache knows it by; None where it is not kept, or the cache was not asked."""
        return getattr(self.parts.get("cached"), "key", None)

    @property
    def cache_note(self) -> str:
        """What there is to say of the cache, "" where it was not asked."""
        return getattr(self.parts.get("cached"), "note", "")

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
            **self.correctness.to_json(),
            "late_starts": [attrs.asdict(late) for late in timing.late_starts],
            "busiest": [attrs.asdict(use) for use in timing.busiest],
            **{name: value for each in self._beside() for name, value in each.to_json().items()},
            "outputs": self.outputs.to_json(),
            **self.correctness.reads_json(),
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

    def json_text(self) -> str:
        """Return what `--json` prints; PluginError naming the part of the run whose answer is no plain JSON."""
        try:
            return json_text(self.to_json())
        except Exception:
            for name, answer in self._answers():
                of = f"{type(answer).__module__}.{type(answer).__qualname__}.to_json"
                try:
                    json_text(answer.to_json() if hasattr(answer, "to_json") else None)
                except Exception as error:
                    must = f"part of runs {name!r} must answer plain JSON types, without NaN and inf"
                    raise PluginError(f"{must}, but {of} raised {in_words(error)}; correct it.") from error
            raise

    def __getattr__(self, name: str) -> Any:
        """Return the answer of a part of the run, None where it was not asked, or what one gives the result."""
        if name == "parts":  # of an object that is being made
            raise AttributeError(name)
        if name in self.parts:
            return self.parts[name]
        for each in (self.correctness, *self._beside()):
            if name in each.GIVES:
                return getattr(each, name)
        for place in ("timing", "verification", "op_verification"):
            if hasattr(getattr(self, place), name):
                raise AttributeError(f"a run has no {name!r}; its .{place}.{name} has it")
        raise AttributeError(f"a run has no {name!r}; its parts are {', '.join(sorted(self.parts)) or 'none'}")

    def part(self, kind: type[_Answer]) -> _Answer | None:
        """Return the answer of a class, as `Explanation`; None where no part gave one."""
        return next((each for each in self.parts.values() if isinstance(each, kind)), None)

    def __dir__(self) -> list[str]:
        given = (name for each in (self.correctness, *self._beside()) for name in each.GIVES)
        return [*super().__dir__(), *self.parts, *given]

    def _answers(self) -> Iterator[tuple[str, Any]]:
        """Yield what parts answered that stands in JSON under the name of its part."""
        answers = sorted(self.parts.items())
        return ((name, each) for name, each in answers if each is not None and not hasattr(each, "GIVES"))

    def _beside(self) -> Iterator[Any]:
        """Yield the answers whose attributes, those that they say, are the result's, and whose JSON is its own."""
        return (each for _, each in sorted(self.parts.items()) if hasattr(each, "GIVES"))

    def words(self) -> Iterator[Styled]:
        """Say in words whether it is right, each piece with its style."""
        return words_of(self.correctness, self.interrupted, self.unwritten)

    def __repr__(self) -> str:
        verdict = {True: "verified", False: "WRONG DATA", None: "data not verified"}[self.verified]
        hazards = f", {count_hazards(self.hazards)}" if self.hazards else ""
        note = ", interrupted" if self.interrupted else ""
        return (
            f"<RunResult {self.bench} on {self.topology}: {format_time(self.total_ns)}, "
            f"{self.timing.ops} ops, {self.events} events, {verdict}{hazards}{note}>"
        )

    def _compared(self) -> dict[str, object]:
        """Return all that makes two results equal."""
        apart = ("wall_s", "from_cache", "outputs")
        return {name: value for name, value in self.to_json().items() if name not in apart}

    def __eq__(self, other: object) -> bool:
        return self._compared() == other._compared() if isinstance(other, RunResult) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.bench, self.topology, self.total_ns, self.op_log_sha256))

    def __getstate__(self) -> dict[str, Any]:
        """Leave op log and store behind."""
        found = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        return {**found, "_op_log": None, "_store": None, "_op_log_sha256": self.op_log_sha256}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


def _left_behind(what: str, instead: str) -> UsageError:
    return UsageError(
        f"the {what} must be read where the run was made, as pickled and cached results do not include it; {instead}, "
        "and a folder written with out= holds the whole run."
    )


def json_text(value: object) -> str:
    """Write a JSON object for people and programs: indented, keys in their given order, strict numbers."""
    return json.dumps(value, indent=2, allow_nan=False)
