cimport cython
from kernbench_core.values.region cimport Region, ascending_pieces, normal, total_bytes
from kernbench_core.values.store_index cimport SpaceIndex, Write, WrittenRegion, _Remembered
from kernbench_core.values.value cimport ArrayValue, AssemblyValue, Part, Value, sub_parts

cdef class MemoryStore:
    cdef public bint data
    cdef public dict _spaces, _abstract
    @cython.locals(index=SpaceIndex, regions=tuple, value=Value)
    cpdef write(self, space, where, data, writer=*)
    cpdef sample(self, space, where, shape, dtype)
    @cython.locals(regions=tuple, hit=Write, cached=_Remembered)
    cdef tuple _sample(self, SpaceIndex index, space, where, shape, dtype)
    cpdef _abstract_value(self, shape, dtype)
    @cython.locals(parts=list, used=list, offset=cython.Py_ssize_t, found=cython.Py_ssize_t, region=Region, piece=Region,
                   part=Part, entry=WrittenRegion, write=Write, shown=set, known=dict)
    cdef tuple _assembled(self, SpaceIndex index, space, regions, shape, dtype)

@cython.locals(region=Region)
cpdef tuple as_regions(where, nbytes)
@cython.locals(region=Region, item=cython.Py_ssize_t, have=cython.Py_ssize_t)
cdef _check_place(space, tuple regions, shape, dtype, verb)
@cython.locals(only=Part, flat=list)
cdef Value _as_value(list parts, shape, dtype)
@cython.locals(out=list)
cdef list _merged(list parts)
@cython.locals(last=Part, src=Region, dst=Region)
cdef _append(list parts, Part part)
@cython.locals(pitch=cython.Py_ssize_t)
cpdef _continued(Region first, Region then)
