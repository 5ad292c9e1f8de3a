cimport cython
from kernbench_core.events.queue cimport EventQueue
from kernbench_core.wire cimport Waits
from kernbench_core.messages cimport MsgBase

cdef class Reported(Waits):
    # what a hop of any component goes through comes first, so that it lies together in memory
    cdef public double _floor
    cdef public Py_ssize_t served
    cdef public bint _paced
    cdef bint _forwards
    cdef public EventQueue _time
    cdef public object _op_logger
    cdef public tuple _near
    cdef public double _raw, _rounded
    cdef public bint run_style
    cdef public double _previous_out, busy_ns
    cdef public tuple _observers
    cdef public object _begun
    cdef public list _workers
    cdef public object env, queue
    cpdef note_busy(self, double took, double until)
    cpdef note_wait(self, double waited, until=*)
