cimport cython
from kernbench_core.kernel.pe_state cimport PeState
from kernbench_core.kernel.steps cimport PathStep
from kernbench_core.memory.scratchpad cimport TcmBlock
from kernbench_core.messages cimport Command

cdef class KernelCommand(Command):
    cdef readonly PathStep because
    cdef public PathStep step
    cdef readonly double sent_ns
    cdef public object after, error
    cdef public PeState state
    cdef public bint blocking, queued
    cdef public KernelCommand needs
    cdef public tuple blocks, memory_uses, scratch_uses, uses
    cdef _begin(self, op_id, str call, site, tuple blocks, Py_ssize_t nbytes)
    @cython.locals(block=TcmBlock)
    cpdef at_issue(self, PeState state, double now)
    cpdef let_go(self, PathStep step, double now)
    cpdef land(self, double now)
    @cython.locals(state=PeState)
    cpdef answered(self)
    @cython.locals(before=PathStep, unit=PathStep, begin=double)
    cpdef PathStep _step(self, PeState state)
    @cython.locals(block=TcmBlock)
    cdef _give_up_blocks(self)
