from kernbench_core.memory.hazards cimport Hazards
from kernbench_core.memory.scratchpad cimport TcmTable
from kernbench_core.values.memory_store cimport MemoryStore

cdef class PeState:
    cdef readonly object pe, site, memory, on_demand
    cdef readonly MemoryStore store
    cdef readonly Hazards hazards
    cdef readonly TcmTable tcm
    cdef readonly Kernels kernels
    cdef public object began, issued, last, launch, step, runner, elements_read, reads_free
    cdef public dict complete
    cdef public long long unpaid
    cdef public double element_read
    cpdef note_read(self, elements, site)
    cpdef double pay(self)

cdef class Kernels:
    cdef readonly object memory, on_demand, nearest, recorder, ops, calls, meter, outside, ignored, late_loads, cut, read_at, launch_on
    cdef readonly MemoryStore store
    cdef readonly Hazards hazards
    cdef readonly dict states, flying, timed, notes
    cdef public object turns
    cdef public long long loaded
    cdef public object recorded
    cdef readonly bint materializes, pipelines
    cpdef PeState state(self, site)
