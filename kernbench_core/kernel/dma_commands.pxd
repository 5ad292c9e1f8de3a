from kernbench_core.kernel.commands cimport KernelCommand
from kernbench_core.values.region cimport Region

cdef class DmaCommand(KernelCommand):
    cdef public tuple _virtual, regions
    cdef public Region local
    cdef public object tensor, value
    cdef public Py_ssize_t total
    cpdef _copy(self, name, tuple src, tuple dst, read, write)

cdef class DmaReadCmd(DmaCommand):
    cdef public object _beside, _fill, _source, _transfer
    cpdef at_issue(self, state, double now)
    cpdef land(self, double now)
    cpdef describe(self)

cdef class DmaWriteCmd(DmaCommand):
    cdef public object _ticket, stored
    cpdef at_issue(self, state, double now)
    cpdef land(self, double now)
    cpdef describe(self)
