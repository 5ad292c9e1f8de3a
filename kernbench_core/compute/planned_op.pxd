cimport cython
from kernbench_core.compute.kinds cimport Kind
from kernbench_core.values.value cimport ResultValue, Value

@cython.final
cdef class PlannedOp:
    cdef public bint done
    cdef public tuple inputs, needs
    cdef public Kind kind
    cdef public Py_ssize_t nbytes, number, row, waits, walk
    cdef public object record
    cdef public ResultValue result
    cdef public double t_start
