cimport cython
from kernbench_core.compute.kinds cimport Kind
from kernbench_core.compute.planned_op cimport PlannedOp
from kernbench_core.values.value cimport Value

cdef class ProductBatch:
    cdef readonly object multiply, ops
    cdef object _uses
    cdef dict _held
    cdef tuple _group(self, PlannedOp op)
    cdef tuple _shape(self, PlannedOp op)
    cdef _left(self, list ops, Py_ssize_t rows, Py_ssize_t k)
    cdef _finished(self, PlannedOp op, acc)
    @cython.locals(value=Value, content=Value)
    cdef _operand(self, PlannedOp op, Py_ssize_t number, bint widen, counted_wide=*)
    cdef _drop(self, Value value, bint widen)

cdef _data(Value content, bint widen)
cdef Kind _kind(PlannedOp op)
@cython.locals(a=Value)
cdef Py_ssize_t _rows(PlannedOp op) except -1
@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _size(shape) except -1
