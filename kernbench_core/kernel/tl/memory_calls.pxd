cimport cython
from kernbench_core.callsite cimport call_site
from kernbench_core.kernel.dma_commands cimport DmaReadCmd, DmaWriteCmd
from kernbench_core.kernel.pe_state cimport PeState
from kernbench_core.kernel.tl.dispatch cimport Dispatcher
from kernbench_core.kernel.tl.tensor cimport Tile
from kernbench_core.memory.scratchpad cimport TcmBlock
from kernbench_core.values.dtypes cimport itemsize

@cython.locals(state=PeState, shape=tuple, count=cython.Py_ssize_t, block=TcmBlock, command=DmaReadCmd)
cdef _brought(Dispatcher tl, transfer, tensor, fill, site, bint wait)
@cython.locals(command=DmaWriteCmd)
cdef _stored(Dispatcher tl, transfer, Tile tile, tensor, site)
