cimport cython
from kernbench_builtin.components.banks.queues cimport Bank, Burst, BurstPlace, Gate, BankLine

cdef int ALL, CLOSED, NONE, READ, WRITE
cdef double NEVER

cdef list _openers_or_without(Py_ssize_t bank, list waiting)

@cython.locals(each=tuple)
cdef list _without(Py_ssize_t bank, list waiting)

cdef class WaitingBursts(BurstPlace):
    cdef public list banks
    cdef public tuple lines
    cdef list _mine, _for_column, _for_activation, _for_precharge
    cdef double[2] _col
    cdef double _act, _pre, _opens_until, _closes_until, _after_activation, _after_precharge
    cdef public double column_at, activate_at, precharge_at
    cdef public Py_ssize_t openers
    cdef Burst _opens, _closes
    cpdef list _lines(self, int kind, groups)
    @cython.locals(line=BankLine, row=cython.Py_ssize_t, rows=dict, others=cython.Py_ssize_t)
    cpdef take_in(self, Burst burst)
    @cython.locals(bank=Bank, row=cython.Py_ssize_t, oldest=Burst)
    cdef _sort(self, BankLine line)
    @cython.locals(time=double, rest=double, of_group=double)
    cdef _wants_column(self, BankLine line)
    cdef _wants_precharge(self, BankLine line, Bank bank)
    @cython.locals(time=double)
    cdef _note_precharge(self, Bank bank)
    @cython.locals(time=double, rest=double, of_group=double)
    cdef _wants_activation(self, BankLine line, Bank bank)
    @cython.locals(bank=Bank, time=double, rest=double, of_group=double)
    cpdef double may_come(self, BankLine line, Py_ssize_t row) except? -1
    @cython.locals(line=BankLine, lines=list, bank=Bank, opener=Burst)
    cpdef look_again(self)
    @cython.locals(burst=Burst, line=BankLine, time=double, rest=double, following=double)
    cpdef Burst column(self, double now, Py_ssize_t blocked)
    @cython.locals(opened=Burst, closed=Burst)
    cpdef Burst row(self, double now, Py_ssize_t blocked)
    @cython.locals(found=Burst, burst=Burst, bank=Bank, time=double, following=double)
    cdef Burst _activation(self, double now, Py_ssize_t blocked)
    @cython.locals(found=Burst, burst=Burst, time=double, following=double)
    cdef Burst _precharge(self, double now, Py_ssize_t blocked)
