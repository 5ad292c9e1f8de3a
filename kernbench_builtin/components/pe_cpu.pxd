from kernbench_core.component cimport ComponentBase
from kernbench_core.messages cimport Command

cimport cython

cdef class PeCpu(ComponentBase):
    # without a dict, so that calls of its methods need not look there for what overrides them
    cdef public object kernels, prefix, _runner
    cdef public double dispatch_overhead_ns, element_read_ns
    cdef public dict _paths
    @cython.locals(now=double, path=tuple)
    cpdef send_command(self, Command cmd)
