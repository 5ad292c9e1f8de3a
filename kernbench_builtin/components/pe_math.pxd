from kernbench_builtin.components.compute_unit cimport ComputeUnit

cdef class PeMath(ComputeUnit):
    cdef public object _costs, _lanes, _lane_width
    cdef public bint _packed
    cdef public dict _peaks, _known
    cpdef cycles(self, msg)
    cpdef min_service_ns(self, msg)
    cdef tuple _figures(self, msg)
    cpdef flops(self, msg)
    cpdef peak_flops(self, msg)
    cdef double _peak(self, Py_ssize_t width) except? -1

cdef Py_ssize_t _width(msg) except -1
