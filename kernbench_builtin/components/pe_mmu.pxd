cimport cython
from kernbench_core.component cimport ComponentBase
from kernbench_core.messages cimport MsgBase

cdef class PeMmu(ComponentBase):
    cdef public long long hits, misses, page_bytes
    cdef long long _large, _ways, _number
    cdef double _tlb_overhead, _walk
    cdef list _sets, _walker_free, _latest, _latest_known
    cdef public object _memory
    cpdef overhead(self, MsgBase msg)
    cpdef emit(self, MsgBase msg, double head, double tail)
    @cython.locals(began=double, at=double, ready=double, known=double, page=tuple)
    cpdef double translation_ns(self, regions, at_ns=*) except? -1
    @cython.locals(small=cython.longlong, base=cython.longlong, row_bytes=cython.longlong, rows=cython.longlong,
                   pitch=cython.longlong, reach=cython.longlong, row=cython.longlong, found=dict, page=tuple, block=tuple)
    cpdef tuple pages(self, regions)
    @cython.locals(large=cython.longlong, small=cython.longlong, first=cython.longlong, last=cython.longlong,
                   base=cython.longlong, size=cython.longlong)
    cdef tuple _touch(self, long long start, long long end, tuple block, dict found, tuple page)
    @cython.locals(base=cython.longlong, size=cython.longlong, number=cython.longlong, known=double, free=double,
                   entries=dict)
    cdef double _look_up(self, tuple page, double at) except? -1
