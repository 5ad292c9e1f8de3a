cimport cython
from kernbench_core.values.region cimport Region

cdef class _Tile:
    cdef readonly list of_pieces
    cdef readonly tuple first, cells
    cdef readonly dict seen

cdef class Mapping:
    cdef readonly Py_ssize_t va, end
    cdef readonly object layout, tensor
    cdef tuple _starts, _steps, _digits
    cdef object _nearest
    cdef dict _chosen, _known
    cdef Py_ssize_t _held, _unit
    @cython.locals(base=cython.Py_ssize_t, span=cython.Py_ssize_t)
    cpdef bint holds(self, Region region) except? -1
    @cython.locals(offset=cython.Py_ssize_t, pitch=cython.Py_ssize_t, cell=cython.Py_ssize_t, local=cython.Py_ssize_t, tile=_Tile)
    cpdef tuple translate(self, Region region, pe)
    @cython.locals(cell=cython.Py_ssize_t, local=cython.Py_ssize_t, weight=cython.Py_ssize_t, in_cell=cython.Py_ssize_t, in_local=cython.Py_ssize_t, count=cython.Py_ssize_t)
    cdef (Py_ssize_t, Py_ssize_t) _locate(self, Py_ssize_t offset) except *
    @cython.locals(chosen=dict)
    cdef Py_ssize_t _start(self, cell, pe) except? -1
    @cython.locals(tile=_Tile)
    cdef _Tile _learn(self, Region region)
    @cython.locals(apart=dict, piece=Region)
    cdef tuple _see(self, _Tile tile, tuple starts)
    cdef _make_room(self)
    @cython.locals(at=cython.Py_ssize_t, width=cython.Py_ssize_t, rows=cython.Py_ssize_t, pitch=cython.Py_ssize_t, unit=cython.Py_ssize_t, reach=cython.Py_ssize_t, last=cython.Py_ssize_t, step=cython.Py_ssize_t, together=cython.Py_ssize_t, cell=cython.Py_ssize_t, local=cython.Py_ssize_t)
    cdef tuple _pieces(self, Region region)
    @cython.locals(end=cython.Py_ssize_t, piece=cython.Py_ssize_t, cell=cython.Py_ssize_t, local=cython.Py_ssize_t)
    cdef _run(self, Py_ssize_t offset, Py_ssize_t nbytes, list cells, list found)
    @cython.locals(weight=cython.Py_ssize_t, reach=cython.Py_ssize_t, local=cython.Py_ssize_t)
    cdef (Py_ssize_t, Py_ssize_t, Py_ssize_t) _stride(self, Py_ssize_t width, Py_ssize_t pitch) except *

cdef class PageTable:
    cdef list _starts, _mappings
    cdef Mapping _last
    cpdef map(self, Mapping mapping)
    cpdef unmap(self, va)
    cpdef Mapping find(self, va)
    cpdef tuple translate(self, Region region, pe=*)
