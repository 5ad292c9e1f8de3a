cimport cython
from kernbench_core.reporting cimport Reported
from kernbench_core.messages cimport MsgBase
from kernbench_core.wire cimport Wire
from kernbench_core.events.queue cimport EventQueue

cdef class ComponentBase(Reported):
    # what a hop goes through comes first, so that it lies together in memory
    cdef public EventQueue _time
    cdef public object _op_logger
    cdef public double _raw, _rounded
    cdef public tuple _near
    cdef public bint _computes, _splits
    cdef public list _idle, internal_wires, processes
    cdef public object _service, arrive, fabric, node, params, rates
    cdef public str id
    cdef public dict in_ports, out_ports
    cpdef overhead(self, MsgBase msg)
    cpdef interval(self, MsgBase msg)
    @cython.locals(path=tuple, hop=Py_ssize_t, wire=Wire)
    cpdef emit(self, MsgBase msg, double head, double tail)
    @cython.locals(near=tuple, at=Py_ssize_t)
    cdef Wire _way_to(self, node)
    cpdef take_answer(self, MsgBase msg)
    cpdef serve(self, MsgBase msg)
    cpdef begin(self, MsgBase msg)
    cpdef end(self, MsgBase msg, busy=*)
    cpdef _on_process_start(self, MsgBase msg, double t)
    cpdef _on_process_end(self, MsgBase msg, double t)
    @cython.locals(overhead=double, out=double, floor=double, tail=double, interval=double)
    cpdef _arrive_overhead(self, MsgBase msg)
    cpdef _arrive_run(self, MsgBase msg)
    cpdef double _round(self, raw) except? -1
