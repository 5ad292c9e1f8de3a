cimport cython
from kernbench_builtin.components.channelled_memory cimport ChannelledMemory
from kernbench_core.messages cimport Transaction
from kernbench_core.wire cimport Wire

cdef class TcmRequest(Transaction):
    pass

cdef class PeTcm(ChannelledMemory):
    cdef public Wire _read, _write
    cpdef shares(self, msg)
    @cython.locals(wire=Wire)
    cpdef (double, double) book_access(self, str op, Py_ssize_t nbytes, double head, double tail) except *
