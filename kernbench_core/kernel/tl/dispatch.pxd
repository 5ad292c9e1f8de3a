cimport cython
from kernbench_core.kernel.bridge cimport Bridge
from kernbench_core.kernel.tl.tensor cimport Tile

cdef class Dispatcher:
    cdef public object _state
    cdef public Bridge _bridge
    cdef public dict _in_flight, _immediates
    cdef public Py_ssize_t _prune_at
    @cython.locals(tile=Tile)
    cpdef operand(self, thing, dtype, op)
    cpdef check_operand(self, thing, op)
    cpdef op_id(self)
    cpdef bint _determines(self, value) except -1

