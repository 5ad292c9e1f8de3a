cimport cython
from kernbench_core.memory.clocks cimport Clocks, Thread
from kernbench_core.memory.memory_uses cimport LastUse, TensorUses, UseGroup
from kernbench_core.values.region cimport Region, overlaps

cdef class _Use:
    cdef public object op_id, call, site, tensor, virtual, writes, issued, landed
    cdef public tuple physical

cdef class Hazards(Clocks):
    cdef object _names, _now
    cdef public dict _tensors, _unwaited, _loose, _on_the_way, _found
    cdef public Py_ssize_t _kept, _tidy_at
    @cython.locals(thread=Thread)
    cpdef waited(self, commands)
    @cython.locals(thread=Thread)
    cpdef waited_for_all(self, pe)
    @cython.locals(thread=Thread, uses=list, known=TensorUses, group=UseGroup, use=LastUse, held=list, region=Region, physical=tuple)
    cpdef issued(self, command, now)
    cpdef landed(self, command, now)
    @cython.locals(use=_Use)
    cpdef handed_out(self, pe, block)
    @cython.locals(me=cython.Py_ssize_t, known=cython.Py_ssize_t, index=cython.Py_ssize_t, count=cython.Py_ssize_t, group=UseGroup, earlier=LastUse, first=LastUse)
    cdef _compare(self, LastUse use, Thread thread, tensor, virtual)
    cdef _end_own(self, LastUse use, Thread thread)
    cdef _count(self, LastUse first, LastUse second, tensor, virtual, pairs)
    cdef _Use _side_of(self, LastUse use, tensor, virtual)

@cython.locals(use=LastUse)
cdef _end(uses, Thread thread)
