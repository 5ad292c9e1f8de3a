from kernbench_core.component cimport ComponentBase

cdef class ComputeUnit(ComponentBase):
    cdef dict __dict__
    cdef public double _overhead, _clock, _port
    cpdef cycles(self, msg)

cpdef Py_ssize_t streamed_bytes(msg, operands=*) except -1
