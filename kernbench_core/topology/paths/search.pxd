cimport cython

cdef class PathSearch:
    cdef dict _came_from, _costs, _reached
    cdef object _fill, _put
    cdef list _queue, _ways
    cdef int _node_bits, _turn_bits
    cpdef cost(self, int goal)
    @cython.locals(costs=dict, reached=dict, came_from=dict, queue=list, ways=list, node_bits=int, turn_bits=int)
    cdef _go_to(self, int goal)
    @cython.locals(came_from=dict, path=list)
    cpdef list path(self, int goal)
