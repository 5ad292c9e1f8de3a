cimport cython

cdef class FirstFit:
    cdef readonly long long base, size, alignment
    cdef public long long used
    cdef dict _live
    cdef list _order, _hole_starts, _hole_ends
    cdef long long _given
    @cython.locals(need=cython.longlong, start=cython.longlong, index=cython.Py_ssize_t, starts=list, ends=list)
    cpdef alloc(self, nbytes, owner)
    @cython.locals(nbytes=cython.longlong, start=cython.longlong, end=cython.longlong, index=cython.Py_ssize_t, starts=list, ends=list)
    cpdef free(self, long long address)
    @cython.locals(start=cython.longlong, end=cython.longlong, nbytes=cython.longlong, index=cython.Py_ssize_t)
    cpdef tuple block_at(self, long long address)
