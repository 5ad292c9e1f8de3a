from kernbench_core.environment cimport Signal
from kernbench_core.events.queue cimport Scheduled

cdef class MsgBase(Scheduled):
    # what a hop goes through comes first, so that it lies together in memory
    cdef public Py_ssize_t nbytes
    cdef public Py_ssize_t hop
    cdef public tuple path
    cdef public double head, tail, propagation, overhead
    cdef public double serialisation, queueing, born, service
    cdef public bint reply
    cdef public object cause, mark
    cpdef at_end(self, component, double head, double tail)
    cpdef turn_around(self, Py_ssize_t nbytes=*)
    cpdef answered(self)

cdef class Command(MsgBase):
    cdef public str call
    cdef public Signal done
    cdef public object op_id, site
    cpdef answered(self)

cdef class Transaction(MsgBase):
    cdef public str op
    cdef public object regions, shares, on_done, waiter
    cdef public Py_ssize_t total, moved_bytes
    cpdef turn_around(self, Py_ssize_t nbytes=*)
    cpdef answered(self)
