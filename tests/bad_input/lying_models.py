"""Models whose results are wrong in a way that a run can find out. Not a test: test_sanity.py makes a plug-in of it."""

from __future__ import annotations

import math
from typing import Any

from kernbench_builtin.components.forwarding import Forwarding
from kernbench_builtin.components.hbm_ctrl import HbmCtrl
from kernbench_builtin.components.hbm_ctrl_bank import HbmCtrlBank
from kernbench_builtin.components.matrix_unit import Passage
from kernbench_builtin.components.pe_cpu import PeCpu
from kernbench_builtin.components.pe_dma import PeDma
from kernbench_builtin.components.pe_gemm import PeGemm
from kernbench_builtin.components.pe_math import PeMath
from kernbench_builtin.components.pe_mmu import PeMmu
from kernbench_builtin.components.pe_scheduler import PeScheduler
from kernbench_builtin.components.pe_tcm import PeTcm
from kernbench_builtin.components.queues.messages import Credit, PushChunk
from kernbench_builtin.components.sram import Sram
from kernbench_core.component import ComponentBase
from kernbench_core.plugins import ComponentEntry


class Halves(HbmCtrl):
    """Answer reads with half of the data."""

    def respond(self, msg: Any) -> None:
        head = msg.tail if msg.op == "write" else msg.head
        msg.turn_around()
        msg.nbytes //= 2
        ComponentBase.emit(self, msg, head, msg.tail)


class Hasty(HbmCtrl):
    """Answer at once, whatever the channels carry."""

    def emit(self, msg: Any, head: float, tail: float) -> None:
        msg.turn_around()
        ComponentBase.emit(self, msg, head, tail)


class HastyBanks(HbmCtrlBank):
    """Answer at once, whatever the banks do."""

    emit = Hasty.emit


class Nought(HbmCtrl):
    """Answer as if there were no memory, and say so."""

    emit = Hasty.emit

    def overhead(self, msg: Any) -> float:
        return 0.0

    def channels(self, msg: Any) -> tuple[()]:
        return ()


class NoughtSram(Sram):
    """Answer as if there were no memory, and say so."""

    emit = Hasty.emit
    overhead = Nought.overhead
    channels = Nought.channels


class AtPeak(PeGemm):
    """Multiply just as fast as the array can, or `SPEED` times as fast."""

    SPEED = 1.0

    def __init__(self, node: Any, fabric: Any) -> None:
        super().__init__(node, fabric)
        self._start_up = self._overhead = 0.0
        self._port = math.inf

    def passage(self, msg: Any) -> Any:
        cycles: Any = self.flops(msg) / self.peak_flops(msg) * self._clock / self.SPEED
        return Passage(1, 0, cycles, cycles, 0)


class Racing(AtPeak):
    """Multiply twice as fast as the array can."""

    SPEED = 2.0


class RacingMath(PeMath):
    """Compute a little faster than the lanes can."""

    def min_service_ns(self, msg: Any) -> float:
        return self.flops(msg) / self.peak_flops(msg) * 0.999


class AtPeakMath(PeMath):
    """Compute just as fast as the lanes can."""

    def min_service_ns(self, msg: Any) -> float:
        return self.flops(msg) / self.peak_flops(msg)


class TwiceMemory(HbmCtrl):
    """Answer reads twice."""

    def respond(self, msg: Any) -> None:
        super().respond(msg)
        if msg.op == "read":
            msg.hop -= 1
            ComponentBase.emit(self, msg, msg.tail, msg.tail)


class TwiceMmu(PeMmu):
    """Acknowledge map updates twice."""

    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head, tail)
        msg.hop -= 1
        ComponentBase.emit(self, msg, tail, tail)


class Hurried(PeDma):
    """End a chunk when it is sent, and never look at its answer."""

    def _send(self, chunk_msg: Any, head: float, tail: float) -> None:
        super()._send(chunk_msg, head, tail)
        self._end(chunk_msg, self.env.now)

    def answered(self, chunk_msg: Any, sent: Any) -> None:
        """Lose count."""


class Instant(AtPeak):
    """Multiply in no time."""

    SPEED = math.inf


class Busy(PeGemm):
    """Claim to have worked for a second."""

    def receive(self, msg: Any) -> None:
        self.busy_ns += 1e9
        super().receive(msg)


class BusyScratchpad(PeTcm):
    """Keep its write channel busy beyond the end of time."""

    def book_access(self, op: str, nbytes: int, head: float, tail: float) -> tuple[float, float]:
        self.channel_wires[1].book(1 << 30, head, tail)
        return super().book_access("read", nbytes, head, tail)


class Prophet(PeCpu):
    """Say that programs end a millisecond from now."""

    def run(self, env: Any, msg: Any) -> Any:
        yield from super().run(env, msg)
        for pe in msg.targets:
            msg.launch.ended_ns[pe] += 1e6


class Impatient(PeScheduler):
    """End a composite when its first tile is on its way."""

    def run(self, env: Any, msg: Any) -> Any:
        for step in super().run(env, msg):
            if self._streams:
                return
            yield step


class Deaf(PeDma):
    """Never look at an answer: what was asked for never ends."""

    def answered(self, chunk_msg: Any, sent: Any) -> None:
        """Do nothing."""


class Lossy(Forwarding):
    """Lose the fourth read of a DMA."""

    seen = 0

    def emit(self, msg: Any, head: float, tail: float) -> None:
        if getattr(msg, "op", "") == "read" and not msg.reply and msg.path[0].endswith("pe_dma"):
            self.seen += 1
            if self.seen == 4:
                return
        super().emit(msg, head, tail)


class LossyAnswers(Forwarding):
    """Lose answers to reads."""

    def emit(self, msg: Any, head: float, tail: float) -> None:
        if getattr(msg, "op", "") != "read" or not msg.reply:
            super().emit(msg, head, tail)


class LossyPayload(Forwarding):
    """Lose what PEs send each other."""

    def emit(self, msg: Any, head: float, tail: float) -> None:
        if not isinstance(msg, PushChunk):
            super().emit(msg, head, tail)


class Claims(Forwarding):
    """Pass on at once, and claim to take longer."""

    def min_service_ns(self, msg: Any) -> float:
        return 400.0


class LossyCredits(Forwarding):
    """Lose credits."""

    def emit(self, msg: Any, head: float, tail: float) -> None:
        if not isinstance(msg, Credit):
            super().emit(msg, head, tail)


class Swallow(PeMath):
    """Take commands and do nothing with them."""

    def receive(self, msg: Any) -> None:
        """Do nothing."""

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_components() -> list[ComponentEntry]:
    """Register all of the above."""
    kinds = {
        "Halves": "hbm_ctrl", "Hasty": "hbm_ctrl", "HastyBanks": "hbm_ctrl", "TwiceMemory": "hbm_ctrl",
        "TwiceMmu": "pe_mmu", "Hurried": "pe_dma", "Deaf": "pe_dma", "Instant": "pe_gemm", "Busy": "pe_gemm",
        "BusyScratchpad": "pe_tcm", "Prophet": "pe_cpu", "Impatient": "pe_scheduler", "Lossy": "router",
        "LossyAnswers": "router", "LossyPayload": "router", "LossyCredits": "router", "Swallow": "pe_math",
        "Nought": "hbm_ctrl", "NoughtSram": "sram", "Racing": "pe_gemm", "RacingMath": "pe_math", "AtPeak": "pe_gemm",
        "AtPeakMath": "pe_math", "Claims": "router",
    }  # fmt: skip
    return [
        ComponentEntry(f"lying.{name.lower()}", f"{__name__}:{name}", kind=kind, sentence="Tell lies.")
        for name, kind in kinds.items()
    ]
