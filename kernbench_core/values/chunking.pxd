cimport cython
from kernbench_core.values.region cimport Region

@cython.freelist(256)
cdef class Chunk:
    cdef readonly object node
    cdef readonly tuple regions
    cdef readonly long long nbytes

@cython.locals(nbytes=cython.longlong, region=Region, chunk=_Filling, piece=Region, filling=dict)
cpdef list chunks(regions, long long chunk_bytes, owner)

cdef class _Filling:
    cdef long long _most, _pitch, _rows
    cdef readonly list held
    cdef readonly object node
    cdef readonly long long room
    @cython.locals(nbytes=cython.longlong, whole_rows=cython.longlong, first=Region, rest=cython.longlong)
    cdef add(self, Region piece, list done)
    cdef take(self, list done)
    @cython.locals(rows=cython.longlong, last=Region, width=cython.longlong, pitch=cython.longlong)
    cdef hold(self, Region piece, long long nbytes)
    @cython.locals(last=Region)
    cdef _close(self)

@cython.locals(base=cython.longlong, width=cython.longlong, rows=cython.longlong, pitch=cython.longlong, fit=cython.longlong, row=cython.longlong, first=cython.longlong)
cdef _pieces(Region region, long long most)
@cython.locals(start=cython.longlong)
cdef list _runs(long long base, long long nbytes, long long most)
