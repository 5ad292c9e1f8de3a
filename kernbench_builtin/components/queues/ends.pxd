cimport cython
from kernbench_builtin.components.queues.rings cimport Queue
from kernbench_builtin.components.queues.messages cimport Push, TransferProgress

cdef class Outgoing:
    cdef public object channel
    cdef public list waiting
    cdef public Queue queue
    cdef public Py_ssize_t slots, tail, given_back
    cdef public tuple route

cdef class Incoming:
    cdef public object channel
    cdef public list arrived, recvs
    cdef public Queue queue
    cdef public dict early
    cdef public frozenset free
    cdef public Py_ssize_t slots, copies, next, given_back
    cdef public tuple back
    cpdef take_in(self, Push push)
    @cython.locals(slots=cython.Py_ssize_t)
    cpdef bint take_back(self, Py_ssize_t index) except? -1
