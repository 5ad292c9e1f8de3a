"""Memories that do not serve atomic ops. Not a test: test_atomic_runs.py makes a plug-in of it."""

from __future__ import annotations

from typing import Any

from kernbench_builtin.components.channelled_memory import ChannelledMemory, Shares
from kernbench_builtin.components.hbm_ctrl import HbmCtrl
from kernbench_core.component import ComponentBase
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.plugins import ComponentEntry


class Plain(ChannelledMemory):
    """Serve reads and writes on one channel."""

    PARAMS = HbmCtrl.PARAMS

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self.channel_wires = [self.internal_wire("channel", 100.0, 10.0)]

    def shares(self, msg: Any) -> Shares:
        return ((0, msg.total),)


class Forgets(HbmCtrl):
    """Answer atomic ops, and change nothing."""

    def emit(self, msg: Any, head: float, tail: float) -> None:
        if msg.op == "atomic":
            msg.turn_around()
            ComponentBase.emit(self, msg, head, tail)
        else:
            super().emit(msg, head, tail)


#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_components() -> list[ComponentEntry]:
    """Register both."""
    return [
        ComponentEntry(f"strange.{name.lower()}", f"{__name__}:{name}", kind="hbm_ctrl", sentence="Change nothing.")
        for name in ("Plain", "Forgets")
    ]
