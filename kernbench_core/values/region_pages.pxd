cimport cython
from kernbench_core.values.region cimport Region, overlaps

cdef class Filed:
    cdef public Region region

cdef class RegionPages:
    cdef tuple _pages
    @cython.locals(pages=dict, held=list)
    cpdef file(self, Filed thing)
    @cython.locals(pages=dict, held=list)
    cpdef drop(self, Filed thing)
    @cython.locals(found=list, base=cython.longlong, last=cython.longlong, level=cython.int, pages=dict, shift=cython.longlong, first=cython.longlong, end=cython.longlong, several=dict)
    cpdef list near(self, Region region)
    @cython.locals(found=list, thing=Filed)
    cpdef list touching(self, Region region)
    @cython.locals(copy=RegionPages)
    cpdef RegionPages fork(self)

@cython.locals(span=cython.longlong)
cdef int _level_of(Region region) except -1
cdef _known_pages(Region region, long long shift, dict among, long long first, long long last)
@cython.locals(base=cython.longlong, width=cython.longlong, pitch=cython.longlong, end=cython.longlong, done=cython.longlong, found=list, start=cython.longlong, page=cython.longlong)
cdef _pages_of(Region region, long long shift)
