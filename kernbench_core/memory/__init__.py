"""Where tensors live: device memory, allocators, the page table, placement, scratchpads, and the hazards of their use.

In: shapes, placements and uses. Out: addresses, and the uses that nothing orders. Kernels and host programs call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.memory.allocator import FirstFit as FirstFit
    from kernbench_core.memory.atomic_access import AtomicMemory as AtomicMemory
    from kernbench_core.memory.atomic_access import AtomicTransaction as AtomicTransaction
    from kernbench_core.memory.device_memory import DeviceMemory as DeviceMemory
    from kernbench_core.memory.device_memory import TensorAllocation as TensorAllocation
    from kernbench_core.memory.hazard import RECYCLED_SLOT as RECYCLED_SLOT
    from kernbench_core.memory.hazard import Hazard as Hazard
    from kernbench_core.memory.hazards import Hazards as Hazards
    from kernbench_core.memory.placement import Interleave as Interleave
    from kernbench_core.memory.placement import Placement as Placement
    from kernbench_core.memory.placement import Placements as Placements
    from kernbench_core.memory.placement import Shard as Shard
    from kernbench_core.memory.scratchpad import Birth as Birth
    from kernbench_core.memory.scratchpad import TcmBlock as TcmBlock

__getattr__ = door(__name__)
