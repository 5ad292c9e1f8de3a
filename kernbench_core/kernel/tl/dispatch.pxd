cimport cython
from kernbench_core.callsite cimport call_site
from kernbench_core.kernel.bridge cimport Bridge
from kernbench_core.kernel.commands cimport KernelCommand
from kernbench_core.kernel.compute_commands cimport called
from kernbench_core.kernel.pe_state cimport PeState
from kernbench_core.kernel.tl.tensor cimport Tile
from kernbench_core.memory.scratchpad cimport TcmBlock, TcmTable
from kernbench_core.values.dtypes cimport is_float, itemsize
from kernbench_core.values.value cimport Value

cdef class Dispatcher:
    cdef public PeState _state
    cdef public Bridge _bridge
    cdef public dict _in_flight, _immediates
    cdef public Py_ssize_t _prune_at
    cdef public object _first_told
    @cython.locals(tile=Tile)
    cdef _operand(self, thing, dtype, op)
    cdef _have(self, Tile tile, op)
    cpdef check_operand(self, thing, op)
    cdef _issue(self, KernelCommand command, bint wait)
    @cython.locals(state=PeState)
    cdef tuple _next_id(self)
    cpdef bint _determines(self, value) except -1
    @cython.locals(block=TcmBlock)
    cdef _compute(self, op, tuple things, tuple shape, str dtype, operand_dtype, extra, bint reduce)
    cdef Value _result(self, op, tuple reads, op_id, tuple shape, dtype, params)

cdef _size(tuple shape, dtype)
@cython.locals(tile=Tile)
cdef tuple _blocks(things, out)
