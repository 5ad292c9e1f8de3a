cimport cython
from kernbench_core.kernel.commands cimport KernelCommand
from kernbench_core.kernel.compute_commands cimport address_of
from kernbench_core.kernel.pe_state cimport PeState
from kernbench_core.kernel.steps cimport PathStep
from kernbench_core.oplog.description cimport Access, OpPattern
from kernbench_core.values.region cimport Region
from kernbench_core.values.value cimport AssemblyValue, LoadedValue, Part, Value

cdef class QueueCommand(KernelCommand):
    cdef public object channel
    cdef public Value value
    cdef public Region local
    cdef public Py_ssize_t total
    @cython.locals(value=Value, pattern=OpPattern)
    cpdef _describe(self, str name, Access source, Access to, peer, bint copied)

cdef class SendCmd(QueueCommand):
    cdef public object to
    cpdef at_issue(self, PeState state, double now)
    cpdef describe(self)

cdef class RecvCmd(QueueCommand):
    cdef public object peers, slot
    cdef public tuple sources
    cdef public SendCmd sent
    cdef public Access source
    cpdef receive(self, SendCmd sent, Access source)
    cpdef fits(self, SendCmd sent)
    @cython.locals(sent=SendCmd, value=LoadedValue)
    cpdef land(self, double now)
    @cython.locals(sent=SendCmd)
    cpdef PathStep _step(self, PeState state)
    cpdef describe(self)

cpdef Value received(Value sent, Value tile)
