from kernbench_core.component cimport ComponentBase
from kernbench_core.messages cimport Command

cimport cython

cdef class PeCpu(ComponentBase):
    cdef dict __dict__
    cdef public object kernels, prefix
    cdef public double dispatch_overhead_ns
    cdef public dict _paths
    @cython.locals(now=double, path=tuple)
    cpdef send_command(self, Command cmd)
