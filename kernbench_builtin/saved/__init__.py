"""Runs in folders, for `--out`: inputs, op log, result and manifest, and the op log loaded again, anywhere.

In: a run that has ended. Out: a folder that can be run again, and whose op log computes in a process that knows nothing
of the run. `rerun` calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.saved.saved_run import load_run as load_run
    from kernbench_builtin.saved.saved_run import save_run as save_run

__getattr__ = door(__name__)
