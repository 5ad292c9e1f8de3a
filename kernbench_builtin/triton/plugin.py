"""What runs files that are written in Triton: a command for scripts, and the kind of program that their kernels are."""

from __future__ import annotations

from kernbench_core.plugin import RUN
from kernbench_core.plugins import CommandEntry, ProgramEntry

HERE = "kernbench_builtin.triton"

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_commands() -> list[CommandEntry]:
    """Return the command."""
    return [CommandEntry("triton", f"{HERE}.command:triton", "Run a Triton script unchanged.", RUN)]


def kernbench_programs() -> list[ProgramEntry]:
    """Return the kind of program."""
    return [ProgramEntry("triton", f"{HERE}.program:JIT", "A kernel that triton.jit decorates.")]
