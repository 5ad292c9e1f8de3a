from kernbench_core.messages cimport Command
from kernbench_core.values.region cimport Region

cdef class KernelCommand(Command):
    cdef public object after, error, state
    cdef public bint blocking
    cdef public tuple blocks, uses
    cpdef at_issue(self, state, double now)
    cpdef land(self, double now)
    cpdef answered(self)
    cdef _give_up_blocks(self)

cdef class Operand:
    cdef public object value
    cdef public Region region

cdef class ComputeCommand(KernelCommand):
    cdef public Region out
    cdef public tuple reads
    cdef public object value

cdef class GemmCmd(ComputeCommand):
    cdef public object m, k, n, dtype_in
    cpdef describe(self)

cdef class MathCmd(ComputeCommand):
    cdef public object op, extra
    cdef public bint reduce
    cpdef describe(self)
