cimport cython
from kernbench_core.oplog.description cimport Access, OpDescription
from kernbench_core.oplog.parameters cimport PatternPlan
from kernbench_core.values.region cimport Region

cdef class ColumnWriter:
    cdef public object t_start, t_end, component, template, sequence, op_pe, op_issue, stage_pe, stage_issue, ints, floats
    cdef public object values, side_rows, side_numbers
    cdef public Py_ssize_t rows, _spill_rows, _spill_at, _settle_at
    cdef public bint _spill_values
    cdef public dict components, _side_ids, _template_ids, _plans, _patterns, _regions, _next_sequence
    cdef public list sides, templates
    cdef tuple _ways
    cdef object _add_ints
    @cython.locals(access=Access)
    cpdef append(self, double t_start, double t_end, component, OpDescription described, sequence=*)
    @cython.locals(ints=list, side=list, look=tuple, plan=PatternPlan)
    cdef _encode(self, OpDescription described)
    cdef _plan_of(self, pattern)
    cdef _next(self, component)
    @cython.locals(access=Access, region=Region, look=list)
    cdef tuple _encode_accesses(self, OpDescription described, list ints, list side)
