cimport cython
from kernbench_builtin.components.queues.ends cimport Incoming, Outgoing
from kernbench_builtin.components.queues.messages cimport Arrived, Credit, Fetch, Push, TransferProgress
from kernbench_core.component cimport ComponentBase
from kernbench_core.kernel.queue_commands cimport QueueCommand, RecvCmd, SendCmd
from kernbench_builtin.components.queues.rings cimport Queue
from kernbench_core.messages cimport MsgBase

cdef class PeIpcq(ComponentBase):
    cdef public object _queues, _memory, _hazards, _anybody
    cdef public double _overhead, _free
    cdef public Py_ssize_t _metadata_bytes, _credit_bytes, _turn
    cdef public str _prefix
    cdef public tuple _to_dma
    cdef public dict _outgoing, _incoming, _last_to, _last_from
    cpdef receive(self, msg)
    @cython.locals(now=double, start=double, out=double)
    cpdef double _look(self) except? -1
    @cython.locals(now=double)
    cpdef _emit(self, MsgBase msg, double out)
    @cython.locals(command=QueueCommand, start=double)
    cpdef _begin(self, TransferProgress progress, double out)
    @cython.locals(command=QueueCommand)
    cpdef _finish(self, TransferProgress progress, double out)
    @cython.locals(outgoing=Outgoing)
    cpdef _send(self, SendCmd command, double out)
    @cython.locals(progress=TransferProgress, nbytes=cython.Py_ssize_t, push=Push, queue=Queue)
    cpdef _pump(self, Outgoing outgoing, double out)
    cpdef _pushed(self, Push push, double out)
    @cython.locals(outgoing=Outgoing, queue=Queue)
    cpdef _credit(self, Credit credit, double out)
    @cython.locals(progress=TransferProgress)
    cpdef _recv(self, RecvCmd command, double out)
    cpdef _give_turn(self, Incoming chosen, TransferProgress progress, double out)
    @cython.locals(found=Incoming)
    cpdef Incoming _incoming_of(self, queue)
    @cython.locals(incoming=Incoming, found=Incoming)
    cpdef Incoming _from(self, source, RecvCmd command)
    @cython.locals(push=Push, incoming=Incoming)
    cpdef _arrived(self, Arrived note, double out)
    @cython.locals(progress=TransferProgress, command=RecvCmd)
    cpdef _offer(self, Incoming incoming, double out)
    @cython.locals(progress=TransferProgress, push=Push, last=bint, command=RecvCmd)
    cpdef _match(self, Incoming incoming, double out)
    @cython.locals(command=RecvCmd, sent=SendCmd, queue=Queue)
    cpdef _take(self, Incoming incoming, TransferProgress progress, Push push, bint whole, double out)
    @cython.locals(push=Push, progress=TransferProgress, incoming=Incoming)
    cpdef _fetched(self, Fetch fetch, double out)
    @cython.locals(credit=Credit, queue=Queue)
    cpdef _give_back(self, Incoming incoming, Py_ssize_t index, double out)
