cimport cython
from kernbench_core.environment cimport Signal
from kernbench_core.messages cimport MsgBase

cdef class TileStream:
    cdef readonly object command, home
    cdef readonly dict in_flight
    cdef public Py_ssize_t completed, staged_bytes
    cdef readonly Signal returned
    cdef dict _gates, _known
    cdef Py_ssize_t _summed
    cpdef StageFacts facts(self, stage)
    cpdef TileToken feed(self, plan, index)
    cpdef bint in_order(self, TileToken token) except -1
    @cython.locals(gate=StageGate, ready=TileToken, own_head=double, own_tail=double)
    cpdef leave(self, TileToken token, component, double head, double tail)
    cpdef complete(self, TileToken token)

cdef class StageFacts:
    cdef readonly object stage
    cdef readonly tuple numbers, regions
    cdef readonly object pattern

cdef class StageGate:
    cdef Py_ssize_t next
    cdef dict held

cdef class TileToken(MsgBase):
    cdef readonly TileStream stream
    cdef readonly StageFacts facts
    cdef readonly object command, plan
    cdef readonly Py_ssize_t index, stage_idx
    cdef public object stage, params, on_stage_end, on_taken_in
    cpdef bint advance(self) except -1
    cpdef taken_in(self)
    cpdef at_end(self, component, double head, double tail)
    cpdef go_on(self, component, double head, double tail)
    cpdef hop_to(self, destination, component, double head, double tail)
    cpdef queue_at(self, component, arrive, double head, tail=*)
    cpdef answered(self)
    cpdef describe(self)
