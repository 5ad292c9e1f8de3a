cdef class Handle:
    cdef public object _tl, command, op, site, value
    cpdef settle(self)
    cpdef check_own(self, tl, use)

cdef class Tile(Handle):
    cdef public object block
    cpdef check_live(self, use)
    cpdef check_use(self, tl, op)
