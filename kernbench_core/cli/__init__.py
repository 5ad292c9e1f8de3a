"""The `kernbench` command: its words come in, results and sentences go out, and an exit code; what heads it is light.

Everything else of it, in `command`, is imported when it is carried out, so that Ctrl-C finds somebody even then.
"""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

from kernbench_core.process.quiet_exit import QuietExit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernbench_core.plugins import Plugins

_ALLOCATIONS = 500_000
"""After how many new objects this process looks for cyclic garbage: what its start makes is kept, not garbage."""
_SPIN = "20"
"""For how many clocks, a power of two, numpy's threads look for work before they sleep: 0.4 ms, not the usual 25 ms."""


def main(args: Sequence[str] | None = None, plugins: Plugins | None = None) -> int:
    """Run the command line and return its exit code; `plugins` default to the installed ones.

    `args` are those of a command that is a part of another program; None for those of this process, which then is ended
    when a limit is over that nothing else keeps, and quietly by Ctrl-C before the command has begun and after its end.
    """
    if args is None:
        QuietExit.install()
        gc.set_threshold(_ALLOCATIONS)
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", _SPIN)
    from kernbench_core.cli import command

    if args is not None:
        return command.run_here(list(args), plugins)
    code = command.run_process(plugins)
    gc.freeze()  # what is left goes with the process: Python would look through all of it, in vain
    return code
