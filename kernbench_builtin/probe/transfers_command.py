"""The part of `kernbench probe` that measures transfers between host, PEs and memories."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rich_click as click

from kernbench_core.cli.options import Declared, grouped, parameters
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.topology import design_of
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from rich.table import Table

    from kernbench_builtin.probe.load import Loaded
    from kernbench_builtin.probe.transfers import Case, MeasuredTransfer, Prober

FLAG = ""
#: The machine that is probed when nobody names one.
DEFAULT_TOPOLOGY = "default"
OPTIONS = parameters(*grouped(
    "Transfers",
    Declared("--from", "source", metavar="NODE", help="Where the data comes from: host, a PE or a memory."),
    Declared("--to", "target", metavar="NODE", help="Where the data goes to: host, a PE or a memory."),
    Declared("--size", metavar="SIZE", help="Bytes of a transfer. [default: one chunk]"),
))  # fmt: skip
SWEEP = tuple(64 * 4**step for step in range(10))
"""Sizes of the sweep: 64 B to 16 MiB."""
_SLOW_SWEEP = 1 << 20
"""Largest size of the sweep where a model on the way, such as banks of a DRAM, is simulated burst by burst."""
_SLOW_CHUNKS = 400
"""Chunks of a point under load there."""
_GAP = 2
"""Blanks between two columns."""
_IN_SWEEP = re.compile(r"load (own HBM|(farthest|other) (cube|SIP))|host to HBM")


def run(
    shell: Shell,
    topology: str,
    components: str | None,
    sets: tuple[str, ...],
    as_json: bool,
    source: str | None,
    target: str | None,
    size: str | None,
) -> int:
    """Measure, check, and print lone transfers, a sweep of their size, and their latency under load."""
    from kernbench_builtin.probe.checks import check_probes
    from kernbench_builtin.probe.load import CHUNKS, loaded_latency
    from kernbench_builtin.probe.transfers import Prober
    from kernbench_core.runs import configure, tell_warnings
    from kernbench_core.topology import compile_topology

    if (source is None) != (target is None):
        raise UsageError("options --from and --to must be given together; give both, or neither for the usual cases.")
    plugins = shell.plugins
    config = configure(plugins, topology, components, sets)
    graph = compile_topology(config, plugins)
    tell_warnings(graph)
    prober = Prober(graph, plugins.components)
    cases = prober.cases() if source is None or target is None else prober.case(source, target)
    nbytes = design_of(graph).chunk_bytes if size is None else _size(size, prober, cases)
    alone = [prober.measure(case, nbytes) for case in cases]
    check_probes(prober, alone)
    picked = [one for one in alone if len(cases) == 1 or _IN_SWEEP.fullmatch(one.case.name)]
    chosen = [one.case for one in picked]
    most = [prober.capacity(one.case) if one.exact else _SLOW_SWEEP for one in picked]
    sweeps = [
        [prober.measure(case, n) for n in SWEEP if n <= min(limit, prober.capacity(case))]
        for case, limit in zip(chosen, most, strict=True)
    ]
    for sweep in sweeps:
        check_probes(prober, sweep)
    chunk = design_of(graph).chunk_bytes
    loaded = [loaded_latency(prober, one.case, chunk, count=CHUNKS if one.exact else _SLOW_CHUNKS) for one in picked]
    if as_json:
        click.echo(_json(topology, alone, chosen, sweeps, chunk, loaded))
    else:
        _print(topology, alone, chosen, sweeps, chunk, loaded)
    return 0


def _size(text: str, prober: Prober, cases: Sequence[Case]) -> int:
    from kernbench_core.units import format_bytes, parse_quantity

    try:
        nbytes: int = parse_quantity(text, "size", positive=True)
    except ValueError as error:
        raise UsageError(f"option --size {error}") from None
    most = min(prober.capacity(case) for case in cases)
    if nbytes > most:
        raise UsageError(f"option --size must be at most {format_bytes(most)}, the smallest memory, not {brief(text)}.")
    return nbytes


def _json(
    topology: str,
    alone: Sequence[MeasuredTransfer],
    chosen: Sequence[Case],
    sweeps: Sequence[Sequence[MeasuredTransfer]],
    chunk: int,
    loaded: Sequence[Sequence[Loaded]],
) -> str:
    import attrs

    from kernbench_core.runs import json_text

    def told(one: MeasuredTransfer) -> dict[str, Any]:
        return {
            "case": one.case.name,
            "op": one.case.op,
            "source": one.case.source,
            "memory": one.case.memory,
            "bytes": one.nbytes,
            "path": list(one.path),
            "chunks": one.chunks,
            "bound_ns": one.bound_ns,
            "fabric_ns": one.fabric_ns,
            "simulated_ns": one.total_ns,
            "bandwidth": one.bandwidth,
            "binding": one.binding.name,
        }

    found = {
        "schema": "kernbench.probe-paths/1",
        "topology": topology,
        "transfers": [told(one) for one in alone],
        "sweep": [told(one) for sweep in sweeps for one in sweep],
        "loaded": [
            {"case": case.name, "bytes": chunk, **attrs.asdict(point)}
            for case, points in zip(chosen, loaded, strict=True)
            for point in points
        ],
    }
    return json_text(found)


def _print(
    topology: str,
    alone: Sequence[MeasuredTransfer],
    chosen: Sequence[Case],
    sweeps: Sequence[Sequence[MeasuredTransfer]],
    chunk: int,
    loaded: Sequence[Sequence[Loaded]],
) -> None:
    from rich.console import Group, RenderableType
    from rich.padding import Padding
    from rich.text import Text

    from kernbench_core.runs import make_console, show
    from kernbench_core.units import format_bytes

    title = Text.assemble((topology, "bold"), f": lone transfers of {format_bytes(alone[0].nbytes)}")
    console = make_console(sys.stdout)
    tables = [_transfers(alone, console.width), _sweep(chosen, sweeps), _loaded(chosen, loaded)]
    parts: list[RenderableType] = [title, *(Padding(table, (1, 0, 0, 0), expand=False) for table in tables)]
    if len(alone) == 1:
        parts.append(Text(f"\npath: {' -> '.join(alone[0].path)}"))
    if not all(one.exact for one in alone):
        parts.append(
            Text(
                f"\nA model on the way is simulated burst by burst: sizes end at {format_bytes(_SLOW_SWEEP)} (--size "
                f"measures any), and a load is of {_SLOW_CHUNKS} chunks, so that its p99 is rough."
            )
        )
    parts.append(
        Text(
            f"\nThe load is of random chunks of {format_bytes(chunk)}, as a share of what the binding wire or "
            "channel carries. Each point is one sample, from an empty system with a fixed seed: of 2000 chunks, the "
            "mean wait at 90% and 95% is uncertain by about 20% and 30%. Checked: simulated >= bound, and of lone "
            "chunks: equal to it beside their set-up (but for stores of a PE), farther is not faster, wider is not "
            "slower."
        )
    )
    show(Group(*parts), console)


def _table(*titles: str) -> Table:
    from kernbench_core.runs import bare_table

    table = bare_table()
    for index, title in enumerate(titles):
        left = not index or title == "binding"
        table.add_column(title, justify="left" if left else "right", no_wrap=not left, overflow="fold")
    return table


def _transfers(alone: Sequence[MeasuredTransfer], wide: int) -> Table:
    """Make a table of transfers, whose first column leaves room for the longest name of the last."""
    from kernbench_core.units import format_time

    lone = [format_time(one.set_up_ns) if one.chunks == 1 else "-" for one in alone]
    told = any(one.chunks == 1 for one in alone)
    titles = ("transfer", "hops", "bound", *(["set-up"] if told else []), "simulated", "GB/s", "binding")
    rows = [
        (
            one.case.name,
            str(len(one.path) - 1),
            format_time(one.bound_ns),
            *([set_up] if told else []),
            format_time(one.total_ns),
            f"{one.bandwidth:.4g}",
            one.binding.name.replace("->", " -> "),
        )
        for one, set_up in zip(alone, lone, strict=True)
    ]
    table = _table(*titles)
    first, *rest, last = zip(titles, *rows, strict=True)
    names, words = (max(len(word) for cell in column for word in cell.split()) for column in (last, first))
    room = wide - names - sum(max(map(len, column)) + _GAP for column in rest) - _GAP
    table.columns[0].width = max(words, min(max(map(len, first)), room))
    for row in rows:
        table.add_row(*row)
    return table


def _sweep(chosen: Sequence[Case], sweeps: Sequence[Sequence[MeasuredTransfer]]) -> Table:
    from kernbench_core.units import format_bytes

    table = _table("GB/s by size", *(case.name for case in chosen))
    by_size = [{one.nbytes: one for one in sweep} for sweep in sweeps]
    for nbytes in (size for size in SWEEP if any(size in known for known in by_size)):
        cells = [f"{known[nbytes].bandwidth:.4g}" if nbytes in known else "-" for known in by_size]
        table.add_row(format_bytes(nbytes), *cells)
    return table


def _loaded(chosen: Sequence[Case], loaded: Sequence[Sequence[Loaded]]) -> Table:
    table = _table("ns by load, mean / p99", *(case.name for case in chosen))
    for points in zip(*loaded, strict=True):
        table.add_row(f"{points[0].share:.0%}", *(f"{point.mean_ns:.4g} / {point.p99_ns:.4g}" for point in points))
    return table
