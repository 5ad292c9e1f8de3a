cimport cython
from kernbench_core.callsite cimport call_site
from kernbench_core.kernel.compute_commands cimport called
from kernbench_core.kernel.tl.issuer cimport Issuer
from kernbench_core.kernel.tl.tensor cimport Tile
from kernbench_core.memory.scratchpad cimport TcmBlock, TcmTable
from kernbench_core.values.dtypes cimport is_float, itemsize
from kernbench_core.values.value cimport Value

cdef class Dispatcher(Issuer):
    @cython.locals(tile=Tile)
    cpdef operand(self, thing, dtype, op)
    cdef _have(self, Tile tile, op)
    cpdef check_operand(self, thing, op)
    cdef Value _result(self, op, tuple reads, op_id, tuple shape, dtype, params)

cdef _size(tuple shape, dtype)
@cython.locals(tile=Tile)
cdef tuple _blocks(things, out)
