cimport cython
from kernbench_core.values.value cimport Value

cdef class Kind:
    cdef object _backend
    cdef dict _prepared
    cdef tuple _last
    cdef readonly bint alike, floats, is_product
    cdef public bint own
    cdef readonly double multiplications
    cdef readonly object dtype, function, layout, name, params, target
    @cython.locals(like=list, value=Value)
    cpdef computing(self, tuple inputs, list arrays)
