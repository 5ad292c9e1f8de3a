"""`kernbench probe`: measure the machine itself, without a kernel, in one of several modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import rich_click as click
from click.core import ParameterSource

from kernbench_builtin.probe import dram_command, traffic_command, transfers_command
from kernbench_core.cli.options import CACHED, COMPONENTS, JSON, SETS, TIMEOUT, TOPOLOGY, parameters
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process import WallTime
from kernbench_core.runs import configure


class Mode(Protocol):
    """What a module of a mode offers: the option that chooses it, its options, and what it does."""

    #: The option that chooses the mode, the first of its own; "" for what is done without any.
    FLAG: str
    OPTIONS: list[click.Parameter]
    #: The machine that is probed when nobody names one.
    DEFAULT_TOPOLOGY: str
    run: Callable[..., int]


MODES: tuple[Mode, ...] = (transfers_command, traffic_command, dram_command)
COMMON = parameters(TOPOLOGY, COMPONENTS, SETS, JSON)


@click.pass_context
def _probe(ctx: click.Context, /, timeout_s: float | None, cached: bool, **options: Any) -> int:
    given = {name for name in options if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    chosen = next((mode for mode in MODES if mode.FLAG and mode.OPTIONS[0].name in given), MODES[0])
    own = {str(option.name) for option in (*COMMON, *chosen.OPTIONS)}
    for mode in MODES:
        for option in mode.OPTIONS:
            if option.name in given - own:
                flag = mode.FLAG if mode.FLAG not in option.opts else ""
                needs = f"must be given together with {flag}" if flag else f"must not go with {chosen.FLAG}"
                raise UsageError(f"option {option.opts[0]} {needs}; see 'kernbench probe --help'.")
    shell = ctx.ensure_object(Shell)
    asked = {name: options[name] for name in own}
    with WallTime(timeout_s).spent_on("probing"):
        if not cached:
            return chosen.run(shell, **asked)
        topology = options["topology"] if "topology" in given else chosen.DEFAULT_TOPOLOGY
        config = configure(shell.plugins, topology, options["components"], options["sets"])
        return shell.replay(f"probe {chosen.FLAG}".strip(), asked, config, lambda: chosen.run(shell, **asked))


# an option that several modes share stands once, as the first of them declares it
_EVERY = [*COMMON, *parameters(CACHED, TIMEOUT), *(option for mode in MODES for option in mode.OPTIONS)]
_ALL = {option.name: option for option in reversed(_EVERY)}

probe = click.RichCommand(
    name="probe",
    callback=_probe,
    params=list(reversed(_ALL.values())),
    help=(
        "Measure the machine itself: how far its memories are, what saturates first.\n\nWithout --traffic or --dram: "
        "transfers between host, PEs and memories, each beside its lower bound."
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
