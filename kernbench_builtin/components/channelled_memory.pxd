cimport cython
from kernbench_core.component cimport ComponentBase
from kernbench_core.messages cimport MsgBase, Transaction
from kernbench_core.wire cimport Wire

@cython.locals(_digit=cython.Py_ssize_t)
cpdef Py_ssize_t hashed(Py_ssize_t channel, Py_ssize_t stripe, Py_ssize_t channels)

cdef class Interleaving:
    cdef bint _hashes
    cdef Py_ssize_t _period, _channels, _block, _burst
    cdef object _of_one, _of_few
    cpdef shares(self, regions)
    cpdef _sum(self, regions)
    cpdef _of_region(self, region)
    @cython.locals(moved_to=cython.Py_ssize_t, row=cython.Py_ssize_t, first=cython.Py_ssize_t, at=cython.Py_ssize_t, end=cython.Py_ssize_t)
    cpdef _count(self, Py_ssize_t base, Py_ssize_t row_bytes, Py_ssize_t rows, Py_ssize_t pitch)
    @cython.locals(stripe=cython.Py_ssize_t, aligned=cython.Py_ssize_t, turns=cython.Py_ssize_t)
    cpdef _add_run(self, Py_ssize_t at, Py_ssize_t end, dict total)
    @cython.locals(step=cython.Py_ssize_t, stripe=cython.Py_ssize_t, channel=cython.Py_ssize_t)
    cpdef _add_blocks(self, Py_ssize_t at, Py_ssize_t end, dict total)

cdef class ChannelledMemory(ComponentBase):
    cdef public double _overhead
    cdef public object atomic_units
    cdef public Interleaving interleaving
    cdef public list channel_wires
    cpdef overhead(self, MsgBase msg)
    cpdef shares(self, msg)
    @cython.locals(request=Transaction, first=Wire, last=Wire, wire=Wire, first_head=double, last_tail=double,
                   head_out=double, tail_out=double, last_bytes=cython.Py_ssize_t, nbytes=cython.Py_ssize_t,
                   channel=Py_ssize_t)
    cpdef emit(self, MsgBase msg, double head, double tail)
    cpdef on_internal(self, MsgBase msg)
    @cython.locals(request=Transaction, head=double, tail=double)
    cpdef respond(self, msg)
