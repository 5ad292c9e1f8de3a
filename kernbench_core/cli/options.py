"""Options of commands: those that many have, those of runs and of their parts, as decorators or `parameters`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import rich_click as click
from click.core import ParameterSource

from kernbench_core.cli.option_types import completed_as, duration, number, port, whole
from kernbench_core.runs.options import BENCH, MACHINE, Option, OptionRecord, command_options

if TYPE_CHECKING:
    from kernbench_core.runs.parts import RunPart


#: The options that say which machine a command is about, by what they say of it.
_MACHINE: Final = {"--topology": "topology", "--components": "components", "--set": "set"}


class MachineOption(click.RichOption):
    """An option; where it is about the machine of a command that has --topology, parts of runs may say it, too."""

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value that counts, and where it comes from."""
        value, source = super().consume_value(ctx, opts)
        names = {_MACHINE[each.opts[0]]: str(each.name) for each in ctx.command.params if each.opts[0] in _MACHINE}
        if ctx.resilient_parsing or self.opts[0] not in _MACHINE or "topology" not in names:
            return value, source
        from kernbench_core.cli.shell import Shell
        from kernbench_core.runs.parts import machine_of

        given = {what: opts.get(name) for what, name in names.items()}
        found = machine_of(ctx.ensure_object(Shell).plugins, ctx, given, opts).get(_MACHINE[self.opts[0]])
        typed = source is ParameterSource.COMMANDLINE
        return (found or value), (source if typed or not found else ParameterSource.DEFAULT_MAP)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value as its type has it; settings stay the texts that they are."""
        return tuple(value or ()) if self.opts[0] == "--set" else super().type_cast_value(ctx, value)


class Declared:
    """An option that is declared: a decorator of the commands that have it.

    What the help shows for its value says what completes that; a default is shown.
    """

    def __init__(self, *names: str, **given: Any) -> None:
        self._names = names
        self._given = given

    def but(self, **changed: Any) -> Declared:
        """Return the option with another help or default, or another name (`names`) in the command's function."""
        return Declared(*changed.pop("names", self._names), **{**self._given, **changed})

    @property
    def parameter(self) -> click.Option:
        """The option as click has it."""
        given = {"shell_complete": completed_as(self._given.get("metavar")), **self._given}
        given.setdefault("show_default", given.get("default") is not None and not given.get("is_flag"))
        made: type[click.RichOption] = given.pop("cls", MachineOption)
        return made(list(self._names), **given)

    def __call__(self, command: Callable[..., Any]) -> Callable[..., Any]:
        """Give a command the option, before those that it has."""
        given: Callable[..., Any] = with_parameters(self)(command)
        return given


def option_of(name: str, option: Option, default: object) -> Declared:
    """Return what is written down of an option of a run, under the name of its field."""
    flag = f"--{option.name or name.replace('_', '-')}"
    if default is True:
        return Declared(
            f"--no-{flag[2:]}", name, is_flag=True, help=option.help, panel=option.group,
            callback=lambda ctx, param, value: not value,
        )  # fmt: skip
    if default is False:
        return Declared(flag, name, is_flag=True, help=option.help, panel=option.group)
    kind: Any = str
    if option.choices:
        kind = click.Choice(option.choices)
    elif option.metavar == "PORT":
        kind = port()
    elif option.example is not None:
        kind = duration(option.example, option.per_ns)
    elif option.least is not None or isinstance(default, int):
        kind = whole(option.least)
    elif isinstance(default, float):
        kind = number()
    several = default == ()
    bare = {} if option.bare is None else {"is_flag": False, "flag_value": option.bare}
    return Declared(
        flag, name, metavar=option.metavar, type=kind, default=None if several else default, multiple=several,
        help=option.help, panel=option.group, **bare,
    )  # fmt: skip


def with_parts(
    ctx: click.Context,
    own: list[click.Parameter],
    records: Sequence[str] = ("OPTIONS",),
    takes: Callable[[type[RunPart]], bool] = lambda part: True,
) -> list[click.Parameter]:
    """Add those `records` of the parts of runs to the parameters of a command, before how results are printed."""
    from kernbench_core.cli.shell import Shell
    from kernbench_core.runs.parts import parts_of

    theirs = [
        declared.parameter
        for part in filter(takes, parts_of(ctx.ensure_object(Shell).plugins))
        for record in (getattr(part, each) for each in records)
        for declared in _declared(record)
    ]
    at = next((at for at, each in enumerate(own) if each.name == "as_json"), len(own))
    return [*own[:at], *theirs, *own[at:]]


def _declared(record: type[OptionRecord], but: Sequence[str] = ()) -> list[Declared]:
    fields, options = attrs.fields_dict(record), command_options(record)
    return [option_of(name, option, fields[name].default) for name, option in options.items() if name not in but]


def record_options(record: type[OptionRecord], but: Sequence[str] = ()) -> Callable[[Callable[..., Any]], Any]:
    """Give a command the options of a record, under the names of its fields, `but` some."""
    return with_parameters(*_declared(record, but))


def grouped(title: str, *declared: Declared) -> list[Declared]:
    """Return options that the help lists together, under a title."""
    return [each.but(panel=title) for each in declared]


def parameters(*declared: Declared) -> list[click.Parameter]:
    """Return options as click has them, in their order."""
    return [each.parameter for each in declared]


def with_parameters(*declared: Declared) -> Callable[[Callable[..., Any]], Any]:
    """Give a command these options, in their order, before those that it has."""

    def decorate(command: Any) -> Any:
        made = parameters(*declared)
        if isinstance(command, click.Command):
            command.params = [*made, *command.params]
        else:  # as click's own decorators do
            command.__click_params__ = [*getattr(command, "__click_params__", []), *reversed(made)]
        return command

    return decorate


TOPOLOGY: Final = Declared(
    "--topology", metavar="PRESET|FILE", default="default", help="The machine to simulate.", panel=MACHINE
)
COMPONENTS: Final = Declared(
    "--components", metavar="FILE", panel=MACHINE, help="A YAML file merged over the topology, to replace components."
)
SETS: Final = Declared(
    "--set", "sets", metavar="KEY=VALUE", multiple=True, help="Set one configuration key; repeatable.", panel=MACHINE
)
PARAMS: Final = Declared(
    "-p", "params", metavar="NAME=VALUE", multiple=True, help="Set a parameter of the bench; repeatable.", panel=BENCH
)
JSON: Final = Declared("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
QUIET: Final = Declared("-q", "--quiet", is_flag=True, help="Print one line, and no progress.")
VERBOSE: Final = Declared("-v", "--verbose", is_flag=True, help="Print all details.")
CACHED: Final = Declared(
    "--cached", is_flag=True, help="Print the stored output if nothing that it depends on changed; else store it."
)
JOBS: Final = Declared("-j", "--jobs", metavar="N", type=whole(1), default="1", help="Number of processes.")
TIMEOUT: Final = Declared(
    "--timeout", "timeout_s", metavar="TIME", type=duration("60 s", 1e-9), help="Stop after this wall time ('60 s')."
)
