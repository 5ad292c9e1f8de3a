cimport cython

cdef class FirstFit:
    cdef readonly Py_ssize_t base, size, alignment
    cdef public Py_ssize_t used, most
    cdef dict _live
    cdef list _order, _hole_starts, _hole_ends
    cdef Py_ssize_t _given
    @cython.locals(need=cython.Py_ssize_t, start=cython.Py_ssize_t, index=cython.Py_ssize_t, starts=list, ends=list)
    cpdef alloc(self, nbytes, owner)
    @cython.locals(nbytes=cython.Py_ssize_t, start=cython.Py_ssize_t, end=cython.Py_ssize_t, index=cython.Py_ssize_t, starts=list, ends=list)
    cpdef free(self, Py_ssize_t address)
    @cython.locals(start=cython.Py_ssize_t, end=cython.Py_ssize_t, nbytes=cython.Py_ssize_t, index=cython.Py_ssize_t)
    cpdef tuple block_at(self, Py_ssize_t address)
