"""How a kernel runs on a PE: the bridge to its greenlet, its commands, and the runner that serves them.

In: a launch. Out: commands to the units of a PE. Control processors call the runner, kernels the language in `tl`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.kernel.arguments import PerPe as PerPe
    from kernbench_core.kernel.bridge import Bridge as Bridge
    from kernbench_core.kernel.bridge import escaped as escaped
    from kernbench_core.kernel.bridge import in_kernel as in_kernel
    from kernbench_core.kernel.commands import KernelCommand as KernelCommand
    from kernbench_core.kernel.dma_commands import DmaReadCmd as DmaReadCmd
    from kernbench_core.kernel.dma_commands import DmaWriteCmd as DmaWriteCmd
    from kernbench_core.kernel.pe_state import Kernels as Kernels
    from kernbench_core.kernel.pe_state import PeState as PeState
    from kernbench_core.kernel.pointers import Pointer as Pointer
    from kernbench_core.kernel.queue_commands import UNIT as UNIT
    from kernbench_core.kernel.queue_commands import QueueCommand as QueueCommand
    from kernbench_core.kernel.queue_commands import RecvCmd as RecvCmd
    from kernbench_core.kernel.queue_commands import SendCmd as SendCmd
    from kernbench_core.kernel.queue_commands import SlotBlock as SlotBlock
    from kernbench_core.kernel.runner import KernelRunner as KernelRunner
    from kernbench_core.kernel.tl.language import TLContext as TLContext
    from kernbench_core.kernel.tl.language import op_functions as op_functions

__getattr__ = door(__name__)
