cimport cython
from kernbench_core.events.queue cimport EventQueue
from kernbench_core.messages cimport MsgBase

cdef class Waits:
    cdef public long long waits
    cdef public double waited_ns, longest_wait_ns
    cpdef note_wait(self, double waited, until=*)

cdef class Wire(Waits):
    cdef public EventQueue _queue
    cdef public long long _key
    cdef public tuple _arrive
    cdef public object _on_head
    cdef public dict _duration
    cdef long long _last_nbytes
    cdef double _last_took
    cdef public str name
    cdef public long long number, payload_bytes, header_bytes, bytes_carried
    cdef public double bandwidth, latency, available_at, busy_ns
    cdef public bint fresh
    cdef public list _used
    @cython.locals(took=double, start=double, end=double, own=double, waited=double, latency=double, nbytes=cython.longlong)
    cpdef send(self, MsgBase msg, double head, double tail)
    @cython.locals(start=double, end=double, took=double, latency=double)
    cpdef book(self, long long nbytes, double head, double tail, msg=*)
    cpdef double duration(self, long long nbytes) except? -1
    cpdef deliver(self, MsgBase msg, double time)
    cpdef note_use(self)
    cpdef hold(self, long long nbytes, double start, double took, msg=*)
    cpdef charge(self, MsgBase msg, double own, double stretch)
