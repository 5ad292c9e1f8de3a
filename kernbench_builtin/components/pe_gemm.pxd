from kernbench_builtin.components.matrix_unit cimport MatrixUnit

cdef class PeGemm(MatrixUnit):
    cdef public object _rows, _columns, _rates
    cdef public bint _pipelined
