cimport cython
from kernbench_core.messages cimport MsgBase, Transaction

cdef class Fabric:
    cdef public object env, graph, op_logger, parts, components, _routes, _addresses, _layout, _chunks, _shared
    cdef public list wires, used_wires
    cdef public dict round_trips, one_ways, under_way, moved_bytes, counters, own_names
    cdef public Py_ssize_t issued, completed, pushed_bytes, landed_bytes, _next_edge
    cpdef cut(self, regions)
    cpdef note_one_way(self, MsgBase msg)
    @cython.locals(path=tuple, nbytes=cython.Py_ssize_t, moved=dict, share=cython.Py_ssize_t, most=cython.Py_ssize_t,
                   elapsed=double, least=double)
    cpdef note_round_trip(self, Transaction transaction)
