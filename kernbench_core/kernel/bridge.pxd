cdef class Bridge:
    cdef public object _greenlet
    cpdef resume(self, value=*)
    cpdef suspend(self, request)
    cpdef throw(self, error)

cdef class Finished:
    cdef public object value
