"""`kernbench ccl tune`: measure a table for a machine, which `auto` goes by there, and NCCL's tuner plug-in too."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from attrs import evolve

from kernbench_ccl.cli.check import numbers
from kernbench_ccl.cli.completion import collectives
from kernbench_ccl.cli.options import CONFIG, DTYPE, LINK_BW, LINK_LATENCY, NETWORK
from kernbench_core.cli.option_types import whole
from kernbench_core.cli.options import COMPONENTS, JOBS, JSON, QUIET, SETS, TOPOLOGY, Declared, with_parameters
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process import shown
from kernbench_core.runs import ProgressDisplay
from kernbench_core.spread import NOT_KNOWN
from kernbench_core.units import format_bandwidth, format_bytes, format_time
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_ccl.measure.machine import Setup
    from kernbench_ccl.measure.machine_tuner import TunedCell
    from kernbench_ccl.measure.trials import AlgorithmTrials
    from kernbench_ccl.plan.machine_tuning import MachineTuning, MeasuredTimes
    from kernbench_core.graph import Graph
    from kernbench_core.spread import Contest, TimeSpread

SCHEMA = "kernbench.ccl_tune/1"
_SIZES = "1K,4K,16K,64K,256K,1M,4M"


def _sizes(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    """Read sizes with K, M or G for powers of 1024, from small to large; raise UsageError naming the option."""
    from kernbench_ccl.cli.group import read_size

    found = {read_size(param.opts[0], part) for part in value.split(",")}
    return tuple(sorted(found))


@click.command("tune")
@click.option(
    "--collective", "names", metavar="NAME", multiple=True, shell_complete=collectives,
    help="The collective to measure; repeatable. [default: all with several algorithms]",
)
@click.option("--ranks", metavar="N,N-N", type=numbers(), help="Numbers of ranks. [default: the topology's SIPs]")
@click.option("--sizes", metavar="SIZE,SIZE", default=_SIZES, show_default=True, callback=_sizes, help="Bytes.")
@with_parameters(
    DTYPE, TOPOLOGY, COMPONENTS, NETWORK, LINK_BW, LINK_LATENCY, SETS,
    CONFIG,
    Declared(
        "-o", "--output", metavar="FILE", default="tuning.json",
        help="The table; an existing one of this machine is extended.",
    ),
    Declared(
        "--nccl-csv", metavar="FILE", help="Also write a CSV for NCCL's example tuner plug-in."
    ),
    Declared(
        "--shake", metavar="N", type=whole(3),
        help="Run the leaders of each size N more times, latencies and bandwidths varied by 0.1 %.",
    ),
    JSON, JOBS.but(default="2"), QUIET,
)  # fmt: skip
@click.pass_obj
def tune(shell: Shell, /, **options: Any) -> int:
    """Measure which algorithm is fastest on a machine, and write a table for --algo auto.

    Each simulation is cached when it ends: call a stopped command again to continue it. Pass the table with --tuning,
    or set auto.tuning in ccl.yaml.
    """
    return _Tuning(shell, options).run()


class _Tuning:
    """One call of the command."""

    def __init__(self, shell: Shell, options: dict[str, Any]) -> None:
        self.shell, self.options, self.plugins = shell, options, shell.plugins
        self.output = Path(options["output"])

    def run(self) -> int:
        """Measure, write each cell as it is whole, and tell."""
        from kernbench_ccl.measure.machine_tuner import MachineTuner
        from kernbench_core.process import check_file, write_text

        csv = self.options["nccl_csv"]
        if csv is not None and Path(csv).resolve() == self.output.resolve():
            raise UsageError(f"option --nccl-csv must be another file than the table, {str(self.output)!r}; give two.")
        cells = self._cells()
        table = self._begun(cells)
        for what, path in (("table", self.output), ("CSV file", self.options["nccl_csv"])):
            if path is not None:
                check_file(what, Path(path))
        made: list[MeasuredTimes] = []
        spread_of = self._shaken if self.options["shake"] else None
        with ProgressDisplay("tuning", enabled=not self.options["quiet"], rows=True) as display:
            sizes, jobs = self.options["sizes"], self.options["jobs"]
            tuner = MachineTuner(cells, sizes, self.plugins, jobs, _teller(display), spread_of)
            for entry in tuner.run():
                table = table.with_entry(entry)
                write_text(self.output, table.text())
                made.append(entry)
                if not self.options["quiet"]:
                    self._say(*_summary_lines(entry), *_even_lines(entry, tuner.contests))
        for (name, world), sentence in tuner.wrong.items():
            self.shell.warn(f"{name} of {world} ranks is left out, as kernbench ccl check finds it wrong: {sentence}")
        if not made:
            raise UsageError("there must be at least two algorithms to choose from for what is asked.")
        for measurement, sentence in tuner.failures.items():
            cell = measurement.cell
            what = f"{cell.collective} of {format_bytes(measurement.nbytes)} by {measurement.algorithm}"
            self.shell.warn(f"{what} is left out: {sentence}")
        self._write_csv(table)
        self._end(table, made)
        return 0

    def _cells(self) -> list[TunedCell]:
        """Return what is to be measured; UsageError for a collective or dtype that is not there."""
        from kernbench_ccl.catalogue import Catalogue
        from kernbench_ccl.cli.group import check_network, read_dtype
        from kernbench_ccl.measure.machine_tuner import TunedCell

        options, known = self.options, Catalogue.of(self.plugins).collectives
        dtype = read_dtype(options["dtype"])
        check_network(options["network"], self.plugins)
        every = [name for name in known if name != "barrier"]
        for name in options["names"]:
            if name not in every:
                raise UsageError(f"option --collective must be one of {', '.join(every)}, not {brief(name)}.")
        names = tuple(dict.fromkeys(options["names"])) or every
        return [
            TunedCell(name, setup, dtype, options["config"]) for setup in self._setups() for name in names
        ]

    def _setups(self) -> list[Setup]:
        from kernbench_ccl.cli.group import machine_sets
        from kernbench_ccl.measure.machine import Setup

        options = self.options
        return [
            Setup(options["topology"], options["components"], machine_sets({**options, "ranks": ranks}), checked=False)
            for ranks in options["ranks"] or (None,)
        ]

    def _begun(self, cells: Sequence[TunedCell]) -> MachineTuning:
        """Return the table that is written on: what the output holds of this machine, or an empty one."""
        from kernbench_ccl.measure.machine import machine_of
        from kernbench_ccl.plan.machine_key import machine_key
        from kernbench_ccl.plan.machine_tuning import MachineTuning, read_machine_tuning

        graph = machine_of(cells[0].setup, self.plugins).graph
        fresh = MachineTuning(machine_key(graph), _in_words(self.options["topology"], graph), cells[0].dtype)
        if not self.output.exists():
            return fresh
        try:
            found = read_machine_tuning(self.output)
        except (ValueError, OSError) as fault:
            told = f"must be a file that can be read: {fault.strerror}." if isinstance(fault, OSError) else fault
            raise UsageError(f"option -o {told} Give a new file.") from None
        if (found.key, found.dtype) != (fresh.key, fresh.dtype):
            raise UsageError(
                f"option -o must be a new file, or a table of this machine and {fresh.dtype}, not "
                f"{str(self.output)!r}, which is of {found.made_on} and {found.dtype}; give another one."
            )
        return evolve(found, made_on=fresh.made_on)

    def _shaken(self, cell: TunedCell, trials: AlgorithmTrials, nbytes: int, name: str) -> TimeSpread:
        """Return what the time of an algorithm comes to on machines that are the same but for a thousandth."""
        from kernbench_ccl.cli.explained import spread_of
        from kernbench_ccl.measure.choice import Choice, Question
        from kernbench_core.engine import Limits

        call = trials.call
        asked = Question(call.kind, call.dtype, call.redop, call.root)
        shake = {"shake": self.options["shake"], "shake_seed": 0}
        return spread_of(self.shell, asked, cell.setup, Choice(*trials.able[name]), nbytes, shake, Limits())

    def _write_csv(self, table: MachineTuning) -> None:
        from kernbench_ccl.plan.nccl_csv import nccl_lines
        from kernbench_core.process import write_text

        if self.options["nccl_csv"] is not None:
            lines = list(nccl_lines(table))
            write_text(Path(self.options["nccl_csv"]), "\n".join(lines))
            if not self.options["quiet"]:
                self._say(*(line for line in lines if line.startswith("#") and "NCCL" in line))

    def _say(self, *lines: str) -> None:
        if not self.options["as_json"]:
            for line in lines:
                click.echo(shown(line))

    def _end(self, table: MachineTuning, made: Sequence[MeasuredTimes]) -> None:
        """Say where the table is and how it is used, or print all of it as JSON."""
        if not self.options["as_json"]:
            self._say(f"wrote {self.output}; kernbench ccl COLLECTIVE --tuning {self.output} goes by it")
            if not (self.options["quiet"] or self.options["shake"]):
                self._say(f"it compares single times: {NOT_KNOWN}")
            return
        best = [
            {"collective": e.collective, "network": e.network, "ranks": e.world,
             "best": [{"up_to": most, "algorithm": name} for most, name in e.best_name_by_size(tuple(e.names))]}
            for e in made
        ]  # fmt: skip
        found = {"schema": SCHEMA, "machine": {"key": table.key, "made_on": table.made_on}, "best": best}
        click.echo(json.dumps({**found, "output": str(self.output)}, indent=2))


def _teller(display: ProgressDisplay) -> Callable[[int, int, float], None]:
    """Return what shows how far it is, and how long the rest takes."""
    from kernbench_core.engine import Progress

    began = time.perf_counter()

    def done(ended: int, of: int, fraction: float) -> None:
        display.title = f"tuning, {ended} of {of} simulations"
        display.update(Progress(0.0, 0, time.perf_counter() - began, fraction))

    return done


def _summary_lines(entry: MeasuredTimes) -> list[str]:
    """Say which algorithm is the best up to which size."""
    stretches = entry.best_name_by_size(tuple(entry.names))
    spans = [f"up to {format_bytes(most)}" if most is not None else "above" for most, _ in stretches]
    if len(stretches) == 1:
        spans = ["all sizes"]
    lines = [f"  {span}: {name}" for span, (_, name) in zip(spans, stretches, strict=True)]
    return [f"{entry.collective}, {entry.world} ranks, {entry.network}", *lines]


def _even_lines(entry: MeasuredTimes, contests: Mapping[tuple[str, int, int], Contest]) -> list[str]:
    """Say at which sizes the best is not shown to be better than others."""
    return [
        f"  {format_bytes(nbytes)}: no difference shown between {', '.join(found.equals)}"
        for nbytes, _ in entry.rows
        if (found := contests.get((entry.collective, entry.world, nbytes))) is not None and len(found.equals) > 1
    ]


def _in_words(topology: str, graph: Graph) -> str:
    """Say which machine a table is of."""
    from kernbench_ccl.plan.machine_key import links_of

    links = " and ".join(f"{format_bandwidth(bw)}, {format_time(ns)}" for bw, ns in sorted(links_of(graph)))
    return f"{topology} with links of {links or 'none'}"
