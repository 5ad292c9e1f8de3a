cimport cython
from kernbench_core.memory.allocator cimport FirstFit
from kernbench_core.values.region cimport Region

cdef class Birth:
    cdef public object op, shape, dtype, site

cdef class TcmBlock:
    cdef public TcmTable _table
    cdef public Py_ssize_t address, offset, users
    cdef public Region region
    cdef public Birth birth
    cdef public object freed_at
    cpdef free(self, site)
    cpdef refuse(self, use, site)
    cpdef done(self)
    @cython.locals(table=TcmTable)
    cpdef _release(self)

cdef class TcmTable:
    cdef readonly object pe
    cdef readonly FirstFit fit
    cdef list _askers, _watchers, _mourners
    cpdef room(self, Py_ssize_t nbytes, Py_ssize_t most)
    cpdef give_back(self, Py_ssize_t address)
    cpdef allocate(self, op, shape, dtype, nbytes, site)
    @cython.locals(birth=Birth, block=TcmBlock)
    cpdef find(self, op, shape, dtype, nbytes, site)
