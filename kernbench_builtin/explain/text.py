"""An explanation for a reader: compact tables of where the time went and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kernbench_builtin.explain.critical_path import WITHOUT_OP, Fold, Parts, Segment, fold, sum_of, waited_most_at
from kernbench_builtin.explain.explanation import (
    Achieved,
    Explanation,
    Filling,
    LaunchExplanation,
    LedgerRow,
    QueueingPlace,
    Usage,
    Went,
)
from kernbench_builtin.explain.ledger import PARTS
from kernbench_builtin.machines.figures.roofline import rate_text
from kernbench_core.runs.result import PHASES
from kernbench_core.runs.text_report import bare_table, shortened, show
from kernbench_core.units import format_flops, format_time

_ROWS = 6
#: Blanks between columns, the least that a column which gives way keeps, and what names keep where others can go.
_GAP, _LEAST_WIDTH, _LEAST_NAME = 2, 12, 16
#: Columns from which on there is room for where an op queued most.
_WIDE = 100
#: What is smaller than this share of the whole is summed up as "the rest".
_SMALL = 0.005
#: Share of a line's time from which on issuing its commands is worth a row.
_MUCH = 0.15
#: How many times the mean the longest of several like things must be to be named.
_UNEQUAL = 1.1
_SPARKS = " ▁▂▃▄▅▆▇█"
_NAMES = dict(zip(PARTS, ("prop", "serial", "nodes", "queue", "service"), strict=True))
#: How a sort of segment reads in front of, or instead of, its place.
_WORDS = {
    "request": "{kind} takes the request in",
    "launch": "launch, {kind}",
    "start": "wait for the common start",
    "issue": "{kind} issues commands",
    "command": "commands, {kind}",
    "service": "{kind} at work",
    "read": "reads, {kind}",
    "write": "writes, {kind}",
    "atomic": "atomic ops, {kind}",
    "tile": "tiles, {kind}",
    "payload": "messages, {kind}",
    "note": "notes of arrival, {kind}",
    "credit": "credits, {kind}",
    "answer": "completions, {kind}",
    "response": "answers, {kind}",
    "order": "page-table updates, {kind}",
    "acknowledgement": "their answers, {kind}",
    "timer": "waits of {kind}",
}
_Column = tuple[str, Literal["left", "right"]]


def print_explanation(explanation: Explanation, console: Console, *, verbose: bool = False) -> None:
    """Print where the time went, critical paths, queueing, messages, use over time, and achieved against peak."""
    width = console.width
    parts = [
        _went(explanation, width, verbose),
        *_paths(explanation.launches, width, verbose),
        _queueing(explanation.queueing, width, verbose),
        _ledger(explanation.ledger, width, verbose),
        _usage(explanation.usage, explanation.total_ns, width, verbose),
        *map(_filling, explanation.filling),
        *_achieved(explanation.launches, width, verbose),
    ]
    shown = [part for part in parts if part is not None]
    show(Group(*(Padding(part, (1, 0, 0, 0), expand=False) for part in shown)), console)


def _table(
    columns: Sequence[_Column], rows: Iterable[Sequence[str | Text]], width: int, out: Sequence[str] = ()
) -> Table:
    """Lay out rows; where `width` is too small the first column gives way, or the last one if it is text.

    Where that does not do, columns go `out`, in this order, before numbers are cut.
    """
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [max([len(title), *(len(row[index]) for row in cells)]) for index, (title, _) in enumerate(columns)]
    kept = list(range(len(columns)))
    for title in ("", *out):
        kept = [index for index in kept if not title or columns[index][0] != title]
        gives_way = kept[-1] if columns[kept[-1]][1] == "left" else 0
        excess = sum(widths[index] for index in kept) + _GAP * (len(kept) - 1) - width
        if widths[gives_way] - excess >= min(_LEAST_WIDTH if gives_way else _LEAST_NAME, widths[gives_way]):
            break
    if excess > 0:
        widths[gives_way] = max(_LEAST_WIDTH, widths[gives_way] - excess)
    table = bare_table()
    for title, justify, room in ((*columns[index], widths[index]) for index in kept):
        name = title if justify == "right" else shortened(title, room)
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis", width=room)
    for row in cells:
        if not gives_way:
            row[0].plain = shortened(row[0].plain, widths[0])
        row[gives_way].truncate(widths[gives_way], overflow="ellipsis")
        table.add_row(*(row[index] for index in kept))
    return table


def _went(explanation: Explanation, width: int, verbose: bool) -> RenderableType | None:
    """Lay out the run's critical path by phase and kind of place."""
    total = explanation.total_ns
    if not total:
        return None
    rows: list[Sequence[str | Text]] = []
    for phase in PHASES:
        went = [each for each in explanation.went if each.phase == phase]
        if not went:
            continue
        ns = sum(each.ns for each in went)
        rows.append((Text(phase.replace("_", " "), "bold"), format_time(ns), f"{ns / total:.1%}", "", ""))
        many = went if verbose else [each for each in went if each.ns >= _SMALL * total][:_ROWS]
        rows.extend(
            _sized(
                (f"  {_words(each)}", format_time(each.ns), f"{each.ns / total:.1%}"), each.parts, each.waited_at, width
            )
            for each in many
        )
        rest = ns - sum(each.ns for each in many)
        if rest and many:
            rows.append(("  the rest", format_time(rest), f"{rest / total:.1%}", "", ""))
    columns = _with_mostly([("where the time went", "left"), ("time", "right"), ("share", "right")], width)
    return _table(columns, [row[: len(columns)] for row in rows], width, ("mostly",))


def _with_mostly(columns: Sequence[_Column], width: int) -> Sequence[_Column]:
    """Add the columns that say what a time consisted of; where it queued has one of its own if there is room."""
    wide: Sequence[_Column] = (("queues most at", "left"),) if width >= _WIDE else ()
    return [*columns, ("mostly", "left"), *wide]


def _sized(cells: Sequence[str], parts: Parts, waited_at: str | None, width: int, only: str = "") -> Sequence[str]:
    """Add to a row the cells of `_with_mostly`; `only` is for what consists of service alone."""
    if width >= _WIDE:
        return *cells, _mostly(parts) or only, "" if waited_at is None else _precise(waited_at)
    return *cells, _mostly(parts, None if waited_at is None else _short(waited_at)) or only, ""


def _words(went: Went) -> str:
    return _WORDS[went.sort].format(kind=went.kind)


def _mostly(parts: Parts, waited_at: str | None = None) -> str:
    """Name the parts that matter, the greatest first; nothing when there is only service.

    What is queueing in the first place says where, if `waited_at` is given.
    """
    total = sum(parts)
    shares = sorted(((ns / total, name) for name, ns in zip(PARTS, parts, strict=True) if ns), key=lambda s: -s[0])
    if not total or shares[0] == (1.0, "service"):
        return ""
    if waited_at is not None and shares[0][1] == "queueing":
        return f"queue {shares[0][0]:.0%} at {waited_at}"
    return ", ".join(f"{_NAMES[name]} {share:.0%}" for share, name in shares[:2] if share >= 0.1)


def _paths(launches: Sequence[LaunchExplanation], width: int, verbose: bool) -> Iterable[RenderableType]:
    """Lay out the critical path of each kernel, its launches taken together, by kernel line."""
    kernels: dict[str, list[LaunchExplanation]] = {}
    for launch in launches:
        kernels.setdefault(launch.kernel, []).append(launch)
    ordered = sorted(kernels.items(), key=lambda item: (-sum(each.ns for each in item[1]), item[0]))
    for kernel, group in ordered if verbose else ordered[:3]:
        segments = [segment for launch in group for segment in launch.path]
        many = f"{len(group)} launches of " if len(group) > 1 else ""
        through = sorted({_pe(segment) for segment in segments} - {""})
        title = f"critical path of {many}{kernel}, {format_time(sum(each.ns for each in group))}"
        if through:
            title += f", through {through[0]}" + (f" and {len(through) - 1} more PEs" if len(through) > 1 else "")
        yield Group(Text(title, "bold"), *_balance(group), _lines(segments, width, verbose))


def _balance(launches: Iterable[LaunchExplanation]) -> Iterable[Text]:
    """Say how unequal the PEs' times were in the launch that lost most by it, if that is worth a line."""
    found = [launch.balance for launch in launches if launch.balance is not None]
    worst = max(found, key=lambda each: each.longest_ns - each.mean_ns, default=None)
    if worst is not None and worst.longest_ns > _UNEQUAL * worst.mean_ns:
        yield Text(
            f"  its {worst.pes} PEs took {format_time(worst.mean_ns)} on average; {worst.longest} took longest, "
            f"{format_time(worst.longest_ns)}"
        )


def _pe(segment: Segment) -> str:
    """Return the PE that a segment's op runs on."""
    if segment.op_id is None:
        return ""
    return segment.place.partition("->")[0].rpartition(".")[0]


def _lines(segments: Sequence[Segment], width: int, verbose: bool) -> Table:
    """Lay out a path by kernel line; a line that keeps several units busy is followed by what they did."""
    folds = fold(segments)
    total = sum(each.ns for each in folds)
    many = folds if verbose else [each for each in folds if each.share >= _SMALL][: 2 * _ROWS]
    rows: list[Sequence[str | Text]] = []
    for each in many:
        cells = _row(_line(each), each.ops, each.ns, total)
        rows.append(_sized(cells, each.parts, each.waited_at, width, only="service"))
        for went in _inside(segments, each, total, verbose):
            rows.append(_sized(_row(f"  {_words(went)}", 0, went.ns, total), went.parts, went.waited_at, width))
    rest = total - sum(each.ns for each in many)
    if rest:
        rows.append((*_row("the rest", 0, rest, total), "", ""))
    columns = _with_mostly([("  kernel line", "left"), ("ops", "right"), ("time", "right"), ("share", "right")], width)
    return _table(columns, [row[: len(columns)] for row in rows], width, ("mostly", "ops"))


def _row(what: str, ops: int, ns: float, total: float) -> Sequence[str]:
    return f"  {what}", f"{ops:,}" if ops else "", format_time(ns), f"{ns / total:.1%}"


def _inside(segments: Iterable[Segment], line: Fold, total: float, verbose: bool) -> Sequence[Went]:
    """Say what filled the time of a kernel line that several units worked for, as a composite; else nothing.

    The PE's processor is one of them where issuing commands took a good part, as it does for tiny ones.
    """
    groups: dict[tuple[str, str], list[Segment]] = {}
    for segment in segments:
        if (segment.call, segment.line) == (line.what, line.line):
            groups.setdefault((segment.sort, segment.kind), []).append(segment)
    found = [
        Went("", *key, sum(each.ns for each in group), sum_of(group), waited_most_at(group))
        for key, group in groups.items()
    ]
    units = sum(1 for sort, _ in groups if sort == "service")
    issuing = sum(went.ns for went in found if went.sort == "issue")
    if units + (issuing >= _MUCH * line.ns) < 2:
        return ()
    found.sort(key=lambda went: (-went.ns, went.sort, went.kind))
    return found if verbose else [went for went in found if went.ns >= _SMALL * total][:_ROWS]


def _short(place: str) -> str:
    """Name a wire by its ends without the path to them, a node by its last name."""
    return "->".join(node.rpartition(".")[2] for node in place.split("->"))


def _precise(place: str) -> str:
    """Name a node whole, and a wire by where it begins and the last name of where it ends."""
    begin, _, end = place.partition("->")
    if not end:
        return begin
    return f"{begin}->{end.rpartition('.')[2] if '.' in begin else end}"


def _line(each: Fold) -> str:
    if each.line is None:
        return WITHOUT_OP.get(each.what, each.what)
    message = "message of " if each.what == "tl.send" else ""  # which the verdict has where it is waited for
    return f"{message}{each.what} {PurePath(each.line).name}"


def _queueing(places: Sequence[QueueingPlace], width: int, verbose: bool) -> RenderableType | None:
    if not places:
        return Text("nothing queued anywhere")
    rows = [
        (
            place.place,
            place.kind,
            f"{place.waits:,}",
            format_time(place.total_ns),
            format_time(place.mean_ns),
            format_time(place.longest_ns),
        )
        for place in (places if verbose else places[:_ROWS])
    ]
    more = f" (of {len(places)})" if len(rows) < len(places) else ""
    titles = (f"most queueing{more}", "kind", "waits", "together", "each", "longest")
    columns: list[_Column] = [(title, "left" if n < 2 else "right") for n, title in enumerate(titles)]
    return _table(columns, rows, width, ("kind", "waits", "longest", "each"))


def _ledger(ledger: Sequence[LedgerRow], width: int, verbose: bool) -> RenderableType | None:
    """Lay out what the messages of each class spent their time on."""
    if not ledger:
        return None
    rows = []
    for row in ledger if verbose else sorted(ledger, key=lambda each: -each.total_ns)[: 2 * _ROWS]:
        shares = [_percent(getattr(row, part), row.total_ns) for part in PARTS]
        unaccounted = f" ({format_time(row.unaccounted_ns)} unaccounted for)" if row.unaccounted_ns else ""
        rows.append((row.what + unaccounted, f"{row.messages:,}", format_time(row.total_ns / row.messages), *shares))
    titles = ("messages", "number", "each", "prop", "serial", "nodes", "queue", "service")
    columns: list[_Column] = [(title, "right" if n else "left") for n, title in enumerate(titles)]
    return _table(columns, rows, width, ("number", "nodes", "prop", "serial"))


def _percent(ns: float, total: float) -> str:
    return f"{ns / total:.0%}" if ns else "-"


def _usage(usage: Sequence[Usage], total: float, width: int, verbose: bool) -> RenderableType | None:
    if not usage:
        return None
    rows = [
        (use.kind, f"{use.resources:,}", f"{sum(use.utilisation) / len(use.utilisation):.1%}", _spark(use.utilisation))
        for use in (usage if verbose else usage[: _ROWS + 2])
    ]
    titles = ("busy over time", "used", "mean", f"0 to {format_time(total)}")
    columns: list[_Column] = [(title, "right" if n in (1, 2) else "left") for n, title in enumerate(titles)]
    return _table(columns, rows, width, ("used",))


def _filling(filling: Filling) -> RenderableType:
    units = f"{filling.units:,} {filling.kind}" if filling.units > 1 else filling.kind
    lost = f"{filling.share:.1%} of it to start, fill and drain"
    return Text(f"{units} at work for {format_time(filling.busy_ns)}: {lost}")


def _spark(shares: Iterable[float]) -> str:
    """Draw shares (0 to 1) as one character each; anything above 0 shows."""
    return "".join(_SPARKS[0 if share <= 0 else max(1, round(share * 8))] for share in shares)


def _achieved(launches: Sequence[LaunchExplanation], width: int, verbose: bool) -> Iterable[RenderableType]:
    """Say how near the longest launches came to what their units and memories could do."""
    with_work = sorted((each for each in launches if each.roofline is not None), key=lambda each: -each.ns)
    for launch in with_work if verbose else with_work[:3]:
        point = launch.roofline
        if point is None:
            continue
        rows = [row for resource in point.resources for row in _against_peak(resource)]
        titles = (f"{launch.kernel}, achieved", "units", "rate", "peak", "of peak")
        columns: list[_Column] = [(title, "right" if n else "left") for n, title in enumerate(titles)]
        table = _table(columns, rows, width, ("units", "peak", "rate"))
        if not point.flops:
            yield table
            continue
        intensity = f"{point.intensity:.3g} FLOP/B" if point.hbm_bytes else "no HBM traffic"
        yield Group(
            table,
            Text(
                f"  roofline: {intensity}; {format_flops(point.achieved)} of the {format_flops(point.attainable)} that "
                f"{'HBM allows' if point.bound == 'memory' else 'the units allow'} ({point.share:.1%})"
            ),
        )


def _against_peak(r: Achieved) -> Iterable[Sequence[str]]:
    """Lay out one kind of resource, and its busiest one below where that had much more to do than the others."""
    yield f"  {r.kind}", f"{r.resources:,}", _rate(r, r.achieved), _rate(r, r.peak), f"{r.share:.1%}"
    if r.resources > 1 and r.busiest_peak and r.busiest_achieved / r.busiest_peak > _UNEQUAL * r.share:
        share = f"{r.busiest_achieved / r.busiest_peak:.1%}"
        yield f"    {r.busiest}", "", _rate(r, r.busiest_achieved), _rate(r, r.busiest_peak), share


def _rate(each: Achieved, rate: float) -> str:
    return rate_text(rate, each.unit)
