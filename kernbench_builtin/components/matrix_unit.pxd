cimport cython
from kernbench_builtin.components.compute_unit cimport ComputeUnit
from kernbench_core.messages cimport MsgBase

cdef class MatrixUnit(ComputeUnit):
    cdef public double _start_up
    cdef public list _arrays
    cdef public dict _known, _ends
    @cython.locals(array=MacArray, chosen=MacArray)
    cpdef receive(self, MsgBase msg)
    @cython.locals(now=double, entry=double, entered=double, ends=double, drained=double, streams=double)
    cdef _turn_to(self, MacArray array, MsgBase msg)
    @cython.locals(ready=double)
    cdef double _entry(self, MacArray array, MsgBase msg, times, bint on_sum) except? -1
    cdef bint _joins(self, MacArray array, MsgBase msg) except -1
    @cython.locals(array=MacArray)
    cpdef _in(self, ArrayStep step)
    cpdef _out(self, ArrayStep step)
    cpdef _emptied(self, ArrayStep step)
    cdef _next(self, MacArray array)
    @cython.locals(port=double)
    cdef _times(self, MsgBase msg, operands)
    @cython.locals(busy=double, streamed=double, unfilled=double)
    cdef _leave(self, MacArray array, MsgBase msg)

cdef class MacArray:
    cdef public double entered, ends, free, loadable, counted
    cdef public bint open, one_fold
    cdef public object held, sum
    cdef public dict under_way
    cdef bint leaves_sum(self, MsgBase msg, double now) except -1
    cpdef double busy_by(self, double time) except? -1

cdef class ArrayStep(MsgBase):
    cdef public MacArray array
    cdef public MsgBase msg
