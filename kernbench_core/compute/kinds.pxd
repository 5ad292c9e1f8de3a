cdef class Kind:
    cdef object _backend
    cdef dict _prepared
    cdef readonly bint alike, floats, is_product
    cdef public bint own
    cdef readonly object dtype, function, layout, name, params, target
    cpdef computing(self, list arrays)
