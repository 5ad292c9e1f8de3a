"""What any process of kernbench keeps, whatever it runs: interrupts, limits, files and the terminal.

In: limits, paths and text. Out: interrupts that arrive, files that are whole or not there. Every room calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.process.collection import garbage_left as garbage_left
    from kernbench_core.process.collection import no_automatic_collection as no_automatic_collection
    from kernbench_core.process.interrupt import INTERRUPTS as INTERRUPTS
    from kernbench_core.process.interrupt import Alarm as Alarm
    from kernbench_core.process.interrupt import WallTime as WallTime
    from kernbench_core.process.interrupt import WallTimeExceeded as WallTimeExceeded
    from kernbench_core.process.notebook import Pictured as Pictured
    from kernbench_core.process.supervision import GRACE_S as GRACE_S
    from kernbench_core.process.supervision import end_with as end_with
    from kernbench_core.process.supervision import ended_by_limit as ended_by_limit
    from kernbench_core.process.supervision import limit_error as limit_error
    from kernbench_core.process.supervision import report_to as report_to
    from kernbench_core.process.terminal import shown as shown
    from kernbench_core.process.whole_files import check_file as check_file
    from kernbench_core.process.whole_files import folder_above as folder_above
    from kernbench_core.process.whole_files import is_file as is_file
    from kernbench_core.process.whole_files import whole_file as whole_file
    from kernbench_core.process.whole_files import write_text as write_text

__getattr__ = door(__name__)
