cimport cython
from kernbench_core.values.region cimport Region as TypedRegion

cdef class BankMapping:
    cdef readonly Py_ssize_t channels, interleave_bytes, burst_bytes, banks, bank_groups, row_bytes, columns
    cdef readonly bint group_interleave, bank_hash, channel_hash, row_first
    cdef Py_ssize_t _per_group
    cdef object _blocks
    @cython.locals(found=list, block=cython.Py_ssize_t, burst=cython.Py_ssize_t, region=TypedRegion, moved_to=cython.Py_ssize_t, number=cython.Py_ssize_t, first=cython.Py_ssize_t, at=cython.Py_ssize_t, end=cython.Py_ssize_t, stop=cython.Py_ssize_t)
    cpdef list runs(self, tuple regions)
    @cython.locals(address=cython.Py_ssize_t, places=list)
    cpdef tuple _bursts(self, Py_ssize_t at, Py_ssize_t stop)
    cpdef tuple _block(self, Py_ssize_t number)
    @cython.locals(block=cython.Py_ssize_t, stripe=cython.Py_ssize_t, channel=cython.Py_ssize_t, line=cython.Py_ssize_t, group=cython.Py_ssize_t, of_group=cython.Py_ssize_t, row=cython.Py_ssize_t, bank=cython.Py_ssize_t)
    cpdef tuple split(self, Py_ssize_t address)
    cpdef locate(self, address)
    cpdef address(self, place)
    cpdef tuple _channel_line(self, address)
