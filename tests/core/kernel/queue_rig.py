"""A rig whose PEs send to each other, for tests of queues as kernels see them."""

from __future__ import annotations

from collections import deque
from typing import Any

from kernbench_core.kernel.queue_commands import RecvCmd, SendCmd, SlotBlock
from kernbench_core.memory.scratchpad import Birth
from kernbench_core.messages import Command
from kernbench_core.oplog.description import Access
from tests.core.kernel_rig import Cpu, Rig


class QueueRig(Rig):
    """A rig whose PEs send to each other through queues without limits; slots that come back are counted."""

    def __init__(self, pes: int = 2) -> None:
        super().__init__(pes)
        self.messages: dict[tuple[int, int], deque[SendCmd]] = {}
        self.receipts: list[RecvCmd] = []
        self.returned = 0
        for cpu in self.cpus:
            self._connect(cpu)

    def _connect(self, cpu: Cpu) -> None:
        others = cpu.send_command

        def send_command(cmd: Command) -> None:
            if isinstance(cmd, SendCmd):
                self.messages.setdefault((cmd.pe, cmd.to), deque()).append(cmd)
                self._answer(cmd)
            elif isinstance(cmd, RecvCmd):
                self.receipts.append(cmd)
            else:
                others(cmd)
                return
            self._pair()

        cpu.send_command = send_command  # type: ignore[method-assign]

    def _pair(self) -> None:
        for receipt in [*self.receipts]:
            source = next((s for s in receipt.sources if self.messages.get((s, receipt.pe))), None)
            if source is None:
                continue
            self.receipts.remove(receipt)
            message = self.messages[source, receipt.pe].popleft()
            assert message.local is not None
            receipt.receive(message, Access("tcm", (message.local,), message.value))
            receipt.error = receipt.fits(message)
            if receipt.local is None:
                birth = Birth(receipt.call, receipt.value.shape, receipt.value.dtype, receipt.site)
                receipt.slot = SlotBlock(message.local, 0, birth, self._give_back)
            self._answer(receipt)

    def _give_back(self) -> None:
        self.returned += 1

    def _answer(self, cmd: Command) -> None:
        unit = f"sip0.cube0.pe{cmd.op_id[0]}.pe_ipcq"
        self.logger.record_start(self.env.now, unit, cmd)
        done = self.env.timeout(5.0)

        def finish(_: Any) -> None:
            cmd.head = cmd.tail = self.env.now
            self.logger.record_end(self.env.now, unit, cmd)
            cmd.answered()

        done.callbacks.append(finish)
