"""The PCIe endpoint of a SIP."""

from __future__ import annotations

from typing import ClassVar

from kernbench_builtin.components.forwarding import Forwarding
from kernbench_core.params import Param


class PcieEp(Forwarding):
    """Join the PCIe link to the IO chiplet's NoC.

    Models: the protocol latency of the endpoint, per message; the link's rate (by generation and lanes), latency and \
packet headers are its wire's; each IO chiplet has an endpoint and a link of its own.
    Ignores: Flow-control credits, completion reordering and retries are not modelled. \
Posted and non-posted requests take the same path.
    Timing: head_out = head_in + overhead, tail_out = tail_in + overhead.
    Source: tt-isa-documentation, latencies measured on a Gen4 x16 card (MMIO load 671 ns); the share of the \
endpoint is an estimate, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "50 ns", "Latency of the transaction and data-link layers, per message."),
    )
