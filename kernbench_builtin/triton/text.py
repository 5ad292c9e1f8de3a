"""What is printed of a run of a script: the page of its run, a line for each launch, what autotune chose, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
from rich.console import Console, Group, RenderableType
from rich.text import Text

from kernbench_core.process.terminal import shown
from kernbench_core.runs.parts import show_answers, show_result
from kernbench_core.runs.summary import print_summary
from kernbench_core.runs.text_report import bare_table, shortened, show
from kernbench_core.spread import NOT_KNOWN
from kernbench_core.units import format_bandwidth, format_time

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures
    from kernbench_builtin.triton.placement import ArrayPlace
    from kernbench_builtin.triton.session import TritonRun
    from kernbench_core.plugins import Plugins

SCHEMA = "kernbench.triton/1"
_LAUNCHES = 20
#: Letters of a place that are shown at least.
_PLACE = 12


def _without_result(session: TritonRun) -> str:
    """Say why there is no result."""
    if not session.launches:
        return "no kernel was launched: there is nothing to time"
    return f"a launch failed and the script went on: there is no result of the {len(session.launches)} before it"


def script_json(session: TritonRun, exit_code: int) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    return {
        "schema": SCHEMA,
        "exit_code": exit_code,
        "result": None if session.result is None else session.result.to_json(),
        "arrays": [attrs.asdict(each) for each in session.places],
        "tunings": [tuning.to_json() for tuning in session.tunings],
        "notes": [*([_without_result(session)] if session.result is None and exit_code == 0 else []), *session.notes],
    }


def print_script(
    session: TritonRun, console: Console, plugins: Plugins, *, autotune: str = "best", quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Print what a script's launches took; `autotune` "all" lists every configuration."""
    result = session.result
    if result is None:
        show(Text(_without_result(session), "yellow"), console)
    elif quiet:
        print_summary(result, console.file)
    else:
        show_result(result, console, plugins, verbose=verbose)
        how, arrays = str(result.manifest.get("placement", "near")), session.places
        launches = _launches(session.launches, verbose, console.width)
        show(Group(Text(""), *launches, *_arrays(arrays, how, verbose)), console)
    if quiet:
        return
    for tuning in session.tunings:
        show(Text(shown(tuning.line) if autotune == "best" else tuning.table), console)
    if any(len(tuning.trials) > 1 and tuning.contest is None for tuning in session.tunings):
        show(Text(f"autotune compares single times: {NOT_KNOWN}"), console)
    for note in session.notes:
        show(Text(f"note: {note}", "yellow"), console)
    if result is not None:
        show_answers(result, console, plugins, verbose=verbose)


_HOW = {
    "near": "in pieces, dealt to PEs as the programs of their first launch are",
    "blocks": "in equal blocks on all PEs",
    "interleaved": "in pieces of 4 KiB on all PEs in turn",
}


def _arrays(found: Sequence[ArrayPlace], how: str, verbose: bool) -> list[RenderableType]:
    """Say where arrays lie, each of them where that is wanted."""
    more = [Text(f"  {shown(str(each))}") for each in found] if verbose else []
    return [Text(f"arrays lie {_HOW[how]} (--placement){':' if more else ''}"), *more]


def _launches(found: Sequence[LaunchFigures], verbose: bool, width: int) -> list[RenderableType]:
    """Lay out a line for each launch, and the time of all of them; in a narrow window places are cut short."""
    rows = [("launch", "grid", "time", "busiest", "", "HBM")]
    listed = found if verbose else found[:_LAUNCHES]
    for each in listed:
        place, share = (each.busiest[0].name, f"{each.busiest[0].utilisation:.1%}") if each.busiest else ("-", "")
        rate = format_bandwidth(each.hbm_bytes / each.time_ns if each.time_ns else 0.0)  # bytes an ns are GB/s
        rows.append((shown(each.kernel), "x".join(map(str, each.grid)), format_time(each.time_ns), place, share, rate))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = max(_PLACE, width - sum(widths) + widths[3] - 2 * (len(widths) - 1))
    table = bare_table()
    for head in rows[0]:
        table.add_column(head, justify="left" if head in ("launch", "grid", "busiest") else "right", no_wrap=True)
    for *cells, place, share, rate in rows[1:]:
        table.add_row(*cells, shown(shortened(place, room)), share, rate)
    more = [Text(f"and {len(found) - len(listed)} more; -v lists them")] if len(listed) < len(found) else []
    total = sum(each.time_ns for each in found)
    count = "1 launch" if len(found) == 1 else f"{len(found):,} launches"
    return [table, *more, Text(f"{count}: {format_time(total)} in kernels", "bold")]
