cimport cython

cdef class PatternPlan:
    cdef readonly list fixed
    cdef readonly bint named
    cdef readonly tuple packed, places
    cdef readonly dict templates
    @cython.locals(found=list, places=tuple, at=Py_ssize_t, place=Py_ssize_t)
    cpdef list filled(self, tuple numbers)
