"""What computes each op of a run anew, for `--verify-ops`."""

from __future__ import annotations

from kernbench_core.plugins import RunPartEntry

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_run_parts() -> list[RunPartEntry]:
    """Return who checks single ops."""
    return [RunPartEntry("op_checks", "kernbench_builtin.verify.part:OpChecks", "Compute each op again by itself.")]
