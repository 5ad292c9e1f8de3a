cimport cython
from kernbench_core.oplog.description cimport OpDescription
from kernbench_core.oplog.writing cimport ColumnWriter

cdef class LineUse:
    cdef public object site
    cdef public Py_ssize_t ops
    cdef public double ns

cdef class OpLogger:
    cdef public object log, sites
    cdef public dict lines
    cdef ColumnWriter _columns
    cdef dict _open, _sequences
    cpdef record_start(self, t, component_id, msg)
    @cython.locals(described=OpDescription, line=LineUse, t_start=double)
    cpdef record_end(self, t, component_id, msg)
