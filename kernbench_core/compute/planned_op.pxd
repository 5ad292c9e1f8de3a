cimport cython
from kernbench_core.compute.kinds cimport Kind
from kernbench_core.values.value cimport ResultValue, Value

@cython.final
cdef class PlannedOp:
    cdef tuple _needs
    cdef public bint done
    cdef public tuple inputs
    cdef public Kind kind
    cdef public Py_ssize_t nbytes, number, row, waits, walk
    cdef public object record
    cdef public ResultValue result
    cdef public double t_start
    @cython.locals(value=Value, found=list)
    cpdef tuple reads(self)
