"""Groups of commands that plug-ins register: that of all commands, and those within it."""

from __future__ import annotations

from typing import Any, Final

import rich_click as click
from click.exceptions import Exit

from kernbench_core.cli.shell import Shell
from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import CORE, CommandEntry, Registry
from kernbench_core.process.interrupt import WallTimeExceeded
from kernbench_core.wording import PLAIN, brief, never_runs

_MOST_CODE: Final = 255
_OWN_DISTRIBUTION: Final = "kernbench"


class CommandGroup(click.RichGroup):
    """The commands that plug-ins register, core among them: of `kernbench`, or of a group of it those named after it.

    In the group `acme` that is a command whose entry is called `acme roof`. One is imported when it is called. Commands
    that a group has of click's decorators stand among them.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands: of all commands core's in its order, then the others'."""
        commands = _commands(ctx)
        own = [entry.name for entry, provider in commands.given if provider == CORE and not _prefix(ctx)]
        words = [word for word in (_word(ctx, name) for name in commands) if word]
        return list(dict.fromkeys([*(name for name in own if name in words), *sorted({*self.commands, *words})]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a stand-in that says what a registered command does, or one that the group has itself."""
        own, entry = super().get_command(ctx, cmd_name), _entry(ctx, cmd_name)
        if own is not None or entry is None:
            return own
        return click.RichCommand(name=cmd_name, short_help=entry.sentence)

    def load(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Import a command; raise PluginError for what is none."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        commands, name = _commands(ctx), _name(ctx, cmd_name)
        command = commands.load(name)
        if not isinstance(command, click.Command):
            raise commands.fault(name, f"must be a click command, not {brief(command)}")
        if never_runs(command.callback):
            raise commands.fault(name, PLAIN)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that is called, and import it."""
        word = args[0] if args else ""
        if word and not word.startswith("-") and self.get_command(ctx, word) is None:
            hint = did_you_mean(word, self.list_commands(ctx))
            left_out = _commands(ctx).left_out
            raise UsageError(f"{ctx.command_path} must be followed by a command, not {brief(word)}.{hint}{left_out}")
        found, command, rest = super().resolve_command(ctx, args)
        return found, command if found is None else self.load(ctx, found), rest

    def invoke(self, ctx: click.Context) -> Any:
        """Carry out the command; PluginError for what one of a plug-in raises that is no error of ours or of click."""
        try:
            code = super().invoke(ctx)
            if isinstance(code, int) and not 0 <= code <= _MOST_CODE and _called(ctx):
                must = f"must return an exit code from 0 to {_MOST_CODE}, or None, not {code}"
                raise _commands(ctx).fault(_called(ctx), must)
            return code
        except (KernbenchError, click.ClickException, Exit, click.Abort, MemoryError):
            raise
        except (KeyboardInterrupt, WallTimeExceeded):
            raise
        except BaseException as error:
            name, commands = _called(ctx), _commands(ctx)
            if not name or commands.provider(name).distribution == _OWN_DISTRIBUTION:
                raise
            raise commands.raised(name, error) from error


def shell_of(ctx: click.Context) -> Shell:
    """Return what the commands of this invocation share."""
    return ctx.ensure_object(Shell)


def _commands(ctx: click.Context) -> Registry[CommandEntry]:
    return shell_of(ctx).plugins.commands


def _prefix(ctx: click.Context) -> str:
    """Return what the names of this group's commands begin with: the words that call the group."""
    return "" if ctx.parent is None else f"{_prefix(ctx.parent)}{ctx.info_name} "


def _name(ctx: click.Context, word: str) -> str:
    """Return the name of the entry that a word calls, with its vendor where that stands before the word."""
    vendor, colon, bare = word.rpartition(":")
    return f"{vendor}{colon}{_prefix(ctx)}{bare}"


def _word(ctx: click.Context, name: str) -> str:
    """Return the word that calls an entry in this group; "" for one of another group."""
    vendor, colon, bare = name.rpartition(":")
    word = bare.removeprefix(_prefix(ctx)) if bare.startswith(_prefix(ctx)) else ""
    return f"{vendor}{colon}{word}" if word and " " not in word else ""


def _entry(ctx: click.Context, word: str) -> CommandEntry | None:
    commands, name = _commands(ctx), _name(ctx, word)
    return commands[name] if " " not in word and name in commands else None


def _called(ctx: click.Context) -> str:
    """Return the name of the entry that was called; "" for none, or one that the group has itself."""
    word = ctx.invoked_subcommand or ""
    return _name(ctx, word) if _entry(ctx, word) is not None else ""
