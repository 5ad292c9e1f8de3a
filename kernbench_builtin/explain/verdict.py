"""The verdict of a run, in a few lines: how fast, whether it is right, what limits it, and what to try."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_builtin.explain.advice.advice import advise
from kernbench_builtin.explain.advice.facts import Facts, KernelOutline, facts_of, kind_of, outline_of
from kernbench_builtin.explain.advice.rule import Advice
from kernbench_builtin.explain.advice.unit_times import Queueing
from kernbench_builtin.machines.figures.launch import LATE, path_of
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_builtin.explain.roof import Roof
    from kernbench_builtin.machines.figures.launch import PathCall
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.runs.answers import Correctness
    from kernbench_core.runs.result import RunResult

#: A kernel that comes so near to the roof is at it.
_AT_THE_ROOF: Final = 0.85
#: Lines that a sentence names, and the share of their kind that they have together.
_MOST_LINES, _ENOUGH = 3, 0.8
#: A place that is so busy sets the pace of a pipeline.
_BUSY: Final = 0.6
#: Arrays of composites do so that are at work for less, as pipelines fill and drain.
_AT_WORK: Final = 0.4
#: ... and nearly as long as the DMA.
_NEARLY: Final = 0.8
#: A path has more of a kind of calls than the slowest PE itself by so much where it leads through other PEs.
_OF_OTHERS: Final = 0.05
#: Of so many ops causes are looked for, which takes about 200 B for each.
_MOST_OPS: Final = 1 << 23
#: Pieces of advice in the few lines.
_TRIED: Final = 2
#: What tells more, with the part of runs that does.
_MORE: Final = {
    "--explain": "explain", "--report page.html": "report", "kernbench explain RUN of a saved run": "",
}  # fmt: skip
#: What stands before the last of one, two and more.
_OR: Final = ("", "", " or ", ", or ")
#: Where the sentence of a failure goes on behind what it is about.
_ABOUT: Final = re.compile(", checked at |, which gives | must ")

_DOES: Final = {
    "load": "waiting for", "store": "waiting for", "atomic": "waiting for", "message": "waiting for messages, in",
    "composite": "running", "product": "computing", "compute": "computing",
}  # fmt: skip
_LIMITS: Final = {
    "pe_gemm": "the matrix units", "pe_math": "the vector units", "hbm": "HBM", "noc": "the NoC",
}  # fmt: skip
_PLACES: Final = {
    "hbm_ctrl channel": "HBM channels", "hbm wire": "the wires of HBM controllers", "noc wire": "wires of the NoC",
    "attach wire": "wires between routers and units", "ucie wire": "UCIe wires between cubes",
    "scale_up wire": "links between packages", "io_noc wire": "wires of the IO chiplets", "sram channel": "SRAM",
}  # fmt: skip
#: What loads and stores of a PE are made of, but for queueing.
_MADE_OF: Final = {
    "unit": "the way of commands to its units and back", "control": "the way of commands to the DMA and back",
    "set-up": "set-up in the DMA (pe_dma)", "translation": "translation of addresses (pe_mmu)",
    "latency": "the latency of the way there and back, memory's too", "bytes": "the bytes on their way",
    "memory": "memory", "scratchpad": "the scratchpad (pe_tcm) and its wires",
}  # fmt: skip


@attrs.frozen
class Limiter:
    """Say what most of the time of the slowest PE is: a share of it, calls of a kind of unit at lines, and mostly why.

    `kind` is as `facts.kind_of` has it, `lines` are as "gemm.py:22"; `cause` is "" where nothing is known of it.
    `others` says whether it is the time of PEs, too, that the slowest one waits for.
    """

    kind: str
    share: float
    calls: tuple[str, ...]
    lines: tuple[str, ...]
    cause: str
    others: bool = False

    @property
    def sentence(self) -> str:
        """Say it."""
        if self.kind == "issue":
            told = "on its CPU, which issues commands and reads elements"
        elif self.kind == LATE:
            told = "waiting for messages of a launch that began later, on other PEs"
        else:
            told = f"{_DOES[self.kind]} {_listed(self.calls)}"
            told += f" ({_listed(_short(self.lines))})" if self.lines else ""
        why = f", mostly {self.cause}" if self.cause else ""
        who = "PE and those that it waits for spend" if self.others else "PE spends"
        return f"the slowest {who} {self.share:.0%} of {'the' if self.others else 'its'} time {told}{why}."


@attrs.frozen(repr=False)
class RunVerdict:
    """Say what limits a run, and what to try; times in ns.

    `data` says whether it is right, in words; `kernel_ns` is the phase `kernel`, `roof_ns` what no schedule goes below,
    by `limit` ("hbm", "noc", or a kind of unit, as "pe_gemm"). `races` is the line of memory uses that nothing orders,
    `data_right` whether all else is right. All but these is None, or empty, where no kernel ran to its end. `more` is
    what tells more.
    """

    data: str
    right: bool
    total_ns: float
    kernel_ns: float | None = None
    roof_ns: float | None = None
    limit: str = ""
    kernel: str = ""
    limiter: Limiter | None = None
    advice: tuple[Advice, ...] = ()
    races: str = ""
    data_right: bool = True
    more: tuple[str, ...] = tuple(_MORE)

    @property
    def share(self) -> float | None:
        """The roof over the time of the kernel, from 0 to 1."""
        return self.roof_ns / self.kernel_ns if self.roof_ns and self.kernel_ns else None

    @property
    def wrong(self) -> tuple[str, ...]:
        """The lines that say what is not right, before all others."""
        data = "" if self.data_right else f"{self.data}: make it right first."
        return tuple(filter(None, (self.races, data)))

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict in a few lines."""
        return tuple(self.told())

    def told(self, most: int = _TRIED) -> Iterator[str]:
        """Yield its lines, with so many pieces of advice at most."""
        yield from self.wrong
        data = f"; {self.data}" if self.data_right and self.data else ""
        if self.kernel_ns is None:
            yield f"{format_time(self.total_ns)}; no kernel ran to its end{data}."
            yield from () if self.limiter is None else (self.kernel + self.limiter.sentence,)
            return
        told = f"kernel {format_time(self.kernel_ns)}"
        if self.share is not None and self.roof_ns is not None:
            by = f"(by {_LIMITS.get(self.limit, self.limit)})"
            told += f", {self.share:.0%} of what the machine's roof allows {by}"
            if self.share > 1 + 1e-9:
                told = (
                    f"kernel {format_time(self.kernel_ns)}, where the machine's roof allows "
                    f"{format_time(self.roof_ns)} {by}: a model does less than it is asked for, or declares too low a "
                    "peak"
                )
        yield f"{told}{data}."
        if self.limiter is not None:
            yield self.kernel + self.limiter.sentence
        yield from (each.line for each in self.advice[:most])
        if self.more:
            yield f"more: {', '.join(self.more[:-1])}{_OR[min(len(self.more), 3)]}{self.more[-1]}."

    def of_unsaved(self, asked: Sequence[str]) -> RunVerdict:
        """Return the verdict of a command that saves no run, and was asked for some parts: it names only others."""
        return attrs.evolve(self, more=tuple(way for way, part in _MORE.items() if part and part not in asked))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        limiter = None if self.limiter is None else attrs.asdict(self.limiter) | {"sentence": self.limiter.sentence}
        return {**attrs.asdict(self), "limiter": limiter, "share": self.share, "lines": [*self.lines]}

    def __repr__(self) -> str:
        return "\n".join(self.lines)


def verdict_of(session: GraphEngine) -> RunVerdict:
    """Return the verdict on what has run so far, without its `data`."""
    total, long = session.hardware.env.now, len(session.op_log) > _MOST_OPS
    found = outline_of(session) if long else None
    if found is not None:
        outline, _ = found
        limiter = _limiter(outline.path, lambda _: "")
        return RunVerdict("", True, total, outline.kernel_ns, kernel=_named(outline), limiter=limiter)
    facts = None if long else facts_of(session)
    if facts is None:
        (kernel, limiter), ended = _so_far(session), outline_of(session)
        took = None if ended is None else ended[0].kernel_ns  # 0 of kernels that do nothing, which have no facts
        return RunVerdict("", True, total, took, kernel=kernel, limiter=limiter)
    return RunVerdict(
        "", True, total, facts.kernel_ns, facts.roof.ns or None, _limit(facts.roof), _named(facts), limiter_of(facts),
        advise(facts),
    )  # fmt: skip


def cut_short(session: GraphEngine) -> Iterator[str]:
    """Yield what limited a run until now, or that this cannot be said."""
    found = verdict_of(session)
    if found.limiter is None:
        yield "what limited it until then cannot be said: no command of a kernel had ended."
    else:
        yield from ("until then:", *(f"  {line}" for line in found.told() if not line.startswith("more: ")))


def _so_far(session: GraphEngine) -> tuple[str, Limiter | None]:
    """Return what most of the time of the PE went to that has come least far in a launch, and which that is."""
    running = [
        (state.step.end, state.pe, state.launch, state.step)
        for state in session.device.kernels.states.values()
        if state.launch is not None and state.step is not None and state.pe not in state.launch.ended_ns
    ]
    if not running:
        return "", None
    end, pe, launch, step = min(running, key=lambda each: each[:2])
    limiter = _limiter(path_of(step, launch.started_ns[pe], end), lambda _: "")
    return f"{getattr(launch.kernel, '__name__', 'a kernel')}, which had not ended on {len(running)} PEs: ", limiter


def _limit(found: Roof) -> str:
    """Return what sets a roof: "hbm", "noc", or the kind of unit that has most to do."""
    units = found.units
    return found.limit if found.limit != "compute" else max(units, key=lambda kind: units[kind], default="compute")


def _named(facts: Facts | KernelOutline) -> str:
    """Say which kernel is meant, where there are several, or several launches of it."""
    if facts.kernels == facts.launches == 1:
        return ""
    share = facts.own_ns / facts.kernel_ns if facts.kernel_ns else 0.0
    launches = "1 launch" if facts.launches == 1 else f"{facts.launches} launches"
    return f"{facts.kernel}, {launches} and {min(share, 1.0):.0%} of the time of all kernels: "


def with_data(verdict: RunVerdict, result: RunResult) -> RunVerdict:
    """Return a verdict that says whether the data is right."""
    found = result.correctness
    data_right = found.right and not found.outside
    return attrs.evolve(
        verdict, data=_data(found, result.interrupted), right=data_right and not found.hazards, races=_races(found),
        data_right=data_right,
    )  # fmt: skip


def _races(found: Correctness) -> str:
    """Say which uses of memory nothing orders, the first of several, and what orders them; "" for none."""
    if not found.hazards:
        return ""
    first, more = found.hazards[0], len(found.hazards) - 1
    told = f"{'RACE' if not more else f'{more + 1} RACES, the first'}: "
    if not first.has_order:
        return f"{told}{first}: make it right first."
    uses = first.first, first.second
    calls = [*dict.fromkeys(use.call for use in uses)]
    lines = _short(tuple(dict.fromkeys(PurePath(use.line).name for use in uses)))
    both = _listed(calls) if len(calls) > 1 else f"two programs' {calls[0]}"
    return f"{told}{both} of {first.place} ({_listed(lines)}) have no order: make it right first; {found.orders}."


def _data(found: Correctness, interrupted: bool) -> str:
    if interrupted:
        return "interrupted: only what ran until then counts"
    told = {True: "data verified", False: "DATA IS WRONG", None: "data not verified"}[found.verified]
    host = found.host_reads
    if found.ops_verified is False and found.verified is not False:
        told = "OPS ARE WRONG"
    if not found.right and found.failures:
        told += f" in {_ABOUT.split(found.failures[0])[0]}"
    if found.verified is None and found.uncompared:
        told = found.uncompared
    elif found.verified is None and host.read and host.confirmed is not None:
        told = f"data not verified; kernbench confirmed {host.confirmed} of {host.read} values that the host read"
    return f"{told}, accesses outside of tensors" if found.outside else told


def limiter_of(facts: Facts) -> Limiter | None:
    """Return what has the greatest share of the slowest PE's time: calls of one kind."""
    return _limiter(facts.path, lambda kind: cause_of(facts, kind), facts.at_work)


def _limiter(
    path: Sequence[PathCall], cause: Callable[[str], str], at_work: Mapping[str, float] | None = None
) -> Limiter | None:
    """Return it for a path on a PE whose units were so much `at_work`; it may lead through PEs that sent messages."""
    kinds: dict[str, list[PathCall]] = {}
    for call in path:
        kinds.setdefault(kind_of(call), []).append(call)
    if not kinds:
        return None
    kind = max(kinds, key=lambda each: sum(call.ns for call in kinds[each]))
    together = sum(call.ns for call in kinds[kind])
    named = [*_first(kinds[kind], together)] if kind not in ("issue", LATE) else []
    names = dict.fromkeys(call.call for call in named)
    lines = dict.fromkeys(call.line for call in named)
    share, own = together / sum(call.ns for call in path), (at_work or {}).get(kinds[kind][0].unit, 0.0)
    others = "message" in kinds and share > own + _OF_OTHERS and kind not in ("issue", LATE)
    return Limiter(kind, share, tuple(names), tuple(lines), cause(kind), others)


def _first(calls: Sequence[PathCall], together: float) -> Iterator[PathCall]:
    """Yield the longest calls, until they have most of the time, or there are many."""
    had = 0.0
    for call in calls[:_MOST_LINES]:
        if had >= _ENOUGH * together:
            return
        had += call.ns
        yield call


def _listed(names: Sequence[str]) -> str:
    """Join names: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _short(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return lines of which those of the same file as the one before are numbers alone."""
    found, before = [], ""
    for line in lines:
        file, _, number = line.rpartition(":")
        found.append(number if file == before else line)
        before = file
    return tuple(found)


def cause_of(facts: Facts, kind: str) -> str:
    """Return why calls of a kind take what they take, "" where that is not known."""
    if facts.mixed:  # what the run shows is of other kernels, too
        return ""
    if facts.roof.ns >= _AT_THE_ROOF * facts.kernel_ns:
        limit = _limit(facts.roof)
        return f"at the roof of {_LIMITS.get(limit, limit)}"
    if kind in ("load", "store"):
        return _way(facts, kind)
    if kind in ("product", "compute"):
        calls = facts.calls(kind)
        each = sum(call.ns for call in calls) / (sum(call.commands for call in calls) or 1)
        longest = max((facts.longest.get(call.unit, each) for call in calls), default=each)
        return _MADE_OF["unit"] if longest < each / 2 else ""
    links = facts.use("scale_up wire") if kind == "message" else None
    if links is not None and links.utilisation > _BUSY:
        return f"for links between packages, the busiest at work {links.utilisation:.0%} of the time"
    if kind == "composite":
        return _of_composite(facts)
    return ""


def _of_composite(facts: Facts) -> str:
    """Say which stage of tiles sets the pace, or that all wait for the way between them."""
    array, at_work = facts.use("pe_gemm"), {**facts.at_work, "pe_scheduler": 0.0}
    sets_pace = at_work.get("pe_gemm", 0.0) > _NEARLY * at_work.get("pe_dma", 0.0)
    if array is not None and (array.mean_utilisation > _BUSY or (array.mean_utilisation > _AT_WORK and sets_pace)):
        return f"for its products: arrays are busy {array.mean_utilisation:.0%} of the time"
    for unit, stage in (("pe_fetch_store", "bringing tiles to its units"), ("pe_math", "its math")):
        if facts.at_work.get(unit, 0.0) > _BUSY:
            return f"for {stage}: {unit} is at work {facts.at_work[unit]:.0%} of the time"
    if max(at_work.values()) < _AT_WORK:
        return "for the way of tiles from unit to unit"
    parts = _parts(facts, "composite")
    if at_work.get("pe_math", 0.0) * sum(parts.values()) > at_work.get("pe_dma", 0.0) * max(parts.values()):
        return f"for its math: pe_math is at work {at_work['pe_math']:.0%} of the time"
    way = _way(facts, "composite")
    return f"for its loads and stores{': ' + way if way else ''}"


def _way(facts: Facts, kind: str) -> str:
    """Say what loads, stores or both are made of, or which kind of place is at work nearly all the time."""
    full = [use for use in facts.busiest if use.kind in _PLACES and use.mean_utilisation > _BUSY]
    if full:
        most_used = max(full, key=lambda use: use.mean_utilisation)
        return f"for {_PLACES[most_used.kind]}, which are busy {most_used.mean_utilisation:.0%} of the time"
    parts = _parts(facts, kind)
    together = sum(parts.values())
    most = max(parts, key=lambda part: parts[part])
    if not together or parts[most] < together / 3:
        return ""
    if most == "queue":
        return "queueing" if facts.queueing is None else f"queueing at {_place(facts.queueing)}"
    return _MADE_OF[most]


def _parts(facts: Facts, kind: str) -> dict[str, float]:
    """Return what loads, stores or both of the slowest PE are made of, in ns."""
    trips, control = facts.own_trips[kind], facts.of_commands[kind] if kind != "composite" else 0.0
    latency = trips["propagation"] + trips["overhead"]
    parts = {
        "set-up": trips["set_up"], "translation": trips["translation"], "queue": trips["queueing"], "latency": latency,
        "bytes": trips["serialisation"], "memory": trips["service"],
        "scratchpad": trips["scratchpad"],
    }  # fmt: skip
    parts["control"] = sum(parts.values()) * control / max(1 - control, 0.01)
    return parts


def _place(found: Queueing) -> str:
    where = _PLACES.get(found.kind, f"{found.kind}s")
    return f"{where} of {found.cube}" if found.cube else where
