# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The queue of events as queue.py has it, in C: a heap of entries in an array."""

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

from kernbench_core.events.copying import copied
from kernbench_core.events.declared import refuses_to_be_hidden
from kernbench_core.events.faults import IntoThePast, ScheduledTwice

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define SOON_READ(where) __builtin_prefetch(where)
    #else
    #define SOON_READ(where)
    #endif
    """
    void SOON_READ(const void *where) noexcept nogil

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN, PYGEN_ERROR, PYGEN_NEXT
    PySendResult PyIter_Send(object steps, object value, PyObject **found) except PYGEN_ERROR
    PyObject *PyTuple_GET_ITEM(tuple items, Py_ssize_t at) noexcept
    Py_ssize_t PyTuple_GET_SIZE(tuple items) noexcept

DELIVERY = -1
COMPILED = True
OVER = object()
#: Bytes that a processor fetches at once.
cdef enum:
    LINE = 64


cpdef object step(object steps, object value):
    """Send a value into a generator; return what it yields then, or OVER: no StopIteration is made."""
    cdef PyObject *sent = NULL
    cdef PySendResult result = PyIter_Send(steps, value, &sent)
    found = <object> sent
    Py_DECREF(found)
    return OVER if result == PYGEN_RETURN else found


cpdef Py_ssize_t place_of(tuple pairs, tuple path, Py_ssize_t hop) except -2:
    """Return the place behind the one in `pairs` that has the object of a path's hop, or -1.

    No reference is taken: counting it would fetch each object that is passed over from memory, in a large machine.
    """
    cdef PyObject *wanted
    cdef Py_ssize_t at
    if not 0 <= hop < PyTuple_GET_SIZE(path):
        return -1
    wanted = PyTuple_GET_ITEM(path, hop)
    for at in range(0, PyTuple_GET_SIZE(pairs), 2):
        if PyTuple_GET_ITEM(pairs, at) == wanted:
            return at + 1
    return -1


cdef inline bint _before(const Entry *a, const Entry *b) noexcept nogil:
    # without branches: which of two comes first cannot be foreseen
    return (a.time < b.time) | ((a.time == b.time) & (
        (a.priority < b.priority) | ((a.priority == b.priority) & (a.key < b.key))))


cdef class Scheduled:
    """Happen when it is due: `callbacks`, a tuple of one or a list, are then called with it, once."""

    __slots__ = ("callbacks",)

    def __copy__(self):
        return copied(self)

    __init_subclass__ = refuses_to_be_hidden


cdef class EventQueue:
    """Keep (time in ns, priority, key, event); `now` is the time of the last that happened, `happened` counts them.

    `injected` is the key of the last delivery that came over no edge, `active` the process that runs now, if any. Events
    lie in a list, where the garbage collector sees them; `_free` are its free places, in those of the stack that no entry takes.
    """

    def __cinit__(self):
        self._heap = NULL
        self._memory = NULL
        self._free = NULL
        self._size = self._room = 0

    def __init__(self):
        self._events = []
        self.now = 0.0
        self.happened = self.injected = 0
        self.active = None
        self.failed = None

    def __dealloc__(self):
        PyMem_Free(self._memory)
        PyMem_Free(self._free)

    cdef int _grow(self) except -1:
        cdef Py_ssize_t room = 256 if self._room == 0 else self._room * 2
        cdef Py_ssize_t place
        cdef Entry *heap
        cdef void *made = PyMem_Malloc(room * sizeof(Entry) + 2 * LINE)
        if made is NULL:
            raise MemoryError
        # two entries below the same one are in one line of a cache
        heap = <Entry *> (((<uintptr_t> made + LINE - 1) & -LINE) + LINE - sizeof(Entry))
        if self._size:
            memcpy(heap, self._heap, self._size * sizeof(Entry))
        PyMem_Free(self._memory)
        self._memory, self._heap = made, heap
        made = PyMem_Realloc(self._free, room * sizeof(Py_ssize_t))
        if made is NULL:
            raise MemoryError
        self._free = <Py_ssize_t *> made
        self._events.extend([None] * (room - self._room))
        # free places are a stack from the end of `_free` down to the number of those taken
        for place in range(self._room, room):
            self._free[place] = place
        self._room = room
        return 0

    cpdef void push(self, double time, long long priority, long long key, object event) except *:
        """Have an event happen at `time` ns."""
        cdef Entry new
        cdef Py_ssize_t at, above
        if self._size == self._room:
            self._grow()
        at = self._size
        new.time = time
        new.priority = priority
        new.key = key
        new.place = self._free[at]
        self._events[new.place] = event
        self._size = at + 1
        while at > 0:
            above = (at - 1) >> 1
            if not _before(&new, &self._heap[above]):
                break
            self._heap[at] = self._heap[above]
            at = above
        self._heap[at] = new

    cdef object _pop(self):
        cdef Entry *heap = self._heap
        cdef Py_ssize_t place = heap[0].place
        cdef Entry last
        cdef Py_ssize_t at = 0, above, child, size
        event = self._events[place]
        self._events[place] = None
        self._size -= 1
        size = self._size
        self._free[size] = place
        if size:
            # down to a leaf, and up from there: what was last belongs near the end, mostly
            last = heap[size]
            child = 1
            while child + 1 < size:
                child += _before(&heap[child + 1], &heap[child])
                heap[at] = heap[child]
                at = child
                child = 2 * at + 1
            if child < size:
                heap[at] = heap[child]
                at = child
            while at > 0:
                above = (at - 1) >> 1
                if not _before(&last, &heap[above]):
                    break
                heap[at] = heap[above]
                at = above
            heap[at] = last
            # in a large machine the next events have left the cache since they were made
            SOON_READ(<void *> PyList_GET_ITEM(self._events, heap[0].place))
            if size > 2:
                SOON_READ(<void *> PyList_GET_ITEM(self._events, heap[1].place))
                SOON_READ(<void *> PyList_GET_ITEM(self._events, heap[2].place))
        return event

    cpdef void appoint(self, double time, object event, tuple callbacks) except *:
        """Have `callbacks` called with an event at `time` ns, as a delivery over no edge."""
        if isinstance(event, Scheduled):
            (<Scheduled> event).callbacks = callbacks
        else:
            event.callbacks = callbacks
        self.injected += 1
        self.push(time, -1, self.injected, event)

    def drain(self):
        """Remove and return all entries, in no order."""
        found = [*self]
        self.clear()
        return found

    def clear(self):
        """Remove all entries."""
        cdef Py_ssize_t at
        cdef Py_ssize_t size = self._size
        self._size = 0
        for at in range(size):
            self._free[at] = self._heap[at].place
        for at in range(size):
            self._events[self._free[at]] = None

    def __len__(self):
        return self._size

    def __getitem__(self, Py_ssize_t at):
        if not 0 <= at < self._size:
            raise IndexError(at)
        return self._heap[at].time, self._heap[at].priority, self._heap[at].key, self._events[self._heap[at].place]

    def __iter__(self):
        cdef Py_ssize_t at
        for at in range(self._size):
            yield self[at]

    def run(self, Py_ssize_t most, double until):
        """Have up to `most` events happen, none of them later than `until` ns; see queue.py."""
        cdef Py_ssize_t done = 0
        cdef double time
        cdef Scheduled known
        callbacks = event = None
        try:
            while done < most and self._size:
                time = self._heap[0].time
                if not self.now <= time <= until:
                    if time > until:
                        break
                    raise IntoThePast(self._events[self._heap[0].place], time)
                event = self._pop()
                self.now = time
                done += 1
                if isinstance(event, Scheduled):
                    known = <Scheduled> event
                    callbacks = known.callbacks
                    known.callbacks = None
                    if type(callbacks) is tuple:
                        (callback,) = <tuple> callbacks
                        callback(event)
                        continue
                else:
                    callbacks, event.callbacks = event.callbacks, None
                if callbacks is None:
                    raise ScheduledTwice(event)
                for callback in callbacks:
                    callback(event)
                if not event._ok and not hasattr(event, "_defused"):
                    raise event._value
        except BaseException:
            self.failed = callbacks or (), event
            raise
        finally:
            self.happened += done
