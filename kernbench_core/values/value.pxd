from kernbench_core.values.region cimport Region

cdef class Value:
    cdef object __weakref__
    cdef readonly object dtype, shape
    cpdef array(self)
    cpdef tuple makers(self)
    cpdef Value content(self)
    cpdef tuple results(self)
    cpdef tuple parts(self)
    cpdef Value reshape(self, shape)

cdef class Part:
    cdef readonly Region dst, src
    cdef readonly Value source

cdef class ArrayValue(Value):
    cdef object _array, _flat, _writer
    cdef readonly object origin, src
    cpdef array(self)
    cpdef flat(self)
    cpdef tuple parts(self)

cdef class ResultValue(Value):
    cdef object _flat
    cdef readonly object data
    cdef readonly bint computed, on_demand
    cdef readonly object op_id
    cpdef fill(self, array)
    cpdef release(self)
    cpdef array(self)
    cpdef flat(self)
    cpdef tuple results(self)

cdef class LoadedValue(Value):
    cdef Value _content
    cdef readonly object op_id, sources
    cpdef bind(self, Value content, sources=*)
    cpdef array(self)
    cpdef Value content(self)
    cpdef tuple results(self)
    cpdef tuple parts(self)

cdef class AssemblyValue(Value):
    cdef tuple _makers, _parts, _results
    cdef readonly object _array
    cpdef array(self)
    cpdef tuple makers(self)
    cpdef tuple results(self)
    cpdef tuple parts(self)
    cpdef gather(self, dtype=*)

cpdef tuple flatten(tuple parts)
cpdef list sub_parts(Value source, src, dst)
cdef bint _are_leaves(tuple parts) except -1
cdef bint _is_leaf(source) except -1
