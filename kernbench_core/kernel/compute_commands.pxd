cimport cython
from kernbench_core.kernel.commands cimport KernelCommand
from kernbench_core.oplog.description cimport Access, OpPattern
from kernbench_core.values.region cimport Region

cdef class Operand:
    cdef public object value
    cdef public Region region

cdef class ComputeCommand(KernelCommand):
    cdef public Region out
    cdef public tuple reads
    cdef public object value
    @cython.locals(read=Operand)
    cdef _compute(self, op_id, str call, site, tuple blocks, tuple reads, value)

cdef class GemmCmd(ComputeCommand):
    cdef public object m, k, n, dtype_in
    @cython.locals(pattern=OpPattern, a=Operand, b=Operand, read=Operand)
    cpdef describe(self)

cdef class MathCmd(ComputeCommand):
    cdef public object op, extra
    cdef public bint reduce
    cdef OpPattern _pattern
    @cython.locals(pattern=OpPattern, read=Operand)
    cpdef describe(self)
    @cython.locals(pattern=OpPattern, read=Operand)
    cdef OpPattern _found_pattern(self)

cpdef address_of(Access access)
cpdef str called(op)
