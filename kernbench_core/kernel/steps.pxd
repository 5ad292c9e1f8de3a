cimport cython

cdef class Step:
    cdef readonly Step before
    cdef readonly dict added
    cdef readonly Py_ssize_t length
    cdef readonly str call, unit
    cdef readonly tuple site
    cdef readonly double begin, end
    @cython.locals(step=Step)
    cpdef dict sums(self)
