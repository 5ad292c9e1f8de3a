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
    @cython.locals(found=list, base=cython.Py_ssize_t, last=cython.Py_ssize_t, level=cython.int, pages=dict, shift=cython.Py_ssize_t, first=cython.Py_ssize_t, end=cython.Py_ssize_t, several=dict)
    cpdef list near(self, Region region)
    @cython.locals(found=list, thing=Filed)
    cpdef list touching(self, Region region)
    @cython.locals(copy=RegionPages)
    cpdef RegionPages fork(self)

@cython.locals(span=cython.Py_ssize_t)
cdef int _level_of(Region region) except -1
cdef _known_pages(Region region, Py_ssize_t shift, dict among, Py_ssize_t first, Py_ssize_t last)
@cython.locals(base=cython.Py_ssize_t, width=cython.Py_ssize_t, pitch=cython.Py_ssize_t, end=cython.Py_ssize_t, done=cython.Py_ssize_t, found=list, start=cython.Py_ssize_t, page=cython.Py_ssize_t)
cdef _pages_of(Region region, Py_ssize_t shift)
