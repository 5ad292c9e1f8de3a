"""The part of `kernbench probe` that drives a mesh with synthetic traffic: load against latency and throughput."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import rich_click as click
from click.core import ParameterSource

from kernbench_core.cli.options import Declared, grouped, parameters
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process import shown
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_builtin.machines import Mesh
    from kernbench_builtin.probe.traffic import LoadPoint, TrafficSetup
    from kernbench_builtin.probe.traffic_patterns import Pattern
    from kernbench_builtin.probe.traffic_view import Report
    from kernbench_core.runs import ProgressDisplay

FLAG = "--traffic"
#: The preset that --traffic drives when no topology is named.
DEFAULT_TOPOLOGY = "mesh"
#: The loads of a curve that nobody asked for otherwise, in parts of the ceiling.
DEFAULT_SHARES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
_MOST_LOADS = 200

OPTIONS = parameters(*grouped(
    "Traffic on a mesh (--traffic)",
    Declared("--traffic", metavar="PATTERN",
             help="Drive a mesh (preset mesh) with uniform, transpose, bitcomp, tornado, neighbor, hotspot or "
             "permutation traffic."),
    Declared("--load", metavar="LOADS",
             help="Offered load: 0.2, 0.1,0.3 or FROM:TO:STEP, in flits/node/cycle; with --dram, fractions of its "
             "peak. [default: fractions of the ceiling]"),
    Declared("--packet", metavar="SIZE", default="1", help="Size of a packet in flits, or as '128 B'."),
    Declared("--hotspot", metavar="rRcC,...", help="Hot routers. [default: the middle one]"),
    Declared("--hotspot-share", metavar="SHARE", help="Fraction of packets to hot routers. [default: 0.1]"),
    Declared("--permutation", metavar="FILE",
             help="Who sends to whom, in lines such as 'r0c0 r3c4'. [default: random]"),
    Declared("--burst", metavar="PACKETS", help="Mean length of bursts. [default: no bursts]"),
    Declared("--saturation", is_flag=True, help="Also find the load at which queues begin to grow."),
    Declared("--warmup", metavar="CYCLES", default="1000", help="Cycles before the measurement."),
    Declared("--measure", metavar="CYCLES", default="10000", help="Cycles to measure."),
    Declared("--drain", metavar="CYCLES", help="Most cycles to drain. [default: --warmup plus --measure]"),
    Declared("--seed", metavar="N", default="0", help="Seed of the random traffic."),
))  # fmt: skip


def run(
    shell: Shell,
    topology: str,
    components: str | None,
    sets: tuple[str, ...],
    as_json: bool,
    *,
    traffic: str,
    load: str | None,
    packet: str,
    hotspot: str | None,
    hotspot_share: str | None,
    warmup: str,
    measure: str,
    drain: str | None,
    seed: str,
    permutation: str | None,
    burst: str | None,
    saturation: bool,
) -> int:
    """Measure every load that was asked for, and print a table or one JSON object."""
    from kernbench_builtin.probe.traffic import TrafficSetup, Window
    from kernbench_builtin.probe.traffic_saturation import check_window
    from kernbench_builtin.probe.traffic_sources import check_bursts
    from kernbench_builtin.probe.traffic_view import Report
    from kernbench_core.runs import ProgressDisplay

    context = click.get_current_context(silent=True)
    if context is not None and context.get_parameter_source("topology") is ParameterSource.DEFAULT:
        topology = DEFAULT_TOPOLOGY
    mesh = _mesh(shell, topology, components, sets)
    number = _cycles("--seed", seed, 0, "integer")
    pattern = _pattern(traffic, mesh, hotspot, hotspot_share, permutation, number)
    warm, measured = _cycles("--warmup", warmup, 0), _cycles("--measure", measure, 1)
    window = Window(warm, measured, warm + measured if drain is None else _cycles("--drain", drain, 0))
    flits, mean = packet_flits(packet, mesh.flit_bytes), None if burst is None else burst_length(burst)
    display = ProgressDisplay(f"{traffic} traffic", rows=not as_json)
    driven = TrafficSetup(
        mesh, shell.plugins.components, pattern, flits, window, number, mean, on_progress=display.update
    )
    wanted = default_loads(driven) if load is None else parse_loads(load)
    if mean is not None:
        check_bursts(max(wanted), flits, mean)
    if saturation:
        check_window(driven)
    report = Report(topology, traffic if permutation is None else f"{traffic} ({permutation})", driven)
    if not as_json:
        click.echo(shown("\n".join(report.heading())))
    with display:
        _measure(report, wanted, saturation, display, quiet=as_json)
    click.echo(report.json() if as_json else shown("\n".join(report.ending())))
    return 0


def _measure(
    report: Report, wanted: Sequence[float], saturation: bool, display: ProgressDisplay, *, quiet: bool
) -> None:
    """Measure the loads, and where queues begin to grow; print each row unless `quiet`."""
    from kernbench_builtin.probe.traffic_saturation import find_saturation

    def print_row(point: LoadPoint) -> None:
        if not quiet:
            click.echo(shown(report.row(point)))

    title = display.title
    for at, value in enumerate(wanted, 1):
        display.title = f"{title}, {at} of {len(wanted)}"
        report.points.append(report.traffic.measure(value))
        print_row(report.points[-1])
    if saturation:
        display.title = f"{title}, saturation"
        report.saturation = find_saturation(report.traffic, report.points, print_row)


def _pattern(
    traffic: str, mesh: Mesh, hotspot: str | None, hotspot_share: str | None, permutation: str | None, seed: int
) -> Pattern:
    from kernbench_builtin.probe.traffic_map import read_permutation
    from kernbench_builtin.probe.traffic_patterns import make_pattern

    share = None if hotspot_share is None else _number("--hotspot-share", hotspot_share, "a number")
    hot = [name.strip() for name in hotspot.split(",")] if hotspot is not None else []
    pattern = make_pattern(traffic, mesh, hot, share, seed)
    if permutation is None:
        return pattern
    if traffic != "permutation":
        raise UsageError(f"option --permutation must be given together with --traffic permutation, not with {traffic}.")
    return read_permutation(permutation, mesh)


def _mesh(shell: Shell, topology: str, components: str | None, sets: tuple[str, ...]) -> Mesh:
    from kernbench_builtin.machines import Mesh
    from kernbench_core.runs import configure, tell_warnings
    from kernbench_core.topology import compile_topology

    plugins = shell.plugins
    config = configure(plugins, topology, components, sets)
    mesh = compile_topology(config, plugins)
    if not isinstance(mesh, Mesh):
        raise UsageError(
            f"--traffic must have a topology with a section 'mesh', a mesh on its own, not {brief(topology)}; leave "
            f"--topology out for the preset {DEFAULT_TOPOLOGY!r}, or write 'base: {DEFAULT_TOPOLOGY}' and your figures "
            "in a file."
        )
    tell_warnings(mesh)
    return mesh


def parse_loads(text: str) -> tuple[float, ...]:
    """Read loads: numbers separated by commas, each of which may be a range FROM:TO:STEP, its end included."""
    loads: list[float] = []
    for part in text.split(","):
        numbers = [_number("--load", number, "numbers or ranges FROM:TO:STEP, such as 0.1,0.2 or 0.05:0.45:0.05", text)
                   for number in part.split(":")]  # fmt: skip
        if len(numbers) == 1:
            loads += numbers
        elif len(numbers) == 3 and numbers[2] > 0 and numbers[0] <= numbers[1]:
            first, last, step = numbers
            steps = int((last - first) / step + 1e-9)
            if steps >= _MOST_LOADS:
                raise UsageError(f"--load must give at most {_MOST_LOADS} loads, not {steps + 1}; take larger steps.")
            loads += [round(first + i * step, 12) for i in range(steps + 1)]
        else:
            raise UsageError(f"--load must have ranges FROM:TO:STEP that go up, not {brief(part)}.")
    for load in loads:
        if not 0.0 < load <= 1.0:
            raise UsageError(
                f"--load must be above 0 and at most 1 flit per node and cycle, the capacity of a link, not {load:g}."
            )
    return tuple(loads)


def default_loads(traffic: TrafficSetup) -> tuple[float, ...]:
    """Return loads up to a little below the ceiling, rounded down to four digits after the point."""
    from kernbench_builtin.probe.traffic_sources import most_load

    most = 1.0 if traffic.burst is None else most_load(traffic.flits, traffic.burst)
    ceiling = min(most, traffic.ceiling()[0])
    return tuple(max(1, int(share * ceiling * 10**4 + 1e-6)) / 10**4 for share in DEFAULT_SHARES)


def burst_length(text: str) -> float:
    """Read the mean length of bursts, in packets."""
    length = _number("--burst", text, "a number of packets of at least 1")
    if length < 1.0:
        raise UsageError(f"--burst must be a number of packets of at least 1, not {brief(text)}.")
    return length


def packet_flits(text: str, flit_bytes: int) -> int:
    """Read the size of a packet: a number of flits, or bytes with a unit, and return flits."""
    from kernbench_core.units import parse_quantity

    match = re.fullmatch(r"\s*(\d{1,9})\s*(?:flits?)?\s*", text)
    if match is not None and int(match[1]) > 0:
        return int(match[1])
    try:
        size = int(parse_quantity(text, "size", positive=True))
    except ValueError:
        raise UsageError(
            f"--packet must be a number of flits or a size, such as 4 or '128 B', not {brief(text)}."
        ) from None
    if size % flit_bytes:
        raise UsageError(f"--packet must be a multiple of a flit of {flit_bytes} B, not {brief(text)}.")
    return size // flit_bytes


def _number(option: str, text: str, must: str, whole: str | None = None) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number != number or abs(number) == float("inf"):
        raise UsageError(f"{option} must be {must}, not {(text if whole is None else whole)!r}.")
    return number


def _cycles(option: str, text: str, least: int, what: str = "number of cycles") -> int:
    if not re.fullmatch(r"\s*\d{1,12}\s*", text) or int(text) < least:
        article = "an" if what[0] in "aeiou" else "a"
        raise UsageError(f"{option} must be {article} {what} of at least {least}, not {brief(text)}.")
    return int(text)
