cimport cython
from kernbench_core.component cimport ComponentBase
from kernbench_core.messages cimport MsgBase
from kernbench_core.values.region cimport Region

cdef class PeMmu(ComponentBase):
    cdef public Py_ssize_t hits, misses, page_bytes
    cdef Py_ssize_t _large, _ways, _number
    cdef double _tlb_overhead, _walk
    cdef list _sets, _walker_free, _latest, _latest_known
    cdef public object _memory
    cpdef overhead(self, MsgBase msg)
    cpdef emit(self, MsgBase msg, double head, double tail)
    @cython.locals(began=double, at=double, ready=double, known=double, page=tuple)
    cpdef double translation_ns(self, regions, at_ns=*) except? -1
    @cython.locals(small=cython.Py_ssize_t, base=cython.Py_ssize_t, row_bytes=cython.Py_ssize_t, rows=cython.Py_ssize_t,
                   pitch=cython.Py_ssize_t, reach=cython.Py_ssize_t, row=cython.Py_ssize_t, region=Region, found=dict, page=tuple, block=tuple)
    cpdef tuple pages(self, regions)
    @cython.locals(large=cython.Py_ssize_t, small=cython.Py_ssize_t, first=cython.Py_ssize_t, last=cython.Py_ssize_t,
                   base=cython.Py_ssize_t, size=cython.Py_ssize_t)
    cdef tuple _touch(self, Py_ssize_t start, Py_ssize_t end, tuple block, dict found, tuple page)
    @cython.locals(base=cython.Py_ssize_t, size=cython.Py_ssize_t, number=cython.Py_ssize_t, known=double, free=double,
                   entries=dict)
    cdef double _look_up(self, tuple page, double at) except? -1
