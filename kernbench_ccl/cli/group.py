"""`kernbench ccl`: time collectives as nccl-tests does, list and check algorithms, begin new ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from attrs import evolve
from click.shell_completion import CompletionItem

from kernbench_ccl.catalogue import Collectives, meant
from kernbench_ccl.catalogue.names import COMMANDS
from kernbench_ccl.cli.completion import algorithms_of
from kernbench_ccl.cli.explained import FILES, CollectiveCommand, wanted_parts
from kernbench_ccl.cli.options import CONFIG, DTYPE, LINK_BW, LINK_LATENCY, NETWORK, OptionSetting
from kernbench_ccl.plugin import COLLECTIVES
from kernbench_core.cli.option_types import whole
from kernbench_core.cli.options import (
    CACHED,
    COMPONENTS,
    JOBS,
    JSON,
    QUIET,
    SETS,
    TIMEOUT,
    TOPOLOGY,
    Declared,
    parameters,
)
from kernbench_core.errors import UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.runs import DATA, LIMITS, MACHINE
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_ccl.collectives import CollectiveKind
    from kernbench_ccl.measure import Question, TimedMachine
    from kernbench_ccl.plan import CclConfig
    from kernbench_core.cli.shell import Shell
    from kernbench_core.plugins import Plugins

_OTHERS = dict(zip(COMMANDS, ("listing:list_algorithms", "check:check", "check:new", "tune:tune"), strict=True))
"""The other commands, and where they are in this package."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def _collectives(ctx: click.Context) -> Collectives:
    """Return the collectives of the plug-ins of this invocation."""
    found = ctx.meta.get(__name__)
    if found is None:
        found = ctx.meta[__name__] = Collectives(ctx.obj.plugins.of(COLLECTIVES))
    return found


class CclGroup(click.RichGroup):
    """The group: a command for each collective, and those that list, check and write algorithms."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the collectives, then the other commands; warn once of collectives that cannot be used."""
        usable, broken = _collectives(ctx).usable()
        for name, sentence in broken.items():
            if (said := f"collective {name!r} is left out: {sentence}") not in ctx.obj.heard:
                ctx.obj.warn(said)
        return [*(kind.command for kind in usable.values() if not kind.barrier), *_OTHERS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a collective, also under nccl's spelling, or one of the others."""
        if cmd_name in _OTHERS:
            module, _, name = _OTHERS[cmd_name].partition(":")
            return getattr(import_module(f"{__package__}.{module}"), name)  # type: ignore[no-any-return]
        collectives = _collectives(ctx)
        usable, broken = collectives.usable()
        commands = {kind.command: kind for kind in usable.values() if not kind.barrier}
        known = meant(cmd_name, commands)
        if known is not None:
            return _command(commands[known], collectives.sentence(commands[known].name))
        if cmd_name not in broken and cmd_name not in collectives:
            return None
        kind = collectives[cmd_name]  # with its vendor before it, where it is not left out
        return None if kind.barrier else _command(kind, collectives.sentence(kind.name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; UsageError with a guess for one that is not there."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            hint = did_you_mean(args[0], self.list_commands(ctx))
            wanted = "a collective or a command"
            raise UsageError(f"{ctx.command_path} must be followed by {wanted}, not {brief(args[0])}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=CclGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def ccl() -> None:
    """Time collectives as nccl-tests does; list, check and write collective algorithms."""


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    return None if value is None else read_size(param.opts[0], value)


def read_size(option: str, value: str) -> int:
    """Read bytes with K, M or G for powers of 1024; raise UsageError naming the option."""
    match = _SIZE.fullmatch(value.strip())
    number = float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ") if match is not None else 0.0
    if number < 1 or number != int(number):
        must = "must be a positive number of bytes, as '1K' or '64M'"
        raise UsageError(f"option {option} {must}, not {brief(value)}.")
    return int(number)


def _factor(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        factor = float(value)
    except ValueError:
        factor = 0.0
    if not 1 < factor < float("inf"):
        raise UsageError(f"option {param.opts[0]} must be a factor above 1, as '2', not {brief(value)}.")
    return factor


class OneOf(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """One of some words, refused in our words, and completed; `spelt` gives the word for another spelling of it."""

    name = "word"

    def __init__(self, *choices: str, spelt: Mapping[str, str] | None = None) -> None:
        self.choices, self.spelt = choices, spelt or {}

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word; raise UsageError naming the option."""
        word = self.spelt.get(value, value)
        _require_one_of("the option" if param is None else param.opts[-1], word, self.choices)
        return word

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete one of the words."""
        return [CompletionItem(name) for name in self.choices if name.startswith(incomplete)]


def _require_one_of(option: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        hint = did_you_mean(value, choices).partition(" Known: ")[0]
        raise UsageError(f"option {option} must be one of {', '.join(choices)}, not {brief(value)}.{hint}")


SIZES, ALGORITHM = "Sizes", "Algorithm"
#: Options that change nothing of what is printed.
_NOT_SHOWN = ("cached", "jobs", "max_events", "timeout_s", "quiet")
_REDOPS = ("sum", "avg", "product", "min", "max")
#: nccl-tests' own words, of reductions and of dtypes.
_NCCL_REDOPS = {"prod": "product"}
_NCCL_DTYPES = {"half": "f16", "float": "f32", "double": "f64"}


def _options(kind: CollectiveKind) -> list[click.Parameter]:
    """Return the options of a collective: those of nccl-tests, then the machine, then how it runs and what is shown."""

    own = []
    if kind.reduces:
        own.append(Declared("-o", "--redop", metavar="OP", default="sum", type=OneOf(*_REDOPS, spelt=_NCCL_REDOPS),
                            help="sum, avg, product, min or max.", panel=SIZES))
    if kind.per_pe:
        own.append(Declared("--contributors", metavar="sip|pe", default="sip", type=OneOf("sip", "pe"),
                            help="Who contributes a vector and gets the result.", panel=SIZES))
    if kind.rooted:
        own.append(
            Declared("-r", "--root", metavar="RANK", default="0", type=whole(0), help="The root rank.", panel=SIZES)
        )
    return parameters(
        Declared("-b", "--minbytes", "least", metavar="SIZE", default="1K", callback=_size,
                 help="Smallest size, as nccl-tests counts it; K, M and G are powers of 1024.", panel=SIZES),
        Declared("-e", "--maxbytes", "most", metavar="SIZE", callback=_size,
                 help="Largest size. [default: 16M, or -b if that is more]", panel=SIZES),
        Declared("-f", "--stepfactor", "factor", metavar="N", callback=_factor,
                 help="Factor from one size to the next. [default: 2]", panel=SIZES),
        Declared("-i", "--stepbytes", "step", metavar="SIZE", callback=_size,
                 help="Step from one size to the next, instead of -f.", panel=SIZES),
        DTYPE.but(panel=SIZES),
        *own,
        Declared("--ranks", metavar="N", type=whole(2), help="Ranks, each a SIP. [default: the SIPs of the topology]",
                 panel=MACHINE),
        NETWORK, LINK_BW, LINK_LATENCY, TOPOLOGY, COMPONENTS, SETS,
        Declared("--idealised", is_flag=True, help="Only the scale-up links take time.", panel=MACHINE),
        Declared("--algo", metavar="NAME|auto|all", multiple=True,
                 shell_complete=algorithms_of(kind.name, "auto", "all"),
                 help="The algorithm; repeat it, say all, or both, to compare. [default: ccl.yaml's]", panel=ALGORITHM),
        CONFIG.but(panel=ALGORITHM),
        Declared("--tuning", metavar="FILE", help="Tuning table of this machine (kernbench ccl tune), for auto.",
                 panel=ALGORITHM),
        Declared("--pipeline", metavar="on|off", type=OneOf("on", "off"),
                 help="off: a step waits until the previous one has ended.", panel=ALGORITHM),
        Declared("--pes", metavar="N", type=whole(1), help="PEs of each rank that take part.", panel=ALGORITHM),
        Declared("--check/--no-check", "check", default=True, show_default=False,
                 help="Check the data, or simulate shapes only.", panel=DATA),
        Declared("--backend", metavar="NAME[:DEVICE]", default="numpy",
                 help="Compute data with numpy, or with a plug-in (torch:cuda).", panel=DATA),
        Declared("--wide", is_flag=True,
                 help="Also show bound, formula, efficiency and events; of one algorithm also why it took its time."),
        JSON, CACHED, JOBS.but(default="2"),
        Declared("--max-events", metavar="N", type=whole(1), panel=LIMITS,
                 help="Stop a simulation after this many events."),
        TIMEOUT.but(help="Stop a simulation after this wall time ('60 s').", panel=LIMITS),
        QUIET,
    )  # fmt: skip


def _command(kind: CollectiveKind, sentence: str) -> click.Command:
    """Make the command of a collective."""

    @click.pass_obj
    def run(shell: Shell, /, **options: Any) -> int:
        return _run(shell, kind, options)

    text = f"Time {kind.command}. {sentence}\n\nSizes, columns and factors are those of nccl-tests."
    return CollectiveCommand(name=kind.command, params=_options(kind), callback=run, help=text, short_help=sentence)


def _run(shell: Shell, kind: CollectiveKind, options: dict[str, Any]) -> int:
    """Check what is asked, print the table as its rows come, and return the exit code."""
    from kernbench_ccl.catalogue import Catalogue
    from kernbench_ccl.cli.tables import AllAlgorithms, OneAlgorithm
    from kernbench_ccl.measure import Chooser, Setup, Sweep, machine_of
    from kernbench_ccl.measure.choice import check_question, chosen_name
    from kernbench_ccl.plan import load_ccl
    from kernbench_core.engine import Limits
    from kernbench_core.runs import configure, open_backend, tell_warnings

    question = _question(kind, options)
    sizes = _sizes(options)
    plugins = shell.plugins
    check_network(options["network"], plugins)
    if options["backend"] != "numpy":
        open_backend(plugins, options["backend"])
    setup = Setup(
        options["topology"], options["components"], machine_sets(options), options["idealised"], options["check"],
        options["backend"],
    )  # fmt: skip
    config = load_ccl(options["config"], catalogue=Catalogue.of(plugins))
    machine = machine_of(setup, plugins)
    config = _with_table(config, options["tuning"], machine)
    tell_warnings(machine.graph)
    check_question(question, machine, "--")
    _warn(shell, setup.idealised, machine)
    chooser = Chooser(question, machine, config, plugins)
    limits = Limits(options["max_events"], None, options["timeout_s"])
    sweep = Sweep(question, setup, machine, plugins, options["jobs"], limits=limits)
    names = _algorithms(options["algo"], config)
    name = chosen_name(config, kind.name, names[0] if names else None)
    several = len(names) > 1 or (name == "all" and name not in config.entries)
    kind_of_table = AllAlgorithms if several else OneAlgorithm
    parts = wanted_parts(options, sizes, several)
    table = kind_of_table(shell, {**options, "algo": names, "parts": parts}, question, sizes, sweep, chooser, name)
    if not options["cached"] or any(name in parts for name in FILES):
        return table.run()
    table_of_machine = config.auto.tuning
    asked = {name: value for name, value in options.items() if name not in _NOT_SHOWN}
    asked["table"] = None if table_of_machine is None else table_of_machine.text()
    resolved = configure(plugins, options["topology"], options["components"], setup.sets)
    return shell.replay(f"ccl {kind.command}", asked, resolved, table.run)


def _with_table(config: CclConfig, given: str | None, machine: TimedMachine) -> CclConfig:
    """Return the configuration with the table that --tuning names; UsageError for one of another machine, or none."""
    from kernbench_ccl.plan.auto import AutoMachine, unfit
    from kernbench_ccl.plan.machine_tuning import read_machine_tuning

    if given is None:
        return config
    try:
        table = read_machine_tuning(Path(given))
    except OSError as fault:
        raise UsageError(f"option --tuning must be a file that can be read, not {given!r}: {fault.strerror}.") from None
    except ValueError as fault:
        raise UsageError(f"option --tuning {fault}") from None
    if unfit(table, AutoMachine(machine.graph, machine.network.name)) is not None:
        raise UsageError(
            f"option --tuning must be a table of this machine, not {given!r}, which was measured on {table.made_on}; "
            "measure this one with kernbench ccl tune."
        )
    return evolve(config, auto=evolve(config.auto, tuning=table))


def _algorithms(given: Iterable[str], config: CclConfig) -> tuple[str, ...]:
    """Return the algorithms to run, each once; UsageError where auto is not alone."""
    names = tuple(dict.fromkeys(given))
    if len(names) > 1 and "auto" in names and "auto" not in config.entries:
        others = " and ".join(repr(other) for other in names if other != "auto")
        raise UsageError(f"option --algo must be auto alone, or algorithms by their names, not also {others}.")
    return names


def _question(kind: CollectiveKind, options: dict[str, Any]) -> Question:
    from kernbench_ccl.measure import Question

    pipeline = None if options["pipeline"] is None else options["pipeline"] == "on"
    return Question(
        kind, read_dtype(options["dtype"]), options.get("redop"), options.get("root") or 0, pipeline, options["pes"],
        options.get("contributors") or "sip",
    )  # fmt: skip


def read_dtype(given: str) -> str:
    """Return the name of a dtype, also of one that nccl-tests calls otherwise; UsageError for one that is not there."""
    from kernbench_core.errors import UnsupportedError
    from kernbench_core.values.dtypes import dtype_of

    try:
        return dtype_of(_NCCL_DTYPES.get(given, given))
    except UnsupportedError as fault:
        raise UsageError(f"option --dtype: {fault}") from None


def check_network(given: str | None, plugins: Plugins) -> None:
    """Raise UsageError for a shape of the scale-up network that is not there."""
    if given is not None:
        _require_one_of("--network", given, plugins.networks)


def _sizes(options: dict[str, Any]) -> list[int]:
    from kernbench_ccl.measure.sweep import sizes_of

    least, most = options["least"], options["most"]
    if options["factor"] is not None and options["step"] is not None:
        raise UsageError("options -f and -i exclude each other; give one of them.")
    if most is None:
        most = max(least, 16 << 20)
    if most < least:
        raise UsageError(f"option -e must be at least -b, {least} B, not {most} B; give a larger one.")
    return sizes_of(least, most, options["factor"], options["step"])


def machine_sets(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the settings that the options stand for, then those that were given as such."""
    network = "system.network"
    named = {
        "ranks": "system.sips", "network": f"{network}.topology", "link_bw": f"{network}.bandwidth",
        "link_latency": f"{network}.latency",
    }  # fmt: skip
    given = {name: key for name, key in named.items() if options[name] is not None}
    own = (OptionSetting.of(f"--{name.replace('_', '-')}", key, options[name]) for name, key in given.items())
    return (*own, *options["sets"])


def _warn(shell: Shell, idealised: bool, machine: TimedMachine) -> None:
    from kernbench_ccl.measure.idealised import remaining

    if not idealised:
        return
    left = remaining(machine.graph, shell.plugins.components)
    if left:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        shell.warn(f"the machine is not ideal: {'; '.join(left[:3])}{more}; set these too.")
