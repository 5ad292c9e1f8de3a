"""What authors of plug-ins test with: rigs for single models, and what kits of checks are made of.

    rig = Rig(MyModel, {"overhead": "5 ns"})
    rig.feed(at_ns=0, nbytes=100).feed(at_ns=3, nbytes=100)
    assert_ready_at(rig, 12.0)          # nothing had come one grid step before 12 ns; it is there at 12 ns
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.testing.kit import Check as Check
    from kernbench_core.testing.kit import CheckFailed as CheckFailed
    from kernbench_core.testing.kit import CheckOutcome as CheckOutcome
    from kernbench_core.testing.kit import CheckResult as CheckResult
    from kernbench_core.testing.kit import Kit as Kit
    from kernbench_core.testing.kit import NotApplicable as NotApplicable
    from kernbench_core.testing.kit import kit_of as kit_of
    from kernbench_core.testing.rig import MOST_EVENTS as MOST_EVENTS
    from kernbench_core.testing.rig import Arrival as Arrival
    from kernbench_core.testing.rig import Feed as Feed
    from kernbench_core.testing.rig import Harness as Harness
    from kernbench_core.testing.rig import LogLine as LogLine
    from kernbench_core.testing.rig import Model as Model
    from kernbench_core.testing.rig import Ping as Ping
    from kernbench_core.testing.rig import Placed as Placed
    from kernbench_core.testing.rig import Probe as Probe
    from kernbench_core.testing.rig import Rig as Rig
    from kernbench_core.testing.rig import assert_ready_at as assert_ready_at
    from kernbench_core.testing.rig import assert_same_log as assert_same_log
    from kernbench_core.testing.rig import edge as edge
    from kernbench_core.testing.rig import line as line
    from kernbench_core.testing.rig import place as place
    from kernbench_core.testing.testbench import ModelTestbench as ModelTestbench

__getattr__ = door(__name__)
