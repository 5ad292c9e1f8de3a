cdef class Signal:
    cdef public list callbacks
    cdef public bint _ok, _defused
    cdef public object _value
    cpdef fire(self, value=*)
