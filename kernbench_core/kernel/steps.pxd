cimport cython

cdef class PathStep:
    cdef readonly PathStep before
    cdef readonly dict added
    cdef readonly Py_ssize_t length
    cdef readonly str call, unit
    cdef readonly tuple site
    cdef readonly double begin, end, first
    @cython.locals(step=PathStep)
    cpdef dict sums(self)
