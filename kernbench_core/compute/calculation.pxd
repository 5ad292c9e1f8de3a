cimport cython
from kernbench_core.compute.kinds cimport Kind
from kernbench_core.compute.planned_op cimport PlannedOp
from kernbench_core.values.value cimport AssemblyValue, ResultValue, Value

cdef class Calculation:
    cdef object _backend, _record, _function, _computed
    cdef readonly Py_ssize_t count, own
    cdef Py_ssize_t _reported
    cdef dict _kinds
    cdef object _held, _errors
    cdef Py_ssize_t _held_bytes
    cpdef Kind kind_of(self, PlannedOp op)
    cpdef one(self, PlannedOp op)
    cdef _answer(self, PlannedOp op)
    @cython.locals(kind=Kind)
    cdef _take(self, PlannedOp op, out)
    @cython.locals(result=ResultValue)
    cdef _fill(self, PlannedOp op, Kind kind, out)
    cpdef report_progress(self)
    @cython.locals(content=Value)
    cdef _data(self, Value value)
