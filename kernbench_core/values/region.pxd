cimport cython

@cython.final
@cython.freelist(1024)
cdef class Region:
    cdef readonly Py_ssize_t base, row_bytes, rows, pitch
    cdef Py_hash_t _hash
    cpdef Region shifted(self, Py_ssize_t offset)
    cpdef Region row(self, Py_ssize_t index)

cdef double _FAR
@cython.locals(span=cython.Py_ssize_t)
cdef Py_ssize_t _end(Region region) except? -1
cpdef Region normal(Region region)
cpdef tuple ascending_pieces(Region region)
@cython.locals(region=Region, found=cython.Py_ssize_t)
cpdef Py_ssize_t total_bytes(regions) except? -1
@cython.locals(a_base=cython.Py_ssize_t, a_end=cython.Py_ssize_t, b_base=cython.Py_ssize_t, b_end=cython.Py_ssize_t, shift=cython.Py_ssize_t, column=cython.Py_ssize_t, few=Region, many=Region, row=cython.Py_ssize_t, start=cython.Py_ssize_t)
cpdef bint overlaps(Region a, Region b) except? -1
@cython.locals(offset=cython.Py_ssize_t, column=cython.Py_ssize_t)
cpdef bint covers(Region outer, Region inner) except? -1
@cython.locals(a_end=cython.Py_ssize_t, b_end=cython.Py_ssize_t, lin=Region, found=Region)
cpdef list intersect(Region a, Region b)
@cython.locals(width=cython.Py_ssize_t, row=cython.Py_ssize_t, column=cython.Py_ssize_t, base=cython.Py_ssize_t, pitch=cython.Py_ssize_t)
cpdef list compose(Region outer, Region inner)
cpdef list subtract(Region region, holes)
cdef bint _is_runs(Region hole) except? -1
@cython.locals(end=cython.Py_ssize_t, cursor=cython.Py_ssize_t, base=cython.Py_ssize_t, nbytes=cython.Py_ssize_t)
cdef list _gaps(Region region, list holes)
@cython.locals(first=cython.Py_ssize_t)
cdef bint _run_meets(Py_ssize_t start, Py_ssize_t stop, Region region) except? -1
@cython.locals(low=cython.Py_ssize_t, high=cython.Py_ssize_t, width=cython.Py_ssize_t, pitch=cython.Py_ssize_t, first=cython.Py_ssize_t, last=cython.Py_ssize_t, full_from=cython.Py_ssize_t, full_to=cython.Py_ssize_t, rows=cython.Py_ssize_t)
cdef list _clip(Region region, Py_ssize_t start, Py_ssize_t stop)
@cython.locals(base=cython.Py_ssize_t, low=cython.Py_ssize_t, high=cython.Py_ssize_t)
cdef tuple _cut_row(Region region, Py_ssize_t index, Py_ssize_t start, Py_ssize_t stop)
@cython.locals(pitch=cython.Py_ssize_t, shift=cython.Py_ssize_t, column=cython.Py_ssize_t, step=cython.Py_ssize_t, offset=cython.Py_ssize_t, low=cython.Py_ssize_t, high=cython.Py_ssize_t, first=cython.Py_ssize_t, last=cython.Py_ssize_t, rows=cython.Py_ssize_t, width=cython.Py_ssize_t, of_a=Region)
cdef list _same_pitch(Region a, Region b)
@cython.locals(start=cython.Py_ssize_t, offset=cython.Py_ssize_t, lin=Region, absolute=Region)
cdef list _row_pairs(Py_ssize_t index, Region a, Region b)
@cython.locals(width=cython.Py_ssize_t, pitch=cython.Py_ssize_t, row=cython.Py_ssize_t, column=cython.Py_ssize_t, rows=cython.Py_ssize_t, take=cython.Py_ssize_t)
cdef list _compose_run(Region outer, Py_ssize_t start, Py_ssize_t nbytes, Py_ssize_t done)
cdef list _without(Region region, Region hole)
cdef list _linear_rest(Py_ssize_t nbytes, Py_ssize_t width, list taken)
@cython.locals(cursor=cython.Py_ssize_t, gap=cython.Py_ssize_t, absolute=Region)
cdef list _linear_without(Region run, Region hole)
