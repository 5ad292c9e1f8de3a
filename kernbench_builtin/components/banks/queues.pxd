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
    cdef public long long number, open
    cdef public double activate_at, precharge_at, opening
    cdef public Gate gate
    cdef public bint conflict

cdef class BankLine:
    cdef public BurstPlace place
    cdef public int kind, needs
    cdef public Bank bank
    cdef public long long number
    cdef public double column_at
    cdef public Gate gate
    cdef public dict rows
    cdef public object waiting
    cdef public Burst hit
    @cython.locals(burst=Burst)
    cpdef Burst find_hit(self, long long row)

@cython.freelist(256)
cdef class RequestProgress:
    cdef public Transaction msg
    cdef public list runs
    cdef public double first, tail, head, end, opening
    cdef public long long entering, waiting
    cdef public object last

@cython.freelist(256)
cdef class Burst:
    cdef public double at
    cdef public BankLine line
    cdef public long long row, seq
    cdef public RequestProgress job
    cdef public bint issued, last

cdef class Requests:
    cpdef taken(self, Burst burst, double now)
    cpdef settled(self, BurstPlace place, RequestProgress job, long long number, double start, double end, double opening)

cdef class BurstPlace:
    cdef public BurstQueue queue
    cdef public double last_col
    cpdef take_in(self, Burst burst)
    cpdef double may_come(self, BankLine line, long long row) except? -1
    cpdef look_again(self)

@cython.locals(rest=double)
cpdef double whole_clocks(double time, double clock) except? -1

cdef class BurstQueue:
    cdef public long long drain_from, drain_to
    cdef public list places
    cdef public int mode
    cdef public tuple ingress, order, leaving
    cdef public long long[2] count
    cdef long long[2] _depth
    cdef public double next, looked
    cdef double _clock
    cdef Requests _requests
    cpdef add(self, int kind, list bursts)
    cpdef add_one(self, int kind, Burst burst)
    cpdef bint is_stuck(self, int kind) except -1
    @cython.locals(leaving=tuple)
    cpdef look(self, double now)
    @cython.locals(place=BurstPlace)
    cdef _turn(self)
    cpdef admit(self, double now)
    @cython.locals(room=cython.longlong, before=cython.longlong, burst=Burst)
    cdef _admit(self, int kind, double now)
    @cython.locals(leaving=tuple, writes=cython.longlong)
    cpdef bint turns(self) except -1
    @cython.locals(before=double, first=Burst, place=BurstPlace)
    cdef bint _rests(self, double now) except -1
    cpdef bint certain(self, int kind) except -1
    @cython.locals(mode=int, other=int, ingress=tuple)
    cpdef double next_change(self, double now, double command, bint hurried) except? -1
    @cython.locals(leaving=tuple, writes=cython.longlong, needed=double, answers=bint, arrival=double, number=cython.longlong, room=cython.longlong, burst=Burst)
    cdef double _next_turn(self, int kind, double now, double before, bint hurried) except? -1
    @cython.locals(answers=bint, arrival=double, number=cython.longlong, room=cython.longlong, burst=Burst, line=BankLine, row=cython.longlong, time=double)
    cdef double _next_arrival(self, int kind, double now, double before, bint hurried) except? -1
    cdef long long _room(self, int kind) except? -1
    @cython.locals(free=double)
    cdef double _comes(self, Burst burst, double arrival, long long slot, leaving) except? -1
