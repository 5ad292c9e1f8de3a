cimport cython

cdef class Thread:
    cdef public Py_ssize_t index, epoch
    cdef public object clock

cdef class _Launched:
    cdef public object given, learnt
    cdef public set coming, running

cdef class _Turns:
    cdef public list threads
    cdef public object known

cdef class Clocks:
    cdef public bint _by_program
    cdef public object _nothing
    cdef public Py_ssize_t _width
    cdef public dict _threads, _turns, _hosts, _children, _over, _launches, _waiting, _published, _handed
    cpdef publish(self, op_id)
    @cython.locals(thread=Thread)
    cpdef order(self, from_op, to_pe)
    cdef _release(self, Thread thread)
    cpdef Thread thread(self, pe)
    cpdef widened(self, clock)

