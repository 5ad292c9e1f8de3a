cdef class PeState:
    cdef readonly object pe, site, memory, store, hazards, on_demand, tcm
    cdef readonly Kernels kernels
    cdef public object began, issued, last, launch, runner

cdef class Kernels:
    cdef readonly object memory, store, hazards, on_demand, nearest, recorder, ops, meter, outside, states, flying
    cdef readonly object ignored, cut
    cdef public object turns
    cdef readonly bint materializes, pipelines
    cpdef PeState state(self, site)
