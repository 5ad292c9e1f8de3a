cdef struct Entry:
    double time
    long long priority
    long long key
    Py_ssize_t place


cdef class Scheduled:
    cdef public object callbacks


cpdef object step(object steps, object value)

cpdef Py_ssize_t place_of(tuple pairs, tuple path, Py_ssize_t hop) except -2


cdef class EventQueue:
    cdef public double now
    cdef public long long happened, injected
    cdef public object active
    cdef readonly object failed
    cdef list _events
    cdef Entry *_heap
    cdef void *_memory
    cdef Py_ssize_t *_free
    cdef Py_ssize_t _size
    cdef Py_ssize_t _room

    cpdef void push(self, double time, long long priority, long long key, object event) except *
    cpdef void appoint(self, double time, object event, tuple callbacks) except *
    cdef object _pop(self)
    cdef int _grow(self) except -1
