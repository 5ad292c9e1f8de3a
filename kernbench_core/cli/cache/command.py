"""`kernbench cache`, whose commands are loaded when one of them is called."""

from __future__ import annotations

import rich_click as click

_COMMANDS = {"list": "list_entries", "show": "show", "prune": "prune"}


class CacheGroup(click.RichGroup):
    """The group, without what its commands need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None where there is none of this name."""
        from kernbench_core.cli.cache import entries

        return getattr(entries, _COMMANDS[cmd_name]) if cmd_name in _COMMANDS else None


cache_group = CacheGroup(
    name="cache",
    help="Look at the results that --cached has kept, and make room.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
