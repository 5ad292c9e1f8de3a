cimport cython
from kernbench_core.events.queue cimport EventQueue, step
from kernbench_core.messages cimport MsgBase
from kernbench_core.reporting cimport Reported

cdef class Works(Reported):
    cdef public bint _computes, _picks, _splits
    cdef public list _idle
    cdef public str id
    cdef public object rates
    cpdef emit(self, MsgBase msg, double head, double tail)
    cpdef take_answer(self, MsgBase msg)
    cpdef _on_process_start(self, MsgBase msg, double t)
    cpdef _on_process_end(self, MsgBase msg, double t)
    @cython.locals(worker=Worker)
    cpdef _arrive_run(self, MsgBase msg)
    @cython.locals(worker=Worker)
    cdef _give_to_worker(self, MsgBase msg)
    @cython.locals(msg=MsgBase)
    cpdef begin_service(self, Worker worker)
    @cython.locals(msg=MsgBase, start=double, tail=double, end=double, service=double, waited=double)
    cpdef end_service(self, Worker worker)

cdef class Worker:
    cdef public Works component
    cdef public MsgBase msg
    cdef public double start, tail
    cdef public object steps, target, process
    cdef public object _resume
    cdef EventQueue _clock
    @cython.locals(component=Works, clock=EventQueue)
    cpdef resume(self, event)
    cdef _fail(self, error)

cdef _own_copy(event)
cdef _thrown(steps, event)
