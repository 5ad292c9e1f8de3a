cdef class Queue:
    cdef readonly object source, destination, channel, tier
    cdef readonly tuple slots
    cdef readonly long long slot_bytes
    cdef public list unreceived
    cdef public object last_receipt, outgoing, incoming
    cdef public long long received
    cdef public list ends, cuts
    cdef public bint closing
    cpdef enter(self, message)
    cpdef take(self, site)
