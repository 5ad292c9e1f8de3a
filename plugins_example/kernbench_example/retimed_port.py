"""A port whose link is too long for one driver: retimers on the way restore the signal, and take their time."""

from __future__ import annotations

from typing import ClassVar

from kernbench_core import ComponentBase, MsgBase, Param


class RetimedPort(ComponentBase):
    """Pass messages on over a link with retimers, first byte first.

    Models: the latency of the port and of each retimer, the same for head and tail.
    Ignores: Retimers are always locked: no training and no replay.
    Timing: out = in + overhead + retimers * retimer, for head and tail; then the outgoing wire.
    Source: sizes are this example's own.
    """

    ON_HEAD = True  # cut-through: a message goes on when its first byte is there
    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "4 ns", "Latency of the port itself."),
        Param("retimers", "int", 1, "Retimers on the way.", minimum=0),
        Param("retimer", "time", "10 ns", "Latency of one retimer."),
    )

    def overhead(self, msg: MsgBase) -> float:
        """Return the latency of port and retimers in ns."""
        latency: float = self.params["overhead"] + self.params["retimers"] * self.params["retimer"]
        return latency
