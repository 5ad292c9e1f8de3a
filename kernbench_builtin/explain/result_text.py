"""The answer of a run for a reader: a compact table in a terminal, the same in plain text elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kernbench_builtin.explain.reported_rows import cell_text, column_names, column_title
from kernbench_builtin.machines.figures.roofline import rate_text
from kernbench_core.host.rows import Row
from kernbench_core.process.terminal import shown
from kernbench_core.runs.result import PHASES, RunResult
from kernbench_core.runs.text_report import bare_table, shortened, show
from kernbench_core.units import format_bytes, format_count, format_time

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.kernels import KernelFigures, KernelUse
    from kernbench_core.host.statistics import Statistic
    from kernbench_core.host.timing import NotModelled, ResourceUse

_BAR_CELLS = 16
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ROWS = 6
#: The head of the bytes that a resource moved in the whole run.
_MOVED = "run moved"
#: Letters of a name that are worth more than another column beside it.
_NAME = 22


def print_result(result: RunResult, console: Console, *, verbose: bool = False) -> None:
    """Print total time, where it went, the busiest resources, the verdict, what was not modelled, reported rows."""
    phases = _phases(result, console.is_terminal)
    if _is_wider(phases, console):
        phases = _phases(result, decorated=False)
    parts: list[RenderableType] = [_headline(result), phases]
    parts.extend(_busy(result, console, verbose))
    if result.timing.statistics:
        parts.append(_statistics(result.timing.statistics))
    parts.append(_facts(result, verbose))
    if result.rows:
        parts.append(_rows(result.rows, console))
    apart = (Padding(part, (0, 0, 1 if part is not parts[-1] else 0, 0), expand=False) for part in parts)
    show(Group(*apart), console)


def _headline(result: RunResult) -> Text:
    params = "  ".join(f"{name}={_shown(value)}" for name, value in result.params.items() if value is not None)
    line = Text.assemble((shown(result.bench), "bold"), shown(f" on {result.topology}"))
    if result.device != "all":
        line.append(f", {result.device}")
    if params:
        line.append(f"   {params}", "dim")
    return line


def _shown(value: Any) -> str:
    return str(value["file"]) if isinstance(value, dict) else str(value)


def _phases(result: RunResult, decorated: bool) -> Table:
    """Lay out total time and phases: where it went."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    total = result.total_ns
    head = ("interrupted at", "bold yellow") if result.interrupted else ("total time", "bold")
    table.add_row(Text(*head), Text(format_time(total), "bold"), "", "")
    for name in PHASES:
        share = result.phases[name] / total if total else 0.0
        table.add_row(
            "  " + name.replace("_", " "),
            format_time(result.phases[name]),
            f"{share:.1%}",
            Text(bar(share), "cyan") if decorated else "",
        )
    return table


def _busy(result: RunResult, console: Console, verbose: bool) -> Iterable[RenderableType]:
    """Lay out what was busiest while kernels ran, and what they achieved; without kernels, what was over the run."""
    kernels = result.kernels
    if kernels is None:
        uses = result.busiest if verbose else result.busiest[:_ROWS]
        if uses:
            yield _busiest(_columns("busy", [(use, use.utilisation, None) for use in uses]), console)
        return
    found: list[tuple[KernelUse | ResourceUse, float | None, float | None]] = [
        (use, use.utilisation, use.run_utilisation) for use in (kernels.busiest if verbose else kernels.busiest[:_ROWS])
    ]
    shown_kinds = {use.kind for use, _, _ in found}
    rest = [use for use in (result.busiest if verbose else result.busiest[:1]) if use.kind not in shown_kinds]
    found += ((use, None, use.utilisation) for use in rest)
    table = _busiest(_columns("kernel", found), console)
    yield Group(table, *_achieved(kernels))


def _achieved(kernels: KernelFigures) -> Iterable[Text]:
    """Say what units and HBM did while kernels ran, against their peaks."""
    if kernels.roofline is not None:
        told = [
            f"{'HBM' if each.kind == 'hbm_ctrl' else each.kind} "
            f"{rate_text(each.achieved, each.unit)} ({each.share:.1%})"
            for each in kernels.roofline.resources
        ]
        yield Text(f"achieved in kernels, of peak: {', '.join(told)}")


def _columns(
    head: str, found: Sequence[tuple[KernelUse | ResourceUse, float | None, float | None]]
) -> dict[str, list[str]]:
    """Write resources with how busy they were in kernels, or else in all, and, where that is another, over the run."""
    from kernbench_builtin.machines.figures.kernels import KernelUse

    uses = [use for use, _, _ in found]
    moved = [use.nbytes if isinstance(use, KernelUse) else 0 for use in uses]
    run_moved = [use.run_nbytes if isinstance(use, KernelUse) else use.nbytes for use in uses]
    columns = {
        "busiest of its kind": [use.name for use in uses],
        "kind": [use.kind for use in uses],
        head: ["-" if share is None else f"{share:.1%}" for _, share, _ in found],
        "": [bar(share or 0.0, _BAR_CELLS // 2) for _, share, _ in found],
        "mean": [
            f"{use.mean_utilisation:.1%} of {use.alike}" if use.alike > 1 and share is not None else "-"
            for use, share, _ in found
        ],
        "moved": [format_bytes(nbytes) if nbytes else "-" for nbytes in moved],
        "run": ["" if share is None else f"{share:.1%}" for _, _, share in found],
        _MOVED: [format_bytes(nbytes) if nbytes else "-" for nbytes in run_moved],
    }
    if not any(columns["run"]):
        del columns["run"], columns["moved"]
    return columns


def _busiest(columns: dict[str, list[str]], console: Console) -> Table:
    """Lay out the busiest resource of each kind: how busy, the mean of its kind, and the bytes that it moved.

    A narrow window goes without bars, then without bytes, means, kinds and the run; names are short in their middle.
    """
    widths = {head: max(len(head), *map(len, cells)) for head, cells in columns.items()}
    first = next(iter(columns))
    names = widths[first]

    def room() -> int:
        return console.width - sum(widths.values()) + widths[first] - 2 * (len(widths) - 1)

    for head in ("", _MOVED, "moved", "mean", "kind", "run"):
        least = names if head in ("", _MOVED, "moved") else min(names, _NAME)
        if head in columns and (room() < least or (not head and not console.is_terminal)):
            del columns[head], widths[head]
    widths[first] = max(1, min(names, room()))
    table = bare_table()
    for head in columns:
        table.add_column(
            shortened(head, widths[head]),
            justify="left" if head in (first, "kind", "") else "right",
            style=None if head else "magenta",
            no_wrap=True,
            width=widths[head],
        )
    for name, *cells in zip(*columns.values(), strict=True):
        table.add_row(shortened(name, widths[first]), *cells)
    return table


def _statistics(found: Sequence[Statistic]) -> Table:
    """Lay out what models counted: each number, over how many of them, and what it is, cut short in a narrow window."""
    table = bare_table()
    table.add_column("counted", style="magenta", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("of", no_wrap=True)
    table.add_column("", no_wrap=True, overflow="ellipsis", style="dim")
    for each in found:
        over = each.component if each.of == 1 else f"{each.combined} of {each.of} {each.component}"
        table.add_row(shown(each.name), _counted(each), shown(over), shown(each.sentence))
    return table


def _counted(found: Statistic) -> str:
    if found.unit == "ns":
        return format_time(found.value)
    if found.unit == "B":
        return format_bytes(found.value)
    number = f"{found.value:,}" if isinstance(found.value, int) else f"{found.value:,.4g}"
    return f"{number} {found.unit}".rstrip()


def _facts(result: RunResult, verbose: bool) -> Group:
    lines: list[RenderableType] = [Text.assemble(*result.words())]
    for verification in (result.verification, result.op_verification):
        lines.extend(
            Padding(Text(shown(line.lstrip()), "red"), (0, 0, 0, 2 + len(line) - len(line.lstrip())))
            for failure in (() if verification is None else verification.failures)
            for line in failure.splitlines()
        )
    orders = result.correctness.orders
    lines.extend(_listed(result.hazards, verbose, lambda hazard: hazard.lines(folders=verbose, orders=orders)))
    lines.extend(_listed(result.outside, verbose, lambda access: [str(access)]))
    reads = result.python_reads
    if reads is not None:
        listed = reads.list_lines(len(reads.lines)) if verbose else reads.list_lines() if reads.many else ()
        told = [reads.sentence, *listed]
        lines.extend(Text(shown(line), "yellow" if reads.many else "") for line in told)
    if result.branch_values.read:
        lines.append(Text(result.branch_values.words))
    lines.append(_counts(result))
    lines.extend(_late(result, verbose))
    lines.extend(Text(f"warning: {warning}", "yellow") for warning in result.warnings)
    lines.append(_not_modelled(result.not_modelled, verbose))
    if verbose and result.op_log_sha256:
        lines.append(Text(f"op log SHA-256 {result.op_log_sha256}", "dim"))
    return Group(*lines)


def _rows(rows: Sequence[Row], console: Console) -> Table:
    """Lay out what the bench reported: texts to the left, numbers to the right, closer together in a narrow window."""
    table = bare_table()
    names = column_names(rows)
    for name in names:
        texts = all(isinstance(row.get(name), str | None) for row in rows)
        justify: Literal["left", "right"] = "left" if texts else "right"
        table.add_column(column_title(name), justify=justify, vertical="bottom", no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(cell_text(name, row.get(name)) for name in names))
    if _is_wider(table, console):
        table.padding = (0, 1, 0, 0)
    return table


def _is_wider(table: Table, console: Console) -> bool:
    return console.measure(table, options=console.options.update(width=1000)).maximum > console.width


def _listed(found: Sequence[Any], verbose: bool, lines: Callable[[Any], Iterable[str]]) -> Iterable[Text]:
    """List what is to be said of uses of memory: all of it, or the first."""
    listed = found if verbose else found[:1]
    yield from (Text(shown(f"  {line}"), "red") for each in listed for line in lines(each))
    if len(found) > len(listed):
        yield Text(f"  and {len(found) - len(listed)} more; -v lists them", "red")


def _counts(result: RunResult) -> Text:
    rate = format_count(float(f"{result.events / result.timing.wall_s:.3g}")) if result.timing.wall_s > 0 else "-"
    return Text(
        f"{result.timing.ops:,} ops, {result.events:,} events in {result.timing.wall_s:.2f} s ({rate} events/s), "
        f"{result.wall_s:.2f} s in all",
        "dim",
    )


def _late(result: RunResult, verbose: bool) -> Iterable[Text]:
    late = result.timing.late_starts
    if not late:
        return
    worst = max(late, key=lambda start: start.late_ns)
    yield Text(
        f"{len(late)} late starts; {worst.pe} was the latest, {format_time(worst.late_ns)} after the common stamp"
    )
    if verbose:
        yield from (Text(f"  {start.pe} by {format_time(start.late_ns)}") for start in late)


def _not_modelled(items: Sequence[NotModelled], verbose: bool) -> RenderableType:
    """Say how many things the crossed components ignore; list them, the most crossed first, when `verbose`."""
    if not items:
        return Text("not modelled: nothing that the components declare")
    if verbose:
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        table.add_row(Text("not modelled", "bold"), Text("by", "bold"), Text("messages", "bold"))
        for item in items:
            table.add_row(f"  {item.sentence}", item.component, f"{item.count:,}")
        return table
    number = len({item.sentence for item in items})
    return Text(f"{number} thing{'' if number == 1 else 's'} not modelled: -v", "dim")


def bar(share: float, cells: int = _BAR_CELLS) -> str:
    """Draw a share (0 to 1) as a bar of at most `cells` characters, to an eighth of one."""
    eighths = round(min(max(share, 0.0), 1.0) * cells * 8)
    if share > 0:
        eighths = max(eighths, 1)
    full, rest = divmod(eighths, 8)
    return _EIGHTHS[8] * full + (_EIGHTHS[rest] if rest else "")
