cimport cython
from kernbench_core.values.region cimport Region, ascending_pieces, normal, overlaps
from kernbench_core.values.region_pages cimport Filed, RegionPages

cdef class LastUse:
    cdef public UseGroup group
    cdef public object op_id, landed
    cdef public double issued
    cdef public Py_ssize_t thread, epoch, pending

cdef class UseGroup:
    cdef public object tensor, call, site
    cdef public tuple physical
    cdef public bint writes, atomic
    cdef LastUse _first
    cdef dict _others
    cdef public list meets
    @cython.locals(first=LastUse)
    cpdef LastUse use_of(self, Py_ssize_t thread)
    cpdef keep(self, LastUse use)
    @cython.locals(region=Region, piece=Region)
    cpdef list pieces(self)

cdef class _Piece(Filed):
    cdef readonly UseGroup group

cdef class TensorUses:
    cdef public dict reads, writes
    cdef RegionPages _read_pages, _write_pages
    cpdef add(self, UseGroup group)

@cython.locals(piece=_Piece)
cdef _file(list pieces, RegionPages pages)
@cython.locals(near=dict, piece=_Piece, other=_Piece, met=UseGroup)
cdef _meet(UseGroup group, list pieces, RegionPages pages)
cdef bint _is_unordered(LastUse use, clock)
cdef _drop_over(UseGroup group, floor)
@cython.locals(last=LastUse, own=LastUse, kept=LastUse)
cdef _unite(UseGroup known, UseGroup group)
