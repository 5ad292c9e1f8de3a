from kernbench_core.component cimport ComponentBase
from kernbench_core.messages cimport MsgBase
cdef class Forwarding(ComponentBase):
    cdef public double _overhead
    cdef public bint _stores
    cpdef overhead(self, MsgBase msg)
