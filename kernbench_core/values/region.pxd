cimport cython

@cython.final
@cython.freelist(1024)
cdef class Region:
    cdef readonly long long base, row_bytes, rows, pitch
    cdef Py_hash_t _hash
    cpdef Region shifted(self, long long offset)
    cpdef Region row(self, long long index)

cdef double _FAR
cdef long long _MANY_BYTES
@cython.locals(span=cython.longlong)
cdef long long _end(Region region) except? -1
cpdef Region normal(Region region)
cpdef tuple ascending_pieces(Region region)
@cython.locals(region=Region, found=cython.longlong)
cpdef long long total_bytes(regions) except? -1
@cython.locals(a_base=cython.longlong, a_end=cython.longlong, b_base=cython.longlong, b_end=cython.longlong, shift=cython.longlong, column=cython.longlong, few=Region, many=Region, row=cython.longlong, start=cython.longlong)
cpdef bint overlaps(Region a, Region b) except? -1
@cython.locals(offset=cython.longlong, column=cython.longlong)
cpdef bint covers(Region outer, Region inner) except? -1
@cython.locals(a_end=cython.longlong, b_end=cython.longlong, lin=Region, found=Region)
cpdef list intersect(Region a, Region b)
@cython.locals(width=cython.longlong, row=cython.longlong, column=cython.longlong, base=cython.longlong, pitch=cython.longlong)
cpdef list compose(Region outer, Region inner)
cpdef list subtract(Region region, holes)
cdef bint _is_runs(Region hole) except? -1
@cython.locals(end=cython.longlong, cursor=cython.longlong, base=cython.longlong, nbytes=cython.longlong)
cdef list _gaps(Region region, list holes)
@cython.locals(first=cython.longlong)
cdef bint _run_meets(long long start, long long stop, Region region) except? -1
@cython.locals(low=cython.longlong, high=cython.longlong, width=cython.longlong, pitch=cython.longlong, first=cython.longlong, last=cython.longlong, full_from=cython.longlong, full_to=cython.longlong, rows=cython.longlong)
cdef list _clip(Region region, long long start, long long stop)
@cython.locals(base=cython.longlong, low=cython.longlong, high=cython.longlong)
cdef tuple _cut_row(Region region, long long index, long long start, long long stop)
@cython.locals(pitch=cython.longlong, shift=cython.longlong, column=cython.longlong, step=cython.longlong, offset=cython.longlong, low=cython.longlong, high=cython.longlong, first=cython.longlong, last=cython.longlong, rows=cython.longlong, width=cython.longlong, of_a=Region)
cdef list _same_pitch(Region a, Region b)
@cython.locals(start=cython.longlong, offset=cython.longlong, lin=Region, absolute=Region)
cdef list _row_pairs(long long index, Region a, Region b)
@cython.locals(width=cython.longlong, pitch=cython.longlong, row=cython.longlong, column=cython.longlong, rows=cython.longlong, take=cython.longlong)
cdef list _compose_run(Region outer, long long start, long long nbytes, long long done)
cdef list _without(Region region, Region hole)
cdef list _linear_rest(long long nbytes, long long width, list taken)
@cython.locals(cursor=cython.longlong, gap=cython.longlong, absolute=Region)
cdef list _linear_without(Region run, Region hole)
