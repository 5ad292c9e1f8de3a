cpdef tuple call_site()
