"""What bytes are: element types, strided regions, immutable values, and the store that says what each address holds.

In: arrays, regions and writers. Out: values, some of them known only after phase 2. Op log, compute, memory and kernel
call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.values.arrays import Array as Array
    from kernbench_core.values.chunking import Chunk as Chunk
    from kernbench_core.values.chunking import chunks as chunks
    from kernbench_core.values.lineage import made_for as made_for
    from kernbench_core.values.memory_store import MemoryStore as MemoryStore
    from kernbench_core.values.region import Region as Region
    from kernbench_core.values.region import linear_at as linear_at
    from kernbench_core.values.region import runs as runs
    from kernbench_core.values.strided_copies import paint as paint
    from kernbench_core.values.value import ArrayValue as ArrayValue
    from kernbench_core.values.value import AssemblyValue as AssemblyValue
    from kernbench_core.values.value import LoadedValue as LoadedValue
    from kernbench_core.values.value import OpId as OpId
    from kernbench_core.values.value import Part as Part
    from kernbench_core.values.value import ResultValue as ResultValue
    from kernbench_core.values.value import Value as Value
    from kernbench_core.values.value import sub_parts as sub_parts
    from kernbench_core.values.views import AbstractValue as AbstractValue
    from kernbench_core.values.views import FillValue as FillValue

__getattr__ = door(__name__)
