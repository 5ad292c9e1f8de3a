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
    cdef Py_ssize_t _walks
    cpdef add(self, PlannedOp op)
    @cython.locals(op=PlannedOp, result=ResultValue, ops=dict, inputs=tuple, lifetimes=Lifetimes)
    cpdef add_all(self, made, numbers)
    @cython.locals(op=PlannedOp)
    cpdef PlannedOp maker(self, ResultValue result)
    @cython.locals(ops=list, dependents=dict, stack=list, op=PlannedOp, count=cython.Py_ssize_t, walk=cython.Py_ssize_t, result=ResultValue, others=list)
    cpdef tuple plan(self, targets)

cdef class _Walk:
    cdef OpGraph graph
    cdef object seen
    cdef readonly dict dependents
    cdef readonly Py_ssize_t left
    cdef readonly list ops, ready
    cdef set kept, wanted
    @cython.locals(graph=OpGraph, calculation=Calculation, lifetimes=Lifetimes, dependents=dict, stack=list, room=cython.Py_ssize_t, op=PlannedOp, later=PlannedOp)
    cpdef window(self)
    cpdef tuple _begun(self)
    @cython.locals(ops=list, nbytes=cython.Py_ssize_t, op=PlannedOp)
    cdef list _taken(self)
    @cython.locals(kind=Kind)
    cdef bint _is_grouped(self, PlannedOp op) except -1
