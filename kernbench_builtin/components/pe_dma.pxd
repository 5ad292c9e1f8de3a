cimport cython
from kernbench_builtin.components.dma_jobs cimport DmaChannel, Job, Trips
from kernbench_builtin.components.pe_mmu cimport PeMmu
from kernbench_builtin.components.pe_tcm cimport PeTcm
from kernbench_builtin.components.queues.messages cimport Arrived, Credit, DmaOrder, Fetch, Landing, Push, PushChunk
from kernbench_core.component cimport ComponentBase
from kernbench_core.fabric cimport Fabric
from kernbench_core.messages cimport MsgBase, Transaction
from kernbench_core.values.chunking cimport Chunk
from kernbench_core.wire cimport Wire

cdef class _ChunkMsg(MsgBase):
    cdef public PeDma dma
    cdef public Job job
    cdef public DmaChannel channel
    cdef public Chunk chunk
    cdef public Transaction sent
    cdef public double taken, ready, translation
    cpdef came_back(self, Transaction sent)

cdef class PeDma(ComponentBase):
    # as it has a dict, calls of what is cpdef look there first for what overrides it: what nobody overrides is cdef
    cdef dict __dict__
    cdef readonly tuple trips
    cdef Trips _read_trips, _write_trips
    cdef public double _descriptor_overhead, _overhead
    cdef public DmaChannel _reads, _writes
    cdef public dict _active, _paths
    cdef public object _mmu, _tcm
    cdef PeMmu _own_mmu
    cdef PeTcm _own_tcm
    cdef tuple _to_leave, _to_fetch, _to_go_on, _to_finish
    cdef public Wire _to_tcm, _from_tcm
    cdef public str _prefix, _ipcq
    cpdef bint acts_on_head(self, MsgBase msg) except -1
    @cython.locals(job=Job, channel=DmaChannel, now=double, order=DmaOrder, pieces=tuple, known=MsgBase)
    cpdef receive(self, msg)
    cpdef pick_chunk(self, queue)
    @cython.locals(free=list, now=double, taken=double)
    cdef _serve(self, DmaChannel channel)
    @cython.locals(job=Job, leave=double, translation=double, mmu=PeMmu)
    cdef _begin(self, _ChunkMsg chunk_msg, double taken)
    @cython.locals(now=double)
    cpdef _leave(self, _ChunkMsg chunk_msg)
    @cython.locals(now=double, job=Job, back=Wire, nbytes=cython.Py_ssize_t, asked=double, head=double, tail=double)
    cpdef _fetch(self, _ChunkMsg chunk_msg)
    cpdef _fetched(self, _ChunkMsg chunk_msg)
    cdef double _write_tcm(self, Py_ssize_t nbytes, double head, double tail) except? -1
    @cython.locals(tcm=PeTcm)
    cdef (double, double) _access(self, str op, Py_ssize_t nbytes, double head, double tail) except *
    @cython.locals(job=Job, path=tuple, sent=Transaction, fabric=Fabric)
    cpdef _send(self, _ChunkMsg chunk_msg, double head, double tail)
    cdef _atomic(self, msg, tuple path, _ChunkMsg chunk_msg)
    @cython.locals(nbytes=cython.Py_ssize_t, extra=cython.Py_ssize_t, chunk=PushChunk, fabric=Fabric, regions=tuple,
                   out=Wire)
    cdef _push(self, _ChunkMsg chunk_msg, Push push, double head, double tail)
    cdef bint _inside(self, DmaOrder order) except -1
    @cython.locals(push=Push, write=Landing, fabric=Fabric, path=tuple)
    cdef _land(self, PushChunk chunk)
    cpdef _written(self, Landing write)
    @cython.locals(note=Arrived, now=double)
    cdef _landed(self, Push push, Py_ssize_t nbytes, double end)
    cpdef _tell(self, Arrived note)
    @cython.locals(end=double, taken=double, fabric=Fabric, trips=Trips)
    cpdef answered(self, _ChunkMsg chunk_msg, Transaction sent)
    cpdef _empty(self, _ChunkMsg chunk_msg)
    @cython.locals(job=Job, channel=DmaChannel)
    cpdef _end(self, _ChunkMsg chunk_msg, double end)
    @cython.locals(job=Job, now=double, asked=MsgBase, trips=Trips)
    cpdef _finish(self, _ChunkMsg chunk_msg)
