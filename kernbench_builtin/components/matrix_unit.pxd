cimport cython
from kernbench_builtin.components.compute_unit cimport ComputeUnit
from kernbench_core.messages cimport MsgBase

cdef class MatrixUnit(ComputeUnit):
    cdef public double _start_up
    cdef public list _arrays
    cdef public dict _known, _ends
    @cython.locals(array=Array, chosen=Array)
    cpdef receive(self, MsgBase msg)
    @cython.locals(now=double, entry=double, entered=double, ends=double, drained=double, streams=double)
    cdef _turn_to(self, Array array, MsgBase msg)
    @cython.locals(ready=double)
    cdef double _entry(self, Array array, MsgBase msg, times, bint on_sum) except? -1
    cdef bint _joins(self, Array array, MsgBase msg) except -1
    @cython.locals(array=Array)
    cpdef _in(self, Step step)
    cpdef _out(self, Step step)
    cpdef _emptied(self, Step step)
    cdef _next(self, Array array)
    @cython.locals(port=double)
    cdef _times(self, MsgBase msg, operands)
    @cython.locals(busy=double, streamed=double, unfilled=double)
    cdef _leave(self, Array array, MsgBase msg)

cdef class Array:
    cdef public double entered, ends, free, loadable, counted
    cdef public bint open, one_fold
    cdef public object held, sum
    cdef public dict under_way
    cdef bint leaves_sum(self, MsgBase msg, double now) except -1
    cpdef double busy_by(self, double time) except? -1

cdef class Step(MsgBase):
    cdef public Array array
    cdef public MsgBase msg
