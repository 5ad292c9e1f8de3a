cimport cython
from kernbench_core.kernel.pe_state cimport PeState
from kernbench_core.kernel.steps cimport Step
from kernbench_core.memory.scratchpad cimport TcmBlock
from kernbench_core.messages cimport Command

cdef class KernelCommand(Command):
    cdef readonly Step because
    cdef public Step step
    cdef readonly double sent_ns
    cdef public object after, error
    cdef public PeState state
    cdef public bint blocking, queued
    cdef public KernelCommand needs
    cdef public tuple blocks, memory_uses, scratch_uses, uses
    cdef _begin(self, op_id, str call, site, tuple blocks, Py_ssize_t nbytes)
    @cython.locals(block=TcmBlock)
    cpdef at_issue(self, PeState state, double now)
    cpdef let_go(self, Step step, double now)
    cpdef land(self, double now)
    @cython.locals(state=PeState)
    cpdef answered(self)
    @cython.locals(before=Step, unit=Step, begin=double)
    cpdef Step _step(self, PeState state)
    @cython.locals(block=TcmBlock)
    cdef _give_up_blocks(self)
