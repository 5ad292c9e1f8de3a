"""The scratchpad of a cube."""

from __future__ import annotations

from typing import ClassVar

from kernbench_builtin.components.atomic_units import ATOMIC_STEP, AtomicUnits
from kernbench_builtin.components.channelled_memory import ChannelledMemory, Interleaving
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.memory import AtomicMemory
from kernbench_core.params import Param


class Sram(AtomicMemory, ChannelledMemory):
    """Serve reads and writes of a cube's SRAM; a terminal node that answers on the reverse path.

    Models: an access latency, and single-ported banks that take turns every `bank_bytes` of addresses and serialise \
reads and writes by bandwidth: what keeps to a few banks gets only their share of it. A bank moves whole words of \
`bank_bytes`. An atomic unit for each bank, as those of builtin.hbm_ctrl, on words.
    Ignores: A request takes its turn at each of its banks at once: words of two requests do not mix on a bank.
    Timing: out = arrival + overhead; per bank start = max(out, free), free = start + bytes / (bandwidth / banks), \
then latency. A read's answer leaves with its earliest bank and ends with its latest. An atomic op: a read of the \
words that no unit keeps, then atomic_step for each step.
    Source: tt-isa-documentation, Tensix L1 (16 banks x 16 B/cycle = 256 GB/s at 1 GHz); builtin.hbm_ctrl (atomic_step).
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "2 ns", "Controller latency, per request."),
        Param("bandwidth", "bandwidth", "128 GB/s", "Rate of all banks, reads and writes together.", positive=True),
        Param("latency", "time", "5 ns", "Access time of the array.", positive=True),
        Param("banks", "int", 16, "Banks that share the bandwidth.", minimum=1, maximum=1024),
        Param("bank_bytes", "size", "16 B", "Word of a bank: consecutive bytes before the next bank.", positive=True),
        ATOMIC_STEP,
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead: float = self.params["overhead"]
        banks, word = self.params["banks"], self.params["bank_bytes"]
        self.interleaving = Interleaving(banks, word, word)
        rate, latency = self.params["bandwidth"] / banks, self.params["latency"]
        self.channel_wires = [self.internal_wire(f"bank{i}", rate, latency) for i in range(banks)]
        self.atomic_units = AtomicUnits(self, word, self.interleaving.channel_of)
