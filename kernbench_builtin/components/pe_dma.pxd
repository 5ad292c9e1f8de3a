cimport cython
from kernbench_core.component cimport ComponentBase
from kernbench_core.fabric cimport Fabric
from kernbench_core.messages cimport MsgBase, Transaction
from kernbench_core.wire cimport Wire

cdef class _Channel:
    cdef public list free
    cdef public object queue

cdef class _Job:
    cdef public object msg
    cdef public str op
    cdef public long long waiting
    cdef public bint pushes, fetches, translates, started
    cdef public double began, ready, ends

cdef class _ChunkMsg(MsgBase):
    cdef public PeDma dma
    cdef public _Job job
    cdef public _Channel channel
    cdef public object chunk
    cdef public Transaction sent
    cdef public double taken
    cpdef came_back(self, Transaction sent)

cdef class PeDma(ComponentBase):
    cdef dict __dict__
    cdef public double _descriptor_overhead, _overhead
    cdef public _Channel _reads, _writes
    cdef public dict _active, _paths
    cdef public object _mmu, _tcm
    cdef public Wire _to_tcm, _from_tcm
    cdef public str _prefix, _ipcq
    @cython.locals(job=_Job, channel=_Channel, now=double, ordered=bint)
    cpdef receive(self, msg)
    cpdef pick_chunk(self, queue)
    @cython.locals(free=list, now=double, taken=double)
    cpdef _serve(self, _Channel channel)
    @cython.locals(job=_Job, leave=double)
    cpdef _begin(self, _ChunkMsg chunk_msg, double taken)
    @cython.locals(now=double)
    cpdef _leave(self, _ChunkMsg chunk_msg)
    @cython.locals(now=double, job=_Job, back=Wire, nbytes=cython.longlong, asked=double, head=double, tail=double)
    cpdef _fetch(self, _ChunkMsg chunk_msg)
    cpdef _fetched(self, _ChunkMsg chunk_msg)
    cpdef double _write_tcm(self, nbytes, double head, double tail) except? -1
    @cython.locals(job=_Job, path=tuple, sent=Transaction, fabric=Fabric)
    cpdef _send(self, _ChunkMsg chunk_msg, double head, double tail)
    cpdef _atomic(self, msg, tuple path, _ChunkMsg chunk_msg)
    @cython.locals(end=double, fabric=Fabric)
    cpdef answered(self, _ChunkMsg chunk_msg, Transaction sent)
    cpdef _empty(self, _ChunkMsg chunk_msg)
    @cython.locals(job=_Job, channel=_Channel)
    cpdef _end(self, _ChunkMsg chunk_msg, double end)
    @cython.locals(job=_Job, now=double)
    cpdef _finish(self, _ChunkMsg chunk_msg)
