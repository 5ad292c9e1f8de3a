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
    cpdef add_all(self, made, numbers)
    @cython.locals(op=PlannedOp)
    cpdef PlannedOp maker(self, ResultValue result)
    @cython.locals(ops=list, dependents=dict, stack=list, op=PlannedOp, count=cython.Py_ssize_t, walk=cython.Py_ssize_t, result=ResultValue, others=list)
    cpdef tuple plan(self, targets)

cdef class _Walk:
    cdef OpGraph graph
    cdef object _lock, seen
    cdef readonly dict dependents
    cdef readonly Py_ssize_t left
    cdef readonly list ops, ready, same
    cdef set kept, wanted
    @cython.locals(graph=OpGraph, calculation=Calculation, chains=list)
    cpdef window(self)
    @cython.locals(dependents=dict, same=list, order=list, chains=dict, began=cython.Py_ssize_t, room=cython.Py_ssize_t, op=PlannedOp, later=PlannedOp)
    cdef list _chains(self, list stack)
    @cython.locals(calculation=Calculation, op=PlannedOp, count=cython.Py_ssize_t, own=cython.Py_ssize_t, known=cython.Py_ssize_t)
    cpdef tuple _chain(self, list ops, set fresh)
    @cython.locals(ops=list, nbytes=cython.Py_ssize_t, op=PlannedOp)
    cdef list _taken(self)
    @cython.locals(kind=Kind)
    cdef bint _is_grouped(self, PlannedOp op) except -1
    @cython.locals(lifetimes=Lifetimes)
    cdef _drop_what(self, PlannedOp op)

cdef Py_ssize_t _first(list same, Py_ssize_t number) except -1
