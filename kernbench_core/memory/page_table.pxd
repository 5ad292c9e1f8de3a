cimport cython
from kernbench_core.values.region cimport Region

cdef class _Tile:
    cdef readonly list of_pieces
    cdef readonly tuple first, cells
    cdef readonly dict seen

cdef class Mapping:
    cdef readonly long long va, end
    cdef readonly object layout, tensor
    cdef tuple _starts, _steps, _digits
    cdef object _nearest
    cdef dict _chosen, _known
    cdef long long _held, _unit
    @cython.locals(base=cython.longlong, span=cython.longlong)
    cpdef bint holds(self, Region region) except? -1
    @cython.locals(offset=cython.longlong, pitch=cython.longlong, cell=cython.longlong, local=cython.longlong, tile=_Tile)
    cpdef tuple translate(self, Region region, pe)
    @cython.locals(cell=cython.longlong, local=cython.longlong, weight=cython.longlong, in_cell=cython.longlong, in_local=cython.longlong, count=cython.longlong)
    cdef (long long, long long) _locate(self, long long offset) except *
    @cython.locals(chosen=dict)
    cdef long long _start(self, cell, pe) except? -1
    @cython.locals(tile=_Tile)
    cdef _Tile _learn(self, Region region)
    @cython.locals(apart=dict, piece=Region)
    cdef tuple _see(self, _Tile tile, tuple starts)
    cdef _make_room(self)
    @cython.locals(at=cython.longlong, width=cython.longlong, rows=cython.longlong, pitch=cython.longlong, unit=cython.longlong, reach=cython.longlong, last=cython.longlong, step=cython.longlong, together=cython.longlong, cell=cython.longlong, local=cython.longlong)
    cdef tuple _pieces(self, Region region)
    @cython.locals(end=cython.longlong, piece=cython.longlong, cell=cython.longlong, local=cython.longlong)
    cdef _run(self, long long offset, long long nbytes, list cells, list found)
    @cython.locals(weight=cython.longlong, reach=cython.longlong, local=cython.longlong)
    cdef (long long, long long, long long) _stride(self, long long width, long long pitch) except *

cdef class PageTable:
    cdef list _starts, _mappings
    cdef Mapping _last
    cpdef map(self, Mapping mapping)
    cpdef unmap(self, va)
    cpdef Mapping find(self, va)
    cpdef tuple translate(self, Region region, pe=*)
    @cython.locals(base=cython.longlong, left=cython.longlong, piece=cython.longlong, row=cython.longlong, mapping=Mapping)
    cdef tuple _split(self, Region region, pe)
