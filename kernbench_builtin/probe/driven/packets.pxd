cimport cython
from kernbench_core.messages cimport MsgBase

cdef class Meter

cdef class Packet(MsgBase):
    cdef public Meter meter
    cdef public Py_ssize_t tight
    cpdef at_end(self, component, double head, double tail)

cdef class Meter:
    cdef public double begin, end, queueing
    cdef public Py_ssize_t arrived_before, arrived_in_window, tight_crossed, hops
    cdef public object latencies
    cpdef note(self, Packet packet)
