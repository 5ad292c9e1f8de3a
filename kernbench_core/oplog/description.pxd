cdef class Access:
    cdef readonly object regions, space, value

cdef class OpPattern:
    cdef readonly object function, op_kind, op_name, open, params
    cpdef described(self, numbers, reads, writes, op_id)

cdef class Patterns:
    cdef dict _known
    cdef readonly object find

cdef class OpDescription:
    cdef public object _params, function, numbers, op_id, op_kind, op_name, pattern, reads, stage_of, writes
