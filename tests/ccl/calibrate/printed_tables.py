"""The table of a small machine, for tests that read it as the log of a real one."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins

SMALL = ("cube.pes=2", "components.hbm_ctrl.params.channels=8", "pe.tcm.capacity=64 MiB")
"""A machine of few PEs, with room for what is under way, whose memory keeps its bandwidth: quick to simulate."""


def printed(plugins: Plugins, collective: str, ranks: int, *more: str) -> str:
    """Return what the command prints of the small machine, which is what nccl-tests would."""
    sets = [word for one in SMALL for word in ("--set", one)]
    command = ["ccl", collective, "--topology", "tiny", "--ranks", str(ranks), "--no-check", "-j", "1", *sets]
    with redirect_stdout(io.StringIO()) as out:
        assert main([*command, *more], plugins) == 0
    return out.getvalue()
