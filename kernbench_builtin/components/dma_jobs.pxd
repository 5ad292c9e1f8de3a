from kernbench_core.messages cimport MsgBase

cdef class Trips:
    cdef readonly Py_ssize_t number
    cdef readonly double propagation, overhead, queueing, service
    cdef public double serialisation, set_up, translation, scratchpad, served, way
    cpdef add(self, MsgBase trip)

cdef class DmaChannel:
    cdef public list free
    cdef public object queue

cdef class Job:
    cdef public object msg
    cdef public str op
    cdef public Py_ssize_t waiting
    cdef public bint pushes, fetches, translates, started
    cdef public double began, ready, ends
