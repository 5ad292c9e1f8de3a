"""One forwarding model under several names: routers, NoCs, UCIe ports, scale-up link ports, switches."""

from __future__ import annotations

from typing import ClassVar

from kernbench_core.component import ComponentBase
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param


class Forwarding(ComponentBase):
    """Pass messages on along their path, first byte first.

    Models: a fixed latency for head and tail, cut-through unless told otherwise; its wires limit the rate, per \
direction.
    Ignores: Buffers are unbounded: no credits and no back-pressure, so compare loads below about 60 % of \
saturation. Arbitration is first come first served over all ports, with no virtual channels. Requests wait behind \
whole chunks of payload, so that gemm takes up to 9 % longer in its kernel (tools/request_error.py).
    Timing: head_out = head_in + overhead, tail_out = tail_in + overhead; then the outgoing wire. With \
store_and_forward head_out = tail_out = tail_in + overhead.
    Source: tt-isa-documentation, Wormhole NoC (router to router 9 cycles at 1 GHz); UCIe 1.1 for UCIe ports.
    """

    ON_HEAD = True
    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "4 ns", "Latency from input to output port, for head and tail."),
        Param("store_and_forward", "bool", False, "Whether a message must be in whole before any of it goes on."),
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead: float = self.params["overhead"]
        self._stores = "store_and_forward" in self.params and bool(self.params["store_and_forward"])

    def head_rule(self) -> bool:
        """Return whether first bytes are acted on; the same for every message."""
        return not self._stores

    def acts_on_head(self, msg: MsgBase) -> bool:
        """Say whether a message goes on when its first byte is there."""
        return not self._stores

    def overhead(self, msg: MsgBase) -> float:
        """Return the port-to-port latency in ns."""
        return self._overhead
