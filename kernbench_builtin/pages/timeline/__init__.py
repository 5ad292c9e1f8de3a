"""What happened when in a run: columns of spans, counters over time, and arrows, on tracks that nest as the machine.

In: what an observer of the engine noted, and the op log. Out: a `Timeline`. Runs call it; exporters and pages read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.pages.timeline.activity import Activity as Activity
    from kernbench_builtin.pages.timeline.counters import at_whole_ns as at_whole_ns
    from kernbench_builtin.pages.timeline.lanes import lanes_of as lanes_of
    from kernbench_builtin.pages.timeline.lanes import whole_ns as whole_ns
    from kernbench_builtin.pages.timeline.levels import LEVELS as LEVELS
    from kernbench_builtin.pages.timeline.levels import PLACE as PLACE
    from kernbench_builtin.pages.timeline.levels import TIMELINE as TIMELINE
    from kernbench_builtin.pages.timeline.recorder import TimelineRecorder as TimelineRecorder
    from kernbench_builtin.pages.timeline.storage import load as load
    from kernbench_builtin.pages.timeline.storage import save as save
    from kernbench_builtin.pages.timeline.timeline import FLOWS as FLOWS
    from kernbench_builtin.pages.timeline.timeline import Counter as Counter
    from kernbench_builtin.pages.timeline.timeline import Timeline as Timeline
    from kernbench_builtin.pages.timeline.timeline import Track as Track
    from kernbench_builtin.pages.timeline.timeline import op_of as op_of

__getattr__ = door(__name__)
