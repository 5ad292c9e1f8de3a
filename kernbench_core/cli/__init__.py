"""The `kernbench` command: its words come in, results and sentences go out, and an exit code; what heads it is light.

Everything else of it, in `command`, is imported when it is carried out, so that Ctrl-C is told in a sentence even then.
"""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

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
    when a limit is over that nothing else keeps.
    """
    if args is not None:
        from kernbench_core.cli import command

        return command.run_here(list(args), plugins)
    gc.set_threshold(_ALLOCATIONS)
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", _SPIN)
    try:
        from kernbench_core.cli import command

        code = command.run_process(plugins)
    except KeyboardInterrupt:
        os.write(2, b"error: interrupted while loading kernbench.\n")
        code = 130
    gc.freeze()  # what is left goes with the process: Python would look through all of it, in vain
    return code
