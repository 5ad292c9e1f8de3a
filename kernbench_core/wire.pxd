cimport cython
from kernbench_core.events.queue cimport EventQueue
from kernbench_core.messages cimport MsgBase

cdef class Waits:
    cdef public Py_ssize_t waits
    cdef public double waited_ns, longest_wait_ns
    cpdef note_wait(self, double waited, until=*)

cdef class Wire(Waits):
    # what `send` goes through comes first, so that it lies together in memory
    cdef Py_ssize_t _last_nbytes
    cdef double _last_took
    cdef public double available_at, busy_ns, latency
    cdef public Py_ssize_t bytes_carried, _key
    cdef public object _on_head
    cdef public tuple _arrive
    cdef public EventQueue _queue
    cdef public bint fresh
    cdef Py_ssize_t _other_nbytes
    cdef double _other_took
    cdef public dict _duration
    cdef public str name
    cdef public Py_ssize_t number, payload_bytes, header_bytes
    cdef public double bandwidth
    cdef public list _used
    @cython.locals(took=double, start=double, end=double, own=double, waited=double, latency=double, nbytes=cython.Py_ssize_t, key=cython.Py_ssize_t)
    cpdef send(self, MsgBase msg, double head, double tail)
    @cython.locals(start=double, end=double, took=double, latency=double)
    cpdef (double, double) book(self, Py_ssize_t nbytes, double head, double tail, msg=*) except *
    @cython.locals(took=double)
    cpdef double duration(self, Py_ssize_t nbytes) except? -1
    cpdef deliver(self, MsgBase msg, double time)
    cpdef note_use(self)
    cpdef hold(self, Py_ssize_t nbytes, double start, double took, msg=*)
    cpdef charge(self, MsgBase msg, double own, double stretch)
