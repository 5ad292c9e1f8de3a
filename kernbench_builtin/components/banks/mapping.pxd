cimport cython
from kernbench_core.values.region cimport Region as TypedRegion

cdef class BankMapping:
    cdef readonly long long channels, interleave_bytes, burst_bytes, banks, bank_groups, row_bytes, columns
    cdef readonly bint group_interleave, bank_hash, channel_hash, row_first
    cdef long long _per_group
    cdef object _blocks
    @cython.locals(found=list, block=cython.longlong, burst=cython.longlong, region=TypedRegion, moved_to=cython.longlong, number=cython.longlong, first=cython.longlong, at=cython.longlong, end=cython.longlong, stop=cython.longlong)
    cpdef list runs(self, tuple regions)
    @cython.locals(address=cython.longlong, places=list)
    cpdef tuple _bursts(self, long long at, long long stop)
    cpdef tuple _block(self, long long number)
    @cython.locals(block=cython.longlong, stripe=cython.longlong, channel=cython.longlong, line=cython.longlong, group=cython.longlong, of_group=cython.longlong, row=cython.longlong, bank=cython.longlong)
    cpdef tuple split(self, long long address)
    cpdef locate(self, address)
    cpdef address(self, place)
    cpdef tuple _channel_line(self, address)
