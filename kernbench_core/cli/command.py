"""The commands of `kernbench`: the only place that exits, and the map from errors to exit codes.

0 right, 1 the result is wrong, 2 usage, 3 configuration, 4 deadlock, 5 a limit was reached, 6 the kernel or
a plug-in raised, 7 a check failed (do not use the result), 130 interrupted. Results go to stdout,
everything else to stderr. Command modules import what is heavy inside their functions.

With --timeout the command runs in a child of the process that was started: see `kernbench_core.process.supervision`.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rich_click as click

from kernbench_core.cli.group import CommandGroup, shell_of
from kernbench_core.cli.plugin_options import OPTIONS, wanted, without_plugin_options
from kernbench_core.cli.process import limit_s, own_process, terminable
from kernbench_core.cli.shell import Shell
from kernbench_core.cli.streams import lasting_streams
from kernbench_core.compiled import in_words
from kernbench_core.errors import (
    OUT_OF_MEMORY,
    ConfigError,
    KernbenchError,
    KernbenchWarning,
    LimitError,
)
from kernbench_core.package import __version__
from kernbench_core.plugin import PANELS
from kernbench_core.plugins import Plugins
from kernbench_core.process.interrupt import Terminated, Termination

_INTERRUPTED = 130
_TERMINATED = 143
_OWN_FAULT = 7
#: One look for terminals and pipes: no boxes, so that 80 columns are enough.
LOOK = {
    "theme": "default-slim", "default_string": "\\[default: {}]", "append_metavars_help_string": "{}",
    "options_table_help_sections": ["help", "required", "default"],
}  # fmt: skip


class AllCommands(CommandGroup):
    """The group of all commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with each command under the title that its entry says."""
        commands = shell_of(ctx).plugins.commands
        titles: dict[str, list[str]] = {title: [] for title in PANELS}
        for name in self.list_commands(ctx):
            titles.setdefault(commands[name].panel, []).append(name)
        self.panels = [click.RichCommandPanel(title, commands=names) for title, names in titles.items() if names]
        super().format_help(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        """Carry out the command; note what Ctrl-C or SIGTERM ended."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            shell_of(ctx).interrupted = " ".join(("", *getattr(stop, "__notes__", ())))
            if isinstance(stop, Terminated):
                raise SystemExit(_TERMINATED) from None  # click tells of every other KeyboardInterrupt
            raise


@click.group(cls=AllCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kernbench", message=f"%(prog)s %(version)s ({in_words()})")
def kernbench() -> None:
    """Run Triton-like kernels on a simulated multi-chiplet accelerator: how long, why, and is the result right."""


kernbench.params += OPTIONS


def run_process(plugins: Plugins | None) -> int:
    """Run the command line of this process, which does nothing else; return its exit code."""
    given = sys.argv[1:]
    shell = Shell(plugins, as_json="--json" in given)
    return own_process(lambda: run_here(given, plugins), given, lambda error: _report_error(shell, error))


def run_here(given: list[str], plugins: Plugins | None) -> int:
    """Run a command line; return its exit code, that of a stream that failed included."""
    with lasting_streams() as out:
        shell = Shell(plugins, as_json="--json" in given, timeout_s=limit_s(given))
        with terminable() as termination:
            code = _run(shell, given, termination)
        if code == _INTERRUPTED and termination.came:
            code = _TERMINATED
        if (fault := out.told()) is not None:
            shell.error(fault)
            return code or 2
        return code


def _run(shell: Shell, given: list[str], termination: Termination) -> int:
    """Run a command line; return its exit code, its error told."""
    try:
        rest, chosen = without_plugin_options(given)
        with _sentences(shell), wanted(chosen):
            if asked := os.environ.get("_KERNBENCH_COMPLETE"):
                from kernbench_core.cli.completion import answer

                return answer(kernbench, shell, asked)
            code = kernbench.main(rest, prog_name="kernbench", standalone_mode=False, obj=shell, rich_help_config=LOOK)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as stop:
        # click exits by itself in one case: help for a bare `kernbench` (2).
        if stop.code == _TERMINATED:
            return _report_error(shell, Terminated())
        return 2 if stop.code == 2 else _report_error(shell, stop)
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt | click.Abort)
        return _report_error(shell, Terminated() if interrupted and termination.came else error)


@contextmanager
def _sentences(shell: Shell) -> Iterator[None]:
    """Write our own warnings as those of the shell, each once; others as Python does."""
    usual, told = warnings.showwarning, set[str]()

    def show(message: Warning | str, category: type[Warning], *place: Any, **written: Any) -> None:
        if not issubclass(category, KernbenchWarning):
            usual(message, category, *place, **written)
        elif str(message) not in told:
            told.add(str(message))
            shell.warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", KernbenchWarning)
        warnings.showwarning = show
        yield


def _report_error(shell: Shell, error: BaseException) -> int:
    """Tell the user of an error, and return its exit code."""
    if isinstance(error, ConfigError):
        return shell.fail(error.exit_code, *error.problems, labelled=False)
    if isinstance(error, KernbenchError):
        return shell.fail(error.exit_code, "\n".join([str(error), *getattr(error, "__notes__", ())]))
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx is not None else "kernbench"
        told = error.format_message()
        stop = "" if told.endswith((".", "?", "?)")) else "."
        left_out = shell.plugins.run_parts.left_out if isinstance(error, click.NoSuchOption) else ""
        return shell.fail(2, f"{told}{stop}{left_out} See '{command} --help'.")
    if isinstance(error, click.ClickException):
        return shell.fail(error.exit_code, error.format_message())
    if isinstance(error, MemoryError):
        told = f" ({error})" if str(error) else ""
        error.__traceback__ = None  # its frames may hold most of what there is
        return shell.fail(LimitError.exit_code, f"the memory of this process is exhausted{told}; {OUT_OF_MEMORY}")
    if isinstance(error, Terminated):
        return shell.fail(_TERMINATED, f"terminated{shell.interrupted}.")
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return shell.fail(_INTERRUPTED, f"interrupted{shell.interrupted}.")
    if isinstance(error, OSError) and error.strerror:  # what the machine that we run on refuses
        what = "a file or a process" if error.filename is None else repr(str(error.filename))
        told = f"{what} must be usable, but that failed with {error.strerror!r}"
        return shell.fail(2, f"{told}; make room, or name another.")
    traceback.print_exception(error)
    return shell.fail(
        _OWN_FAULT, "kernbench itself failed; please report the lines above. Do not use any result of this run."
    )
