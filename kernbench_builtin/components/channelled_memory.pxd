cimport cython
from kernbench_core.component cimport ComponentBase
from kernbench_core.messages cimport MsgBase, Transaction
from kernbench_core.wire cimport Wire

cdef class Interleaving:
    cdef bint _hashes
    cdef long long _period, _channels, _block, _burst
    cdef object _of_one, _of_few
    cpdef shares(self, regions)
    cpdef _sum(self, regions)
    cpdef _of_region(self, region)
    @cython.locals(moved_to=cython.longlong, row=cython.longlong, first=cython.longlong, at=cython.longlong, end=cython.longlong)
    cpdef _count(self, long long base, long long row_bytes, long long rows, long long pitch)
    @cython.locals(stripe=cython.longlong, aligned=cython.longlong, turns=cython.longlong)
    cpdef _add_run(self, long long at, long long end, dict total)
    @cython.locals(step=cython.longlong, stripe=cython.longlong)
    cpdef _add_blocks(self, long long at, long long end, dict total)

cdef class ChannelledMemory(ComponentBase):
    cdef public double _overhead
    cdef public object atomic_units
    cdef public Interleaving interleaving
    cdef public list channel_wires
    cpdef overhead(self, MsgBase msg)
    cpdef shares(self, msg)
    @cython.locals(request=Transaction, first=Wire, last=Wire, wire=Wire, first_head=double, last_tail=double,
                   head_out=double, tail_out=double, last_bytes=cython.longlong, nbytes=cython.longlong,
                   channel=Py_ssize_t)
    cpdef emit(self, MsgBase msg, double head, double tail)
    cpdef on_internal(self, MsgBase msg)
    @cython.locals(request=Transaction, head=double, tail=double)
    cpdef respond(self, msg)
