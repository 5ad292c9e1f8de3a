cimport cython
from kernbench_core.component cimport ComponentBase
from kernbench_core.messages cimport MsgBase, Transaction
from kernbench_core.wire cimport Wire

cdef class Asker(ComponentBase):
    cdef object _left, _make, _beside
    cdef public Py_ssize_t unanswered
    cdef public list chained
    cpdef receive(self, MsgBase msg)
    @cython.locals(following=Transaction, now=double, wire=Wire)
    cpdef go_on(self, Transaction answered)
    @cython.locals(now=double, wire=Wire)
    cpdef _go(self, MsgBase msg)
