cimport cython
from kernbench_core.messages cimport Transaction

cdef int CLOSED, READ, WRITE
cdef double NEVER

cdef class BurstPlace
cdef class BurstQueue
cdef class Burst

cdef class Gate:
    cdef public double at

cdef class Bank:
    cdef public Py_ssize_t number, open
    cdef public double activate_at, precharge_at, held, opening
    cdef public Burst opener
    cdef public Gate gate
    cdef public bint conflict

cdef class BankLine:
    cdef public BurstPlace place
    cdef public int kind
    cdef public Bank bank
    cdef public Py_ssize_t number
    cdef public double column_at
    cdef public Gate gate
    cdef public dict rows
    cdef public object waiting
    cdef public Burst hit
    cdef public list among
    cdef public tuple entry, closing
    cpdef move(self, list to, Burst burst)
    cpdef leave(self)
    @cython.locals(oldest=Burst)
    cpdef wait_to_close(self, list among)
    cpdef stop_closing(self, list among)
    @cython.locals(burst=Burst)
    cpdef Burst find_hit(self, Py_ssize_t row)

@cython.freelist(256)
cdef class RequestProgress:
    cdef public Transaction msg
    cdef public list runs
    cdef public double first, tail, head, end, opening
    cdef public Py_ssize_t entering, waiting
    cdef public bint alone
    cdef public BurstPlace last

@cython.freelist(256)
cdef class Burst:
    cdef public double at
    cdef public BankLine line
    cdef public Py_ssize_t row, seq
    cdef public RequestProgress job
    cdef public bint issued, last

cdef class Requests:
    cpdef taken(self, Burst burst, double now)
    cpdef settled(self, BurstPlace place, RequestProgress job, Py_ssize_t number, double start, double end, double opening)

cdef class BurstPlace:
    cdef public BurstQueue queue
    cdef public double last_col
    cpdef take_in(self, Burst burst)
    cpdef double may_come(self, BankLine line, Py_ssize_t row) except? -1
    cpdef look_again(self)

@cython.locals(rest=double)
cpdef double whole_clocks(double time, double clock) except? -1

cdef class Side:
    cdef public int kind
    cdef public Py_ssize_t count, depth
    cdef public object arriving, order, leaving
    cdef public double left
    cpdef bint is_empty(self) except -1
    cpdef bint is_stuck(self) except -1
    cpdef Py_ssize_t room(self) except? -1
    @cython.locals(free=double)
    cpdef double comes(self, Burst burst, double arrival, Py_ssize_t slot, double clock) except? -1

cdef class BurstQueue:
    cdef public Py_ssize_t drain_from, drain_to
    cdef public list places
    cdef public tuple sides
    cdef public Side reads, writes, turn
    cdef public bint only_reads, is_alone
    cdef public double next, looked
    cdef double _clock
    cdef Requests _requests
    cpdef add(self, int kind, list bursts)
    @cython.locals(reads=Side)
    cpdef look(self, double now)
    @cython.locals(place=BurstPlace)
    cdef _turn(self)
    cpdef admit(self, double now)
    @cython.locals(room=cython.Py_ssize_t, before=cython.Py_ssize_t, burst=Burst)
    cdef bint _admit(self, Side side, double now) except -1
    @cython.locals(reads=bint, writes=cython.Py_ssize_t)
    cpdef bint turns(self) except -1
    @cython.locals(before=double, first=Burst)
    cdef bint _rests(self, double now) except -1
    @cython.locals(writes=Side)
    cpdef bint certain(self) except -1
    @cython.locals(turn=Side, other=Side)
    cpdef double next_change(self, double now, double command, bint hurried) except? -1
    @cython.locals(reads=Side, clock=double, writes=cython.Py_ssize_t, needed=double, answers=bint, arrival=double, number=cython.Py_ssize_t, room=cython.Py_ssize_t, burst=Burst)
    cdef double _next_turn(self, Side side, double now, double before, bint hurried) except? -1
    @cython.locals(answers=bint, clock=double, arrival=double, number=cython.Py_ssize_t, room=cython.Py_ssize_t, burst=Burst, line=BankLine, row=cython.Py_ssize_t, time=double)
    cdef double _next_arrival(self, Side side, double now, double before, bint hurried) except? -1
