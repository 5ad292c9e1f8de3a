cimport cython
from kernbench_builtin.components.banks.pseudo_channel cimport PseudoChannel
from kernbench_builtin.components.banks.queues cimport Burst, BurstQueue, Side, whole_clocks
from kernbench_core.events.queue cimport EventQueue, Scheduled

cdef int ALL, DELIVERY, NONE
cdef bint COMPILED
cdef double NEVER

cdef class _Wake(Scheduled):
    cdef public double time

cdef class BankChannel:
    cdef public bint hurried
    cdef EventQueue _time
    cdef list _places, _queues, _pending, _spare
    cdef double _clock, _beat, _row_free, _settled, _wake_at, _due, _pre_takes
    cdef tuple _woken
    @cython.locals(rest=double)
    cpdef wake(self, double time, BurstQueue queue)
    @cython.locals(queue=BurstQueue)
    cpdef hurry(self, double time)
    @cython.locals(before=double, queue=BurstQueue)
    cpdef let_in_before(self, double time)
    @cython.locals(event=_Wake)
    cdef _schedule(self, double time)
    @cython.locals(queue=EventQueue)
    cdef _push(self, _Wake event, double time)
    @cython.locals(now=double, time=double, queue=EventQueue)
    cpdef _on_wake(self, _Wake event)
    @cython.locals(row_free=double, due=bint, row_at=double, place=PseudoChannel, time=double, turn=Side)
    cdef double _next(self, BurstQueue queue, double now) except? -1
    @cython.locals(place=PseudoChannel)
    cdef double _before_refresh(self, double time, double now) except? -1
    @cython.locals(place=PseudoChannel, first=double, found=double, time=double)
    cdef double _next_maintenance(self, double now) except? -1
    @cython.locals(column=Burst, columns=PseudoChannel, bus=bint, due=bint, place=PseudoChannel, queue=BurstQueue, reads=Side, blocked=cython.Py_ssize_t, burst=Burst, time=double, following=double)
    cdef double _give(self, double now) except? -1
    @cython.locals(row=Burst, rows=PseudoChannel, place=PseudoChannel, blocked=cython.Py_ssize_t, burst=Burst)
    cdef _give_row(self, double now)
    @cython.locals(beat=double)
    cdef bint _goes_before(self, PseudoChannel place, Burst burst, PseudoChannel other, Burst its, double now) except -1
    @cython.locals(place=PseudoChannel, ahead=double)
    cdef bint _is_settled(self, double now) except -1
    @cython.locals(queue=BurstQueue)
    cdef _maintain(self, double now)
    @cython.locals(place=PseudoChannel)
    cdef _refresh(self, double now)
    @cython.locals(place=PseudoChannel, following=double, time=double)
    cdef _catch_up(self, double now)
    @cython.locals(place=PseudoChannel)
    cdef _note_due(self)
