cpdef info(name)
cpdef Py_ssize_t itemsize(name) except -1
cpdef bint is_float(name) except -1
cpdef bint is_int(name) except -1
