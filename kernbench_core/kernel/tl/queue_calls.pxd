cimport cython
from kernbench_core.callsite cimport call_site
from kernbench_core.kernel.pe_state cimport PeState
from kernbench_core.kernel.queue_commands cimport RecvCmd, SendCmd
from kernbench_core.kernel.tl.dispatch cimport Dispatcher
from kernbench_core.kernel.tl.tensor cimport Handle, Tile
from kernbench_core.memory.scratchpad cimport TcmBlock
from kernbench_core.values.dtypes cimport itemsize

@cython.locals(state=PeState)
cdef _peer(Dispatcher tl, launch, to, call, site)
@cython.locals(command=SendCmd)
cdef _sent(Dispatcher tl, Tile tile, launch, to, site, bint wait)
@cython.locals(extents=tuple, nbytes=cython.Py_ssize_t, block=TcmBlock, command=RecvCmd)
cdef tuple _received(Dispatcher tl, launch, str call, site, shape, dtype, tuple sources, bint copy, bint wait)
cdef tuple _extents(shape, call, site)
