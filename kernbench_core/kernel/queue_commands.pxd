from kernbench_core.kernel.commands cimport KernelCommand
from kernbench_core.oplog.description cimport Access
from kernbench_core.values.region cimport Region

cdef class QueueCommand(KernelCommand):
    cdef public object channel, value
    cdef public Region local
    cdef public Py_ssize_t total
    cpdef _describe(self, str name, Access source, Access to, peer, bint copied)

cdef class SendCmd(QueueCommand):
    cdef public object to
    cpdef at_issue(self, state, double now)
    cpdef describe(self)

cdef class RecvCmd(QueueCommand):
    cdef public object peers, slot
    cdef public tuple sources
    cdef public SendCmd sent
    cdef public Access source
    cpdef receive(self, SendCmd sent, Access source)
    cpdef fits(self, SendCmd sent)
    cpdef land(self, double now)
    cpdef describe(self)
