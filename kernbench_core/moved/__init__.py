"""Where modules went that lay elsewhere before: logs that were saved, and plug-ins, may still name the old places.

In: a "module:name", or an error of an import. Out: what it is called now, and a hint for people. Errors and phase 2
call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.moved.hints import current as current
    from kernbench_core.moved.hints import hint as hint
    from kernbench_core.moved.places import MOVED as MOVED
    from kernbench_core.moved.places import NAMES as NAMES

__getattr__ = door(
    __name__,
    {
        "MOVED": "places",
        "NAMES": "places",
        "current": "hints",
        "hint": "hints",
    },
)
