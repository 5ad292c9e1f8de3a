"""The part of `kernbench probe` that ...: owner fills in."""

from __future__ import annotations

from typing import Any

import rich_click as click

from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UnsupportedError

FLAG = "--traffic"
OPTIONS: tuple[click.Option, ...] = (
    click.Option(["--traffic"], metavar="PATTERN", help="Drive the machine's mesh with synthetic traffic."),
)


def run(shell: Shell, **options: Any) -> int:
    """Probe."""
    raise UnsupportedError("kernbench probe cannot do this yet.")
