cimport cython
from kernbench_builtin.components.banks.queues cimport Bank, Burst, BurstPlace, BurstQueue, Gate, BankLine, Requests, RequestProgress, Side
from kernbench_builtin.components.banks.waiting cimport WaitingBursts
from kernbench_core.wire cimport Wire

cdef int ALL, CLOSED, READ, WRITE
cdef double NEVER

cdef class PseudoChannel(WaitingBursts):
    cdef public Wire wire
    cdef public object timing
    cdef Py_ssize_t _burst_bytes
    cdef bint _per_bank
    cdef Requests _requests
    cdef double _act_to_ref
    cdef object _recent
    cdef Py_ssize_t _ref_bank
    cdef double[2] _to_data, _to_other, _to_precharge, _to_column
    cdef double _same_group, _beat, _in_group, _burst_takes, _ras, _rc, _rp, _faw, _rrd, _rrd_group, _act_takes, _pre_takes, _apart, _ppd
    cdef list _of_stacks
    cdef public double next_ref
    cdef public Py_ssize_t hits, misses, conflicts, refreshes
    cdef public list trace
    cpdef _note_times(self, t)
    @cython.locals(bank=Bank)
    cpdef Py_ssize_t blocked(self) except? -9
    @cython.locals(queue=BurstQueue, turn=Side, mode=int, beat=double, to_data=double, end=double, ahead=cython.Py_ssize_t, job=RequestProgress, number=cython.Py_ssize_t, longest=double, start=double, given=cython.Py_ssize_t, time=double, following=Burst, after=Burst, opening=double)
    cpdef give_columns(self, Burst burst, double now)
    @cython.locals(burst=Burst, line=BankLine)
    cdef Burst _following(self, Side turn, double time)
    @cython.locals(line=BankLine, bank=Bank, free=double, reads=Gate, opening=double, row=cython.Py_ssize_t, rows=dict, oldest=Burst, hit=Burst, left=cython.Py_ssize_t, mine=BankLine)
    cdef double _take(self, int mode, Burst burst, double time) except? -1
    cdef _hold(self, Bank bank, Burst burst, double until)
    @cython.locals(gate=Gate)
    cdef _hold_stacks(self, Py_ssize_t bank, double until)
    @cython.locals(rest=double, gate=double, of_other=double, took=double, following=double, burst=Burst, line=BankLine, time=double)
    cdef _after_columns(self, int mode, double last, Py_ssize_t number)
    @cython.locals(bank=Bank)
    cpdef double give_row(self, Burst burst, double now) except? -1
    @cython.locals(side=Side, line=BankLine, bank=Bank, number=Py_ssize_t, reads=list, writes=list, each=BankLine, act=double, of_four=double)
    cdef _activate(self, Burst burst, double now)
    @cython.locals(number=Py_ssize_t, free=double, reads=list, writes=list, line=BankLine)
    cdef _close(self, Bank bank, double now)
    @cython.locals(due=double, bank=Bank, banks=list)
    cpdef double maintenance_at(self, double now) except? -1
    cdef list _of_refresh(self)
    @cython.locals(bank=Bank)
    cpdef maintain(self, double now)
    @cython.locals(bank=Bank)
    cpdef skip_refreshes(self, double now)
    cdef _count_refresh(self, Py_ssize_t number)
    cdef _note(self, double now, str what, Bank bank)
