cimport cython
from kernbench_core.values.region cimport Region

@cython.freelist(256)
cdef class Chunk:
    cdef readonly object node
    cdef readonly tuple regions
    cdef readonly Py_ssize_t nbytes

@cython.locals(nbytes=cython.Py_ssize_t, region=Region, chunk=_Filling, piece=Region, filling=dict)
cpdef list chunks(regions, Py_ssize_t chunk_bytes, owner)

cdef class _Filling:
    cdef Py_ssize_t _most, _pitch, _rows
    cdef readonly list held
    cdef readonly object node
    cdef readonly Py_ssize_t room
    @cython.locals(nbytes=cython.Py_ssize_t, whole_rows=cython.Py_ssize_t, first=Region, rest=cython.Py_ssize_t)
    cdef add(self, Region piece, list done)
    cdef take(self, list done)
    @cython.locals(rows=cython.Py_ssize_t, last=Region, width=cython.Py_ssize_t, pitch=cython.Py_ssize_t)
    cdef hold(self, Region piece, Py_ssize_t nbytes)
    @cython.locals(last=Region)
    cdef _close(self)

@cython.locals(base=cython.Py_ssize_t, width=cython.Py_ssize_t, rows=cython.Py_ssize_t, pitch=cython.Py_ssize_t, fit=cython.Py_ssize_t, row=cython.Py_ssize_t, first=cython.Py_ssize_t)
cdef _pieces(Region region, Py_ssize_t most)
@cython.locals(start=cython.Py_ssize_t)
cdef list _runs(Py_ssize_t base, Py_ssize_t nbytes, Py_ssize_t most)
