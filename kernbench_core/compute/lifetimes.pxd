cimport cython
from kernbench_core.compute.planned_op cimport PlannedOp
from kernbench_core.values.value cimport ResultValue

cdef class Lifetimes:
    cdef public object held
    cdef readonly bint keep_all
    cdef readonly Py_ssize_t loose_bytes
    cdef dict _readers, _loose
    @cython.locals(readers=dict)
    cpdef expect(self, PlannedOp op)
    cpdef sweep(self, set wanted)
    @cython.locals(readers=dict, left=cython.Py_ssize_t, result=ResultValue)
    cpdef finish(self, PlannedOp op, set wanted, set kept)
    cdef _drop(self, ResultValue result, set wanted, set kept)
