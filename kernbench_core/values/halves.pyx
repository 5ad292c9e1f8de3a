# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The casts as halves.py has them, in C: numpy takes the numbers one by one, and small ones in loops of bits."""

from cpython.buffer cimport PyBUF_ANY_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint16_t, uint32_t

import numpy as np

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* -O2 leaves loops as they are whose length it does not know; the second is taken where the processor has it */
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
    #define SEVERAL_AT_ONCE __attribute__((optimize("O3"), target_clones("default", "avx2")))
    #elif defined(__GNUC__) && !defined(__clang__)
    #define SEVERAL_AT_ONCE __attribute__((optimize("O3")))
    #else
    #define SEVERAL_AT_ONCE
    #endif

    /* without branches, so that several can be taken */
    #define ONE_OF(condition, yes, no) ((yes) & -(uint32_t)(condition) | (no) & ~-(uint32_t)(condition))

    /* Cast finite numbers below 65536; not 0 where there were others, which are cast to something else. */
    SEVERAL_AT_ONCE static int to_halves(const uint32_t *from, uint16_t *__restrict__ to, Py_ssize_t count) {
        uint32_t others = 0;
        for (Py_ssize_t at = 0; at < count; at++) {
            uint32_t sign = from[at] & 0x80000000u, size = from[at] ^ sign, small;
            float whole;
            memcpy(&whole, &size, 4);
            whole += 0.5f;  /* there the last digit of f32 is that of f16 below 2**-14 */
            memcpy(&small, &whole, 4);
            uint32_t usual = (size + 0xC8000FFFu + ((size >> 13) & 1)) >> 13;
            to[at] = (uint16_t)(ONE_OF(size < 0x38800000u, small - 0x3F000000u, usual) | sign >> 16);
            others |= size >= 0x47800000u;
        }
        return others != 0;
    }

    /* Cast all numbers but NaN; not 0 where there were any. */
    SEVERAL_AT_ONCE static int from_halves(const uint16_t *from, uint32_t *__restrict__ to, Py_ssize_t count) {
        const uint32_t endless = 0x0F800000u;
        uint32_t others = 0;
        for (Py_ssize_t at = 0; at < count; at++) {
            uint32_t sign = (uint32_t)(from[at] & 0x8000u) << 16, size = (uint32_t)(from[at] & 0x7FFFu) << 13;
            uint32_t usual = size + 0x38000000u, higher = usual + 0x00800000u, small;
            float whole;
            memcpy(&whole, &higher, 4);
            whole -= 6.103515625e-05f;  /* 2**-14: numbers below have no leading one */
            memcpy(&small, &whole, 4);
            usual += ONE_OF(size >= endless, 0x38000000u, 0);
            to[at] = sign | ONE_OF(size < 0x00800000u, small, usual);
            others |= size > endless;
        }
        return others != 0;
    }
    """
    bint to_halves(const uint32_t *from_, uint16_t *to, Py_ssize_t count) noexcept nogil
    bint from_halves(const uint16_t *from_, uint32_t *to, Py_ssize_t count) noexcept nogil

COMPILED = True
_F16, _F32 = np.dtype(np.float16), np.dtype(np.float32)


def as_f16(array):
    """Return an array cast to f16, rounded to the nearest, of two to the even one."""
    if array.dtype is _F32:
        found = _cast(array, _F16, True)
        if found is not None:
            return found
    return array.astype(_F16)


def as_f32(array):
    """Return an array as f32: itself if it is that."""
    if array.dtype is _F32:
        return array
    if array.dtype is _F16:
        found = _cast(array, _F32, False)
        if found is not None:
            return found
    return array.astype(_F32)


cdef _cast(array, dtype, bint to_half):
    """Cast an array whose numbers lie one after another; None where that is left to numpy."""
    cdef Py_buffer given, made
    cdef Py_ssize_t count = array.size
    cdef bint others
    flags = array.flags
    if not (flags.c_contiguous or flags.f_contiguous):
        return None
    found = np.empty_like(array, dtype)
    PyObject_GetBuffer(array, &given, PyBUF_ANY_CONTIGUOUS)
    try:
        PyObject_GetBuffer(found, &made, PyBUF_ANY_CONTIGUOUS | PyBUF_WRITABLE)
        with nogil:
            if to_half:
                others = to_halves(<const uint32_t *>given.buf, <uint16_t *>made.buf, count)
            else:
                others = from_halves(<const uint16_t *>given.buf, <uint32_t *>made.buf, count)
        PyBuffer_Release(&made)
    finally:
        PyBuffer_Release(&given)
    return None if others else found
