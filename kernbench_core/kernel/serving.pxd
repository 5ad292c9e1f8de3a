cimport cython
from kernbench_core.environment cimport Signal
from kernbench_core.events.queue cimport EventQueue, Scheduled
from kernbench_core.kernel.bridge cimport Bridge
from kernbench_core.kernel.commands cimport KernelCommand
from kernbench_core.kernel.pe_state cimport PeState
from kernbench_core.memory.hazards cimport Hazards

cdef class Tick(Scheduled):
    pass

cdef class Serving:
    cdef public PeState _state
    cdef public Hazards _hazards
    cdef public object _env, _held, _process, _request, _send, raised, place
    cdef public EventQueue _queue
    cdef public Bridge _bridge
    cdef public double _overhead, since
    cdef public Py_ssize_t _at
    cdef public tuple waiting_for
    cdef public Signal over
    cdef Tick _tick
    cpdef start(self)
    cpdef note_wait(self, tuple commands)
    cpdef issue_now(self, _)
    cpdef go_on(self, _)
    cdef _resume(self, int stage)
    cdef _serve(self, request, int stage)
    @cython.locals(queue=EventQueue, issued=KernelCommand)
    cdef bint _answer(self, request, int stage) except -1
    cdef bint _is_held(self, KernelCommand command) except -1
    @cython.locals(signal=Signal)
    cdef bint _complete(self) except -1
