"""Options of commands, those that many have written once: decorators of a command, or its `parameters`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import rich_click as click

from kernbench_core.cli.option_types import Time, Whole, completed_as, completed_by


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
        return click.Option(list(self._names), **given)

    def __call__(self, command: Callable[..., Any]) -> Callable[..., Any]:
        """Give a command the option, before those that it has."""
        given: Callable[..., Any] = with_parameters(self)(command)
        return given


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


TOPOLOGY: Final = Declared("--topology", metavar="PRESET|FILE", default="default", help="The machine.")
COMPONENTS: Final = Declared("--components", metavar="FILE", help="A YAML file merged over the topology.")
SETS: Final = Declared(
    "--set", "sets", metavar="KEY=VALUE", multiple=True, help="Set one configuration key; repeatable."
)
PARAMS: Final = Declared(
    "-p", "params", metavar="NAME=VALUE", multiple=True, help="Set a parameter of the bench; repeatable.",
    shell_complete=completed_by("parameters"),
)  # fmt: skip
JSON: Final = Declared("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
QUIET: Final = Declared("-q", "--quiet", is_flag=True, help="Show no progress.")
ONE_LINE: Final = QUIET.but(help="Print one line, and no progress.")
VERBOSE: Final = Declared("-v", "--verbose", is_flag=True, help="Print everything that is known.")
CACHED: Final = Declared(
    "--cached", is_flag=True, help="Print what was printed before, if all that it depends on is the same; else keep it."
)
JOBS: Final = Declared("-j", "--jobs", metavar="N", type=Whole(1), default="1", help="Processes that simulate.")
TIMEOUT: Final = Declared(
    "--timeout", "timeout_s", metavar="T", type=Time("60 s", 1e-9), help="Stop after this wall time, as '60 s'."
)
