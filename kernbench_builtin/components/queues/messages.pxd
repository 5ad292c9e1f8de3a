cimport cython
from kernbench_core.fabric cimport Fabric
from kernbench_builtin.components.queues.rings cimport Queue
from kernbench_core.kernel.queue_commands cimport QueueCommand, SendCmd
from kernbench_core.messages cimport MsgBase, Transaction

cdef class QueueMsg(MsgBase):
    cpdef _begin(self, Py_ssize_t nbytes, tuple path)

cdef class TransferProgress:
    cdef public QueueCommand command
    cdef public Py_ssize_t total, begun, moved
    cdef public double began
    cpdef bint done(self, Py_ssize_t nbytes) except? -1

cdef class DmaOrder(QueueMsg):
    cdef public TransferProgress progress
    cdef public Queue queue
    cdef public tuple regions
    cdef public Py_ssize_t index, total
    @cython.locals(known=tuple)
    cpdef tuple cut(self, Fabric fabric)

cdef class Push(DmaOrder):
    cdef public SendCmd send
    cdef public Py_ssize_t number, offset, metadata_bytes, sent, landed
    cdef public tuple route
    cdef public double came, ends

cdef class Fetch(DmaOrder):
    cdef public Push push
    cdef public object incoming

cdef class PushChunk(QueueMsg):
    cdef public Push push
    cdef public tuple regions
    cdef public Py_ssize_t total

cdef class Landing(Transaction):
    cdef public Push push

cdef class Arrived(QueueMsg):
    cdef public Push push

cdef class Credit(QueueMsg):
    cdef public Queue queue
    cdef public Py_ssize_t given_back
