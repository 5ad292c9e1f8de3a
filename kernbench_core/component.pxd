cimport cython
from kernbench_core.events.queue cimport place_of
from kernbench_core.messages cimport MsgBase
from kernbench_core.wire cimport Wire
from kernbench_core.workers.worker cimport Worker, Works

cdef class ComponentBase(Works):
    cdef public list internal_wires
    cdef public object _service, arrive, fabric, node, params
    cdef public dict in_ports, out_ports
    cpdef overhead(self, MsgBase msg)
    cpdef interval(self, MsgBase msg)
    @cython.locals(path=tuple, hop=Py_ssize_t, wire=Wire)
    cpdef emit(self, MsgBase msg, double head, double tail)
    @cython.locals(near=tuple, at=Py_ssize_t)
    cdef Wire _way_to(self, tuple path, Py_ssize_t hop)
    cpdef take_answer(self, MsgBase msg)
    cpdef serve(self, MsgBase msg)
    cpdef begin(self, MsgBase msg)
    cpdef end(self, MsgBase msg, busy=*)
    @cython.locals(overhead=double, out=double, tail=double, path=tuple, hop=Py_ssize_t, wire=Wire)
    cpdef _arrive_overhead(self, MsgBase msg)
    cpdef double _round(self, raw) except? -1
    @cython.locals(interval=double)
    cdef double _pace(self, MsgBase msg, double out) except? -1
