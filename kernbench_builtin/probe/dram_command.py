"""The part of `kernbench probe` that drives one HBM controller alone: rate and latency against load."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource

from kernbench_builtin.plugin import MEMORY_STANDARDS
from kernbench_core.cli.options import Declared, grouped, parameters
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_builtin.probe.dram_driver import ClosedForm, DramCase, DramPoint, DramProbe
    from kernbench_core.graph import Node
    from kernbench_core.plugins import Plugins

FLAG = "--dram"
#: The machine that is probed when nobody names one.
DEFAULT_TOPOLOGY = "default"
#: Requests under way at once, when nobody asks for others.
OUTSTANDING = (1, 4, 16, 64, 256, 1024)
_FEW, _MANY = 2048, 16384
"""Requests of a point when nobody says: large ones and small ones."""
_SMALL = 512
_MOST_REQUESTS = 1_000_000

OPTIONS = parameters(*grouped(
    "One HBM controller (--dram)",
    Declared("--dram", is_flag=True, help="Drive one HBM controller alone."),
    Declared("--pattern", metavar="PATTERN", default="sequential",
             help="Addresses: sequential, stride, random, rows (--chunk bytes of a random row) or onebank (always a "
             "new row of one bank)."),
    Declared("--read-ratio", metavar="FRACTION", default="1", help="Fraction of requests that are reads."),
    Declared("--turns", metavar="R,W", help="Alternate R reads and W writes, instead of --read-ratio."),
    Declared("--chain", is_flag=True, help="Time dependent random reads of one burst beside the load."),
    Declared("--trace", metavar="FILE", help="Send the requests in FILE, lines of 'ns R|W address bytes'."),
    Declared("--chunk", metavar="SIZE", help="Bytes per request. [default: 4 KiB for sequential, else one burst]"),
    Declared("--stride", metavar="SIZE", default="4 KiB", help="Bytes between the requests of --pattern stride."),
    Declared("--requests", metavar="N", help=f"Requests per point. [default: {_FEW}, or {_MANY} small ones]"),
    Declared("--outstanding", metavar="N,...", help="Requests in flight. [default: 1,4,16,64,256,1024]"),
    Declared("--load", metavar="LOADS", help="Offer fractions of the peak at random times: 0.2,0.5,0.8."),
    Declared("--seed", metavar="N", default="0", help="Seed of the random numbers."),
))  # fmt: skip


def run(
    shell: Shell,
    topology: str,
    components: str | None,
    sets: tuple[str, ...],
    as_json: bool,
    *,
    dram: bool,
    pattern: str,
    read_ratio: str,
    turns: str | None,
    chain: bool,
    trace: str | None,
    chunk: str | None,
    stride: str,
    requests: str | None,
    outstanding: str | None,
    load: str | None,
    seed: str,
) -> int:
    """Measure every point that was asked for, and print a table or one JSON object."""
    from kernbench_builtin.probe.dram_driver import PATTERNS, DramCase, DramProbe

    if not dram:
        raise UsageError("--dram must be given for this; see 'kernbench probe --help'.")
    if pattern not in PATTERNS:
        raise UsageError(f"--pattern must be one of {', '.join(PATTERNS)}, not {brief(pattern)}.")
    if outstanding is not None and load is not None:
        raise UsageError("--outstanding must not go with --load: a loop is closed or open; give one of them.")
    ratio = _ratio(read_ratio)
    levels = [_whole("--outstanding", part, 1, 65536) for part in outstanding.split(",")] if outstanding else []
    loads = [_share(part) for part in load.split(",")] if load is not None else []
    node, capacity = _controller(shell, topology, components, sets)
    probe = DramProbe(node, shell.plugins.components)
    told = _unverified(shell.plugins, probe.geometry.standard)
    if trace is not None:
        return _trace(topology, node, probe, trace, capacity or probe.geometry.span_bytes, as_json, _given(), told)
    nbytes = probe.default_chunk(pattern) if chunk is None else _number("--chunk", chunk, "size", positive=True)
    case = DramCase(
        pattern,
        nbytes,
        _requests(requests, nbytes),
        ratio,
        _number("--stride", stride, "size", positive=True),
        _whole("--seed", seed, 0, 2**32 - 1),
        _turns(turns, ratio),
        chain,
    )
    probe.check(case)
    if loads:
        points = [probe.open_loop(case, each) for each in loads]
    else:
        points = [probe.closed_loop(case, each) for each in levels or OUTSTANDING]
    form = probe.closed_form(case)
    if as_json:
        click.echo(_json(topology, node, probe, case, points, form))
    else:
        told += [_verdict(case, points, form)]
        _print(topology, node, _in_words(case), probe.peak(case), points, told)
    return 0


def _ratio(read_ratio: str) -> float:
    """Return the share of reads."""
    ratio: float = _number("--read-ratio", read_ratio, "float")
    if not 0.0 <= ratio <= 1.0:
        raise UsageError(f"--read-ratio must be a number from 0 to 1, not {brief(read_ratio)}.")
    return ratio


def _requests(requests: str | None, nbytes: int) -> int:
    """Return how many requests of `nbytes` a point has: more of small ones, where no number is given."""
    if requests is None:
        return _MANY if nbytes <= _SMALL else _FEW
    return _whole("--requests", requests, 1, _MOST_REQUESTS)


def _given() -> set[str]:
    """Return the options of a load that were given."""
    ctx: click.Context | None = click.get_current_context(silent=True)
    names = ("pattern", "read_ratio", "turns", "chain", "chunk", "stride", "requests", "outstanding", "load", "seed")
    return {name for name in names if ctx is not None and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def _trace(
    topology: str, node: Node, probe: DramProbe, path: str, capacity: int, as_json: bool, given: set[str],
    told: list[str],
) -> int:  # fmt: skip
    """Measure the requests of a file, which are to a slice of `capacity` bytes."""
    import attrs

    from kernbench_builtin.probe.dram_workload import read_trace
    from kernbench_core.runs import json_text

    if given:
        option = "--" + sorted(given)[0].replace("_", "-")
        raise UsageError(f"{option} must not go with --trace: the file says what is sent when; give one of them.")
    requests = read_trace(path, probe.geometry, capacity)
    point = probe.trace(requests)
    if as_json:
        found = {
            "schema": "kernbench.probe-dram/1", "topology": topology, "controller": node.id, "impl": node.impl,
            "trace": path, "requests": len(requests), "peak": probe.geometry.peak, "points": [attrs.asdict(point)],
        }  # fmt: skip
        click.echo(json_text(found))
    else:
        what = f"{len(requests):,} request{'s' * (len(requests) > 1)} of {path}"
        _print(topology, node, what, probe.geometry.peak, [point], told)
    return 0


def _turns(text: str | None, ratio: float) -> tuple[int, int] | None:
    if text is None:
        return None
    if ratio != 1.0:
        raise UsageError("--turns must not go with --read-ratio: both say how many are reads; give one of them.")
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and 1 <= int(part) <= _MOST_REQUESTS for part in parts):
        raise UsageError(f"--turns must be two whole numbers from 1 on, as 16,16, not {brief(text)}.")
    return int(parts[0]), int(parts[1])


def _controller(shell: Shell, topology: str, components: str | None, sets: tuple[str, ...]) -> tuple[Node, int]:
    """Return the first HBM controller of a machine, and the bytes of its slice: 0 where the machine says nothing."""
    from kernbench_core.runs import configure, tell_warnings
    from kernbench_core.topology import Machine, compile_topology

    plugins = shell.plugins
    config = configure(plugins, topology, components, sets)
    graph = compile_topology(config, plugins)
    tell_warnings(graph)
    found = next((node for node in graph.nodes.values() if node.kind == "hbm_ctrl"), None)
    if found is None:
        raise UsageError(
            f"--dram must have a topology with a node of kind hbm_ctrl, not {brief(topology)}; name another."
        )
    return found, graph.design.hbm_slice_bytes if isinstance(graph, Machine) else 0


def _number(option: str, text: str, dimension: str, *, positive: bool = False) -> Any:
    from kernbench_core.units import parse_quantity

    value: object = text
    if dimension in ("float", "int"):
        try:
            value = float(text)
        except ValueError:
            raise UsageError(f"{option} must be a number, not {brief(text)}.") from None
    try:
        return parse_quantity(value, dimension, positive=positive)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None


def _whole(option: str, text: str, least: int, most: int) -> int:
    stripped = text.strip()
    if not stripped.isdecimal() or not least <= int(stripped) <= most:
        raise UsageError(f"{option} must be an integer from {least} to {most}, not {brief(text)}.")
    return int(stripped)


def _share(text: str) -> float:
    value = float(_number("--load", text.strip(), "float"))
    if not 0.0 < value <= 10.0:
        raise UsageError(
            f"--load must be parts of the peak above 0 and at most 10, such as 0.2,0.5,0.8, not {brief(text)}."
        )
    return value


def _json(
    topology: str, node: Node, probe: DramProbe, case: DramCase, points: list[DramPoint], form: ClosedForm
) -> str:
    import attrs

    from kernbench_core.runs import json_text

    found = {
        "schema": "kernbench.probe-dram/1",
        "topology": topology,
        "controller": node.id,
        "impl": node.impl,
        **attrs.asdict(case),
        "peak": probe.peak(case),
        "points": [attrs.asdict(point) for point in points],
        "closed_form": {**attrs.asdict(form), "deviation": _deviation(points, form)},
    }
    return json_text(found)


def _deviation(points: list[DramPoint], form: ClosedForm) -> float | None:
    """Return how far the best point of a closed loop is from the closed form, as a fraction of it; None without one."""
    if points[0].offered is not None or form.share is None:
        return None
    return max(point.share for point in points) / form.share - 1


def _in_words(case: DramCase) -> str:
    """Say what a case asks."""
    from kernbench_core.units import format_bytes

    stride = f" every {format_bytes(case.stride)}" if case.pattern == "stride" else ""
    mix = {1.0: "reads", 0.0: "writes"}.get(case.read_ratio, f"requests, {case.read_ratio:.0%} reads,")
    if case.turns is not None:
        mix = f"requests, {case.turns[0]} reads and {case.turns[1]} writes in turn,"
    beside = ", beside a chain of reads" if case.chain else ""
    return f"{case.requests:,} {case.pattern} {mix} of {format_bytes(case.chunk)}{stride}{beside}"


def _print(
    topology: str, node: Node, asked: str, peak: float, points: list[DramPoint], told: list[str]
) -> None:
    from rich.console import Group
    from rich.text import Text

    from kernbench_core.runs import bare_table, make_console, show
    from kernbench_core.units import format_bandwidth

    console = make_console(sys.stdout)
    table = bare_table()
    titles = ["outstanding" if points[0].outstanding is not None else "offered"]
    titles += ["GB/s", "% of peak", "mean", "p50", "p99"]
    rows = any(point.hit_rate is not None for point in points)
    for column in titles + (["row hits"] if rows else []):
        table.add_column(column, justify="right")
    for point in points:
        at = "all at once" if point.offered is None else f"{point.offered:.1f}"
        if point.outstanding is not None:
            at = str(point.outstanding)
        latencies = [f"{ns:.1f} ns" for ns in (point.mean_ns, point.p50_ns, point.p99_ns)]
        hits = [f"{point.hit_rate:.1%}"] if rows and point.hit_rate is not None else []
        table.add_row(at, f"{point.achieved:.1f}", f"{point.share:.1%}", *latencies, *hits)
    title = Text.assemble(
        (node.impl, "bold"), f" at {node.id} of {topology}: {asked}; peak {format_bandwidth(peak)}"
    )  # fmt: skip
    show(Group(title, Text(), table, *(part for line in told if line for part in (Text(), Text(line)))), console)


def _unverified(plugins: Plugins, name: str) -> list[str]:
    """Name the figures of a standard that nobody has verified, on a line, where there are any."""
    standards = plugins.of(MEMORY_STANDARDS)
    unverified = standards.load(name).unverified if name in standards else ()
    return [f"unverified figures of {name}: {', '.join(unverified)}"] if unverified else []


def _verdict(case: DramCase, points: list[DramPoint], form: ClosedForm) -> str:
    whose = "latencies are of the chain; " if case.chain else "latencies are of reads; " if 0 < case.reads < 1 else ""
    told = f"closed form: {form.share:.1%}" if form.at_most is None else f"at most {form.at_most:.1%}"
    told += f" of peak ({form.rule})"
    if points[0].offered is not None or case.chain:
        return whose + told
    best = max(point.share for point in points)
    deviation = _deviation(points, form)
    return f"{whose}{told}; simulated {best:.1%}{'' if deviation is None else f', {deviation:+.1%}'}"
