cimport cython

@cython.locals(name=str)
cpdef tuple call_site()
