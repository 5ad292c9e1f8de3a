from kernbench_core.memory.hazards cimport Hazards
from kernbench_core.memory.scratchpad cimport TcmTable
from kernbench_core.values.memory_store cimport MemoryStore

cdef class PeState:
    cdef readonly object pe, site, memory, on_demand
    cdef readonly MemoryStore store
    cdef readonly Hazards hazards
    cdef readonly TcmTable tcm
    cdef readonly Kernels kernels
    cdef public object began, issued, last, launch, runner

cdef class Kernels:
    cdef readonly object memory, on_demand, nearest, recorder, ops, meter, outside, ignored, cut
    cdef readonly MemoryStore store
    cdef readonly Hazards hazards
    cdef readonly dict states, flying
    cdef public object turns
    cdef readonly bint materializes, pipelines
    cpdef PeState state(self, site)
