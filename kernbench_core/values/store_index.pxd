cimport cython
from kernbench_core.values.region cimport Region, ascending_pieces, covers, intersect, subtract
from kernbench_core.values.region_pages cimport Filed, RegionPages
from kernbench_core.values.value cimport Part, Value

cdef class Write:
    cdef readonly tuple regions
    cdef readonly Value value
    cdef readonly object writer

cdef class WrittenRegion(Filed):
    cdef readonly Write write
    cdef readonly Py_ssize_t offset, sequence

cdef class _Remembered:
    cdef readonly object writers, shape, dtype
    cdef readonly Value value
    cdef readonly tuple used

cdef class SpaceIndex:
    cdef public dict exact
    cdef RegionPages _pages
    cdef set _clean, _hidden
    cdef dict _cache
    cdef Py_ssize_t _sequence, _compact_at
    @cython.locals(offset=cython.Py_ssize_t, filed=list, met=set, region=Region, piece=Region, entry=WrittenRegion)
    cpdef insert(self, Write write)
    cpdef list touching(self, Region piece)
    @cython.locals(entries=list, clean=list, shaded=list, first=cython.Py_ssize_t, covered=cython.Py_ssize_t, e=WrittenRegion, entry=WrittenRegion, rest=Region)
    cpdef Py_ssize_t collect(self, Region piece, Py_ssize_t offset, list parts, list used) except? -1
    @cython.locals(known=_Remembered)
    cpdef cached(self, regions, shape, dtype)
    cpdef remember(self, regions, shape, dtype, value, writers, list used)
    @cython.locals(region=Region, old=WrittenRegion)
    cdef _file(self, WrittenRegion entry, set met)
    cdef _keep(self, WrittenRegion entry, bint clean)
    cdef _drop(self, WrittenRegion entry)
    @cython.locals(covered=cython.Py_ssize_t, entry=WrittenRegion, at_piece=Region, at_entry=Region)
    cdef Py_ssize_t _take(self, list entries, Region piece, Py_ssize_t offset, list parts) except? -1
