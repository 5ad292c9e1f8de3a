"""A controller with banks that is asked by hand, for tests of its times and of whole workloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernbench_builtin.components.dram import DramPlace
from kernbench_builtin.components.hbm_ctrl_bank import HbmCtrlBank
from kernbench_core.messages import Transaction
from kernbench_core.testing import Rig
from kernbench_core.values.region import Region

#: (ns, operation, bank, row, column): one burst.
Ask = tuple[float, str, int, int, int]
#: One channel without refresh, on wires that bring a burst in one step of the grid.
ONE = {"channels": 1, "refresh": "none", "overhead": "9 ns"}
WIDE = 32 * 65536.0


def transaction(op: str, *regions: Region) -> Transaction:
    return Transaction(op, regions, sum(region.nbytes for region in regions), (), lambda _: None)


class Driven:
    """One controller, what it was asked and what its channels did."""

    def __init__(self, asks: Sequence[Ask] = (), **params: object) -> None:
        self.rig = Rig(HbmCtrlBank, {**ONE, **params}, bandwidth=WIDE)
        self.ctrl: Any = self.rig.under_test
        for channel in self.ctrl.banked:
            channel.trace = []
        self.sent = [self.ask(*each) for each in asks]

    def ask(self, at: float, op: str, bank: int, row: int, column: int) -> Transaction:
        burst = self.ctrl.mapping.address(DramPlace(0, bank, row, column))
        msg = transaction(op, Region(burst, 32))
        self.rig.ask(at, msg=msg)
        return msg

    def trace(self) -> list[tuple[float, str, int, int]]:
        self.rig.run()
        return sorted(self.ctrl.banked[0].trace, key=lambda command: command[0])

    def times(self, what: str) -> list[float]:
        return [time for time, command, _, _ in self.trace() if command == what]

    def order(self, *kinds: str) -> list[tuple[str, int, int]]:
        return [(what, bank, row) for _, what, bank, row in self.trace() if what in kinds]
