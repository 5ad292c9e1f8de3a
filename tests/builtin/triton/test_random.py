"""Philox, held against the published vectors and against Python's integers; floats made of it, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench as kb

# mypy: disable-error-code="import-not-found"

#: Counter, key, and what ten rounds make of them: the known answers that are published with the algorithm (Random123).
PUBLISHED = [
    ((0,) * 4, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]  # fmt: skip


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Compute ten rounds by Python's integers, from the paper's description."""
    l0, r0, l1, r1 = counter[1], counter[0], counter[3], counter[2]
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * r0, 0xCD9E8D57 * r1
        r0, l0, r1, l1 = (p1 >> 32) ^ l0 ^ k0, p1 % 2**32, (p0 >> 32) ^ l1 ^ k1, p0 % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return r0, l0, r1, l1


@pytest.mark.parametrize(("counter", "key", "answer"), PUBLISHED)
def test_the_tests_own_way_gives_the_published_answers(counter: Any, key: Any, answer: Any) -> None:
    """So that what is compared with below is right."""
    assert philox(counter, key) == answer


def uniform(word: int) -> np.float32:
    """Make a float of a word: what it is as a signed integer, folded at zero, times a float."""
    signed = word - 2**32 if word >= 2**31 else word
    return np.float32(-signed - 1 if signed < 0 else signed) * np.float32(4.6566127342e-10)


def test_words_are_the_published_ones_and_floats_what_is_made_of_them() -> None:
    """Of counters and keys of loaded words, of large offsets and seeds, and of a block of offsets."""
    given = np.array([[*counter, *key] for counter, key, _ in PUBLISHED], np.uint32).T.copy()
    words, bits, seed = np.zeros((4, 3), np.uint32), np.zeros((4, 8), np.uint32), 0x1234567_89ABCDEF
    floats, far = np.zeros((2, 8), np.float32), np.zeros(8, np.uint32)
    with kb.triton("tiny", verify_ops=True):
        import triton
        import triton.language as tl

        @triton.jit
        def published(given_ptr: Any, out_ptr: Any) -> None:
            for n in tl.static_range(3):
                c0, c1, c2, c3, low, high = (tl.load(given_ptr + i * 3 + n) for i in range(6))
                key = high.to(tl.int64) << 32 | low.to(tl.int64)
                for i, word in enumerate(tl.philox(key, c0, c1, c2, c3)):
                    tl.store(out_ptr + i * 3 + n, word)

        @triton.jit
        def draw(bits_ptr: Any, floats_ptr: Any, far_ptr: Any, seed: Any, n: tl.constexpr) -> None:
            at = tl.program_id(0) * n + tl.arange(0, n)
            for i, word in enumerate(tl.randint4x(seed, at)):
                tl.store(bits_ptr + i * 8 + at, word)
            tl.store(floats_ptr + at, tl.rand(seed, at))
            tl.store(floats_ptr + 8 + at, tl.randn(seed, at))
            tl.store(far_ptr + at, tl.randint(-7, at.to(tl.int64) + 2**35))

        published[(1,)](given, words)
        draw[(2,)](bits, floats, far, seed, n=4)
    assert words.T.tolist() == [list(answer) for _, _, answer in PUBLISHED]
    key = (seed & 0xFFFFFFFF, seed >> 32)
    expected = [philox((at, 0, 0, 0), key) for at in range(8)]
    assert bits.T.tolist() == [list(row) for row in expected]
    assert floats[0].tolist() == [uniform(row[0]) for row in expected]
    assert far.tolist() == [philox((at, 8, 0, 0), (2**32 - 7, 2**32 - 1))[0] for at in range(8)]
    u1, u2 = (np.array([uniform(row[i]) for row in expected], np.float64) for i in (0, 1))
    np.testing.assert_allclose(floats[1], np.sqrt(-2 * np.log(u1)) * np.cos(2 * np.pi * u2), rtol=2e-5, atol=2e-6)
