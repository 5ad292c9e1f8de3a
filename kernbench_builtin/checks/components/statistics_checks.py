"""Whether statistics that are sums are sums of what was served, as far as that can be told of any model."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Final

from kernbench_builtin.checks.components.component_under_test import ComponentUnderTest
from kernbench_builtin.checks.components.drivers import ACCESSED, PASSED
from kernbench_builtin.checks.components.testbench import Driver, DriveResult, first_line
from kernbench_core.messages import Transaction
from kernbench_core.reporting import Stat
from kernbench_core.testing.kit import CheckFailed, NotApplicable
from kernbench_core.testing.rig import Probe, line
from kernbench_core.testing.testbench import ModelTestbench
from kernbench_core.values.region import Region

_MOST: Final = 3
_NBYTES: Final = 256
#: Between two of them, in ns and in B: no message meets another, nor what another left in a row or a line.
_APART_NS: Final = 100_000.0
_APART: Final = 1 << 15


def sums_what_it_counts(under_test: ComponentUnderTest) -> None:
    """Statistics that are sums begin at 0, and those in bytes grow by as much with each of several equal messages."""
    drives = under_test.drives_for("sums_what_it_counts")
    sums = [stat for stat in under_test.cls.STATS if stat.combine == "sum"]
    if not sums:
        raise NotApplicable("none of its STATS is a sum")
    for drive in drives:
        if drive.monitor.not_nought:
            raise CheckFailed(drive.monitor.not_nought[0])
    in_bytes = [stat for stat in sums if stat.unit == "B"]
    for send in _equals(under_test.kind) if in_bytes else ():
        driven = [_driven(under_test, partial(send, count)) for count in range(1, _MOST + 1)]
        for stat in in_bytes:
            _check_growth(stat, [0.0, *(_total(drive, stat) for drive in driven)])


def _check_growth(stat: Stat, totals: list[float]) -> None:
    """Compare by how much a statistic grew with each message."""
    grown = [after - before for before, after in pairwise(totals)]
    if not all(math.isclose(each, grown[0], rel_tol=1e-9) for each in grown):
        *early, last = (f"{each:g}" for each in grown)
        raise CheckFailed(
            f"{stat.name!r} must grow by as much with each of {_MOST} messages of {_NBYTES} B that never meet, not by "
            f"{', '.join(early)} and {last} B; count each of them"
        )


def _total(drive: DriveResult, stat: Stat) -> float:
    return float(sum(getattr(component, stat.name) for component in drive.monitor.components))


def _driven(under_test: ComponentUnderTest, driver: Driver) -> DriveResult:
    drive = under_test.drive(driver)
    if drive.error is not None:
        raise CheckFailed(f"it must serve equal messages one after another, and raised {first_line(drive.error)}")
    return drive


def _equals(kind: str) -> list[partial[None]]:
    """Return what sends so many equal messages to a model of a kind; nothing where core has no messages for it."""
    if kind in PASSED:
        return [partial(_pass)]
    return [partial(_access, op) for op in ("read", "write")] if kind in ACCESSED else []


def _pass(count: int, testbench: ModelTestbench) -> None:
    here = f"sip0.cube0.{testbench.model.kind or 'node'}0"
    machine = testbench.machine({"west": Probe, here: testbench.model, "east": Probe}, line("west", here, "east"))
    for number in range(count):
        machine.send(("west", here, "east"), number * _APART_NS, _NBYTES)


def _access(op: str, count: int, testbench: ModelTestbench) -> None:
    here = f"sip0.cube0.{testbench.model.kind}0"
    machine = testbench.machine({"west": Probe, here: testbench.model}, line("west", here))
    for number in range(count):
        region = Region(number * _APART, _NBYTES)
        msg = Transaction(op, (region,), _NBYTES, ("west", here), lambda _: None)
        machine.send(("west", here), number * _APART_NS, msg=msg)
