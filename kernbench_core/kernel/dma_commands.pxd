cimport cython
from kernbench_core.kernel.commands cimport KernelCommand
from kernbench_core.kernel.compute_commands cimport address_of
from kernbench_core.kernel.pe_state cimport PeState
from kernbench_core.memory.scratchpad cimport TcmBlock
from kernbench_core.oplog.description cimport Access, OpPattern
from kernbench_core.values.memory_store cimport MemoryStore
from kernbench_core.values.region cimport Region
from kernbench_core.values.value cimport AssemblyValue, LoadedValue, Part, ResultValue, Value

cdef class DmaCommand(KernelCommand):
    cdef public tuple regions
    cdef public Region local
    cdef public object tensor
    cdef public Value value
    cdef public Py_ssize_t total
    @cython.locals(value=Value, pattern=OpPattern)
    cpdef _copy(self, name, Access read, Access write)

cdef class DmaReadCmd(DmaCommand):
    cdef public object _fill, _transfer
    cdef public LoadedValue _source
    @cython.locals(source=LoadedValue, store=MemoryStore)
    cpdef land(self, double now)
    cpdef describe(self)

cdef class DmaWriteCmd(DmaCommand):
    cdef public Value stored
    cpdef at_issue(self, PeState state, double now)
    cpdef describe(self)
