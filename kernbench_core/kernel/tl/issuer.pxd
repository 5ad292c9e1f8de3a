cimport cython
from kernbench_core.callsite cimport call_site
from kernbench_core.kernel.bridge cimport Bridge
from kernbench_core.kernel.commands cimport KernelCommand
from kernbench_core.kernel.pe_state cimport PeState
from kernbench_core.values.dtypes cimport is_float

cdef class Issuer:
    cdef public PeState _state
    cdef public Bridge _bridge
    cdef public dict _in_flight, _immediates
    cdef public list _queued
    cdef public Py_ssize_t _prune_at
    cdef public object _first_told, _launch
    cdef _issue(self, KernelCommand command, bint wait)
    cpdef _wait_for_others(self, KernelCommand command)
    cpdef _keep_order(self, KernelCommand command)
    @cython.locals(state=PeState)
    cpdef tuple op_id(self)
    cpdef bint _determines(self, value) except -1
