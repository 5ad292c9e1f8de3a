"""What is still to happen, in the order of time, priority and key, in Python and in C.

In: whatever is scheduled. Out: the same, earliest first, and the time that it is. The clock, the wires and components
call it.
"""
