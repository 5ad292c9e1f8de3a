cimport cython
from kernbench_core.wire cimport Waits
from kernbench_core.messages cimport MsgBase

cdef class Reported(Waits):
    cdef public double _previous_out, busy_ns
    cdef public Py_ssize_t served
    cdef public bint _paced, run_style
    cdef public tuple _observers
    cdef public object _begun
    cdef public list _workers
    cdef public object env, queue
    cpdef note_busy(self, double took, double until)
    cpdef note_wait(self, double waited, until=*)
