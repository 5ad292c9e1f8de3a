"""The part of `kernbench probe` that ...: owner fills in."""

from __future__ import annotations

from typing import Any

import rich_click as click

from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UnsupportedError

FLAG = ""
OPTIONS: tuple[click.Option, ...] = (
    click.Option(["--from", "source"], metavar="NODE", help="Where a transfer begins."),
)


def run(shell: Shell, **options: Any) -> int:
    """Probe."""
    raise UnsupportedError("kernbench probe cannot do this yet.")
