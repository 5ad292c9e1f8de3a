cdef class Queue:
    cdef readonly object source, destination, channel, tier
    cdef readonly tuple slots
    cdef readonly Py_ssize_t slot_bytes
    cdef public list unreceived
    cdef public object last_receipt, outgoing, incoming
    cdef public Py_ssize_t received
    cdef public list ends, cuts
    cdef public bint closing
    cpdef enter(self, message)
    cpdef take(self, site)
