cimport cython
from kernbench_builtin.components.tiles.token cimport TileStream, TileToken

cdef class RegisterFile:
    cdef readonly Py_ssize_t capacity
    cdef public Py_ssize_t used
    cdef public list waiting
    cdef dict _sums
    cdef set _held
    cpdef ask(self, TileToken token)
    @cython.locals(token=TileToken)
    cpdef list admit(self)
    cpdef bint taken_in(self, TileToken token) except -1
    cpdef bint stage_ended(self, TileToken token) except -1
    cdef bint _fits(self, TileToken token) except -1
    cdef _take(self, TileToken token)

cdef tuple _output_of(TileToken token)
