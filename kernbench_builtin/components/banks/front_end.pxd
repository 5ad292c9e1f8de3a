cimport cython
from kernbench_builtin.components.banks.channel cimport BankChannel
from kernbench_builtin.components.banks.mapping cimport BankMapping
from kernbench_builtin.components.banks.pseudo_channel cimport PseudoChannel
from kernbench_builtin.components.banks.queues cimport Burst, BurstPlace, BurstQueue, BankLine, RequestProgress, Requests, Side
from kernbench_core.component cimport ComponentBase
from kernbench_core.events.queue cimport EventQueue
from kernbench_core.messages cimport MsgBase, Transaction
from kernbench_core.wire cimport Wire

cdef int READ, WRITE

cdef class FrontEnd

cdef class BankedMemory(ComponentBase):
    cdef public double _overhead
    cdef public FrontEnd front
    cdef public object atomics
    cpdef overhead(self, MsgBase msg)
    @cython.locals(request=Transaction)
    cpdef emit(self, MsgBase msg, double head, double tail)
    cpdef taken_in(self, Transaction msg, double tail, double now)
    @cython.locals(request=Transaction, head=double, tail=double, now=double)
    cpdef on_internal(self, MsgBase msg)
    cpdef respond(self, MsgBase msg, double now)

cdef class FrontEnd(Requests):
    cdef BankedMemory _memory
    cdef EventQueue _time
    cdef BankMapping _mapping
    cdef object _waiting
    cdef Py_ssize_t _burst_bytes, _seq, _room
    cdef double _clock, _to_data, _burst_takes
    cdef list _places, _channels, _channel_of
    cpdef join(self, BankChannel channel, list places)
    @cython.locals(runs=list, job=RequestProgress, channel=BankChannel)
    cpdef admit(self, Transaction msg, double head, double tail)
    @cython.locals(msg=Transaction, kind=int, index=Py_ssize_t, bank=Py_ssize_t, row=cython.Py_ssize_t, place=PseudoChannel, line=BankLine, burst=Burst, queue=BurstQueue, side=Side, stuck=bint, before=double, at=double)
    cdef _dispatch(self, RequestProgress job, double now, BurstQueue here)
    @cython.locals(head=double, tail=double, pace=double, at=double, seq=cython.Py_ssize_t, number=cython.Py_ssize_t, lines=list, place=PseudoChannel)
    cdef dict _by_place(self, RequestProgress job, int kind, double now)
    @cython.locals(now=double)
    cdef _wake(self, BankChannel channel, BurstQueue queue, double at)
    cpdef settled(self, BurstPlace place, RequestProgress job, Py_ssize_t number, double start, double end, double opening)
    @cython.locals(msg=Transaction, shares=tuple, last=PseudoChannel, own=double, rest=double, wire=Wire, now=double)
    cdef _answer_read(self, RequestProgress job, BurstPlace place, double head, double end, double opening)
    @cython.locals(job=RequestProgress, channel=BankChannel, here=BurstQueue)
    cpdef taken(self, Burst burst, double now)
