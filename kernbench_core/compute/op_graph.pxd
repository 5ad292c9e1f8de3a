cimport cython
from kernbench_core.compute.calculation cimport Calculation
from kernbench_core.compute.kinds cimport Kind
from kernbench_core.compute.lifetimes cimport Lifetimes
from kernbench_core.compute.planned_op cimport PlannedOp
from kernbench_core.values.value cimport ResultValue

cdef class OpGraph:
    cdef readonly dict ops
    cdef readonly Calculation calculation
    cdef readonly Lifetimes lifetimes
    cdef readonly object record, on_computed
    cpdef add(self, PlannedOp op)
    cpdef add_all(self, made, numbers)
    @cython.locals(op=PlannedOp)
    cpdef PlannedOp maker(self, ResultValue result)
    @cython.locals(waits=dict, dependents=dict, stack=list, op=PlannedOp, count=cython.longlong, result=ResultValue, others=list)
    cpdef tuple plan(self, targets)

cdef class _Walk:
    cdef OpGraph graph
    cdef object seen
    cdef readonly dict dependents, waits
    cdef readonly long long left
    cdef readonly list ready
    cdef set kept, wanted
    @cython.locals(graph=OpGraph, waits=dict, dependents=dict, calculation=Calculation, stack=list, fresh=set, room=cython.longlong, op=PlannedOp, later=PlannedOp, count=cython.longlong)
    cpdef window(self)
    cdef tuple _begun(self)
    @cython.locals(ops=list, nbytes=cython.longlong, op=PlannedOp)
    cdef list _taken(self)
    @cython.locals(kind=Kind)
    cdef bint _is_grouped(self, PlannedOp op) except -1
    @cython.locals(lifetimes=Lifetimes)
    cdef _drop_what(self, PlannedOp op)
