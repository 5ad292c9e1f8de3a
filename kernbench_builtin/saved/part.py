"""The part of runs that writes their folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernbench_core.runs import RunPart

if TYPE_CHECKING:
    from kernbench_builtin.saved.run_folder import OutFolder


class Folders(RunPart):
    """Write the folder that `--out` of core names."""

    NAME, KEPT = "folders", False

    @classmethod
    def wanted(cls, options: Any, call: Any) -> bool:
        """No run has it for itself."""
        return False

    @classmethod
    def folder(cls, out: str | Path, more: tuple[str, ...]) -> OutFolder:
        """Check that a run can be written to `out`."""
        from kernbench_builtin.saved.run_folder import out_folder

        return out_folder(out, more)
