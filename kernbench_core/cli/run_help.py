"""The help of `kernbench run`: with the name of a bench before `--help` or behind it, also that bench's parameters."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import rich_click as click

from kernbench_core.cli.options import with_parts
from kernbench_core.errors import KernbenchError
from kernbench_core.process.terminal import shown
from kernbench_core.runs.options import GROUPS

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell
    from kernbench_core.runs.parts import RunPart

_GIVEN = "kernbench.bench"


class GroupedCommand(click.RichCommand):
    """A command whose help lists its options in groups, behind the examples that stand in its `epilog`."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, panels=[click.RichOptionPanel(title) for title in GROUPS], **given)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what it does, then its examples."""
        super().format_help_text(ctx, formatter)
        if self.epilog:
            formatter.write(f"Examples:\n{self.epilog}\n")

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write nothing: the examples stand above."""


class RunCommand(GroupedCommand):
    """A command with an argument `bench`, whose help shows the parameters of the one that is given."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its parameters, and those of the parts of runs before what says how results are printed."""
        return with_parts(ctx, super().get_params(ctx), ("OPTIONS", "COMMAND"), self.takes)

    def takes(self, part: type[RunPart]) -> bool:
        """Whether it has the options of a part of runs."""
        return True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments apart, and keep in mind which bench is asked about."""
        if any(name in args for name in ctx.help_option_names):  # click prints help before it looks at arguments
            ctx.meta[_GIVEN] = self._asked_about(ctx, args)
        return super().parse_args(ctx, args)

    def _asked_about(self, ctx: click.Context, args: list[str]) -> str | None:
        before, ctx.resilient_parsing = ctx.resilient_parsing, True
        try:
            found, _, _ = self.make_parser(ctx).parse_args(list(args))
        except click.UsageError:
            return None
        finally:
            ctx.resilient_parsing = before
        bench = found.get("bench")
        return bench if isinstance(bench, str) else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, then the parameters of the bench; warn where it cannot be had."""
        super().format_help(ctx, formatter)
        name, shell = ctx.meta.get(_GIVEN), ctx.obj
        if name is not None:
            formatter.write("\n".join(_parameters(shell, name, formatter.width)))


def _parameters(shell: Shell, name: str, wide: int) -> list[str]:
    """Return the lines on a bench; none, and a warning, where there is no such bench or it fails to import."""
    from kernbench_core.cli.bench_view import parameter_lines
    from kernbench_core.host.programs import open_program

    try:
        with redirect_stdout(sys.stderr):  # what a file prints is no help
            bench = open_program(name, shell.plugins)
    except KernbenchError as error:
        shell.warn(f"the parameters of {name!r} are not shown: {error}")
        return []
    heading = shown(f"Parameters of {bench.name}, each given as -p NAME=VALUE:")
    return [heading, *(f"  {line}".rstrip() for line in parameter_lines(bench.params, wide - 2)), ""]
