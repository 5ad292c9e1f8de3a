"""Where a suspended kernel stands in its loops, against a count of all its turns."""

# ruff: noqa: B007, F841, N803 - loops are what is looked at, and count in names that kernels use

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.kernel.bridge import Bridge, Finished
from kernbench_core.runs.run_progress import part_of_loop

TILE = 3


def uniform(step: Callable[[], object], M: int, N: int, K: int, tl: object = None) -> None:
    """Three loops inside one another, nothing behind the innermost."""
    first = N % 2
    for m in range(0, M, TILE):
        for n in range(first, N + first):
            for _ in range(K, 0, -2):
                step()


def helped(step: Callable[[], object], M: int) -> None:
    for m in range(M):
        further(step)


def further(step: Callable[[], object]) -> None:
    for k in range(100):
        step()
        break


def dealt(step: Callable[[], object], M: int, pes: int, tl: object) -> None:
    for row in range(tl.program_id(0) % pes, min(M, 1000000), pes * 1):  # type: ignore[attr-defined]
        step()


def cut(step: Callable[[], object], M: int, tl: object) -> None:
    for tile in range(tl.cdiv(M, 4)):  # type: ignore[attr-defined]
        step()


def before(step: Callable[[], object]) -> None:
    step()
    for m in range(3):
        pass


def behind(step: Callable[[], object]) -> None:
    for m in range(3):
        pass
    step()


def below(step: Callable[[], object]) -> None:
    for m in range(4):
        for n in range(5):
            pass
        step()


def inside_unknown(step: Callable[[], object]) -> None:
    for m in range(4):
        for n in iter([1]):
            step()


def two(step: Callable[[], object]) -> None:
    for m in range(3):
        step()
    for m in range(3):
        step()


def over_a_list(step: Callable[[], object]) -> None:
    for m in [1, 2]:
        step()


def stepped(step: Callable[[], object], M: int, size: int, tl: object) -> None:
    """Rows by blocks, of which the last may be shorter, with a loop inside."""
    at = tl.program_id(0) * M  # type: ignore[attr-defined]
    last = at + M
    while at < last:
        block = min(size, last - at)
        for _ in range(4):
            step()
        at += block


def endless(step: Callable[[], object]) -> None:
    m = 0
    while True:
        step()
        m += 1
        if m == 3:
            break


def downwards(step: Callable[[], object]) -> None:
    m = 3
    while m > 0:
        step()
        m -= 1


def changed_by_two(step: Callable[[], object]) -> None:
    m = 0
    while m < 3:
        step()
        if m == 0:
            m += 1
        m += 1


def set_again(step: Callable[[], object]) -> None:
    m = 0
    while m < 2:
        step()
        m += 1
        m = max(m, 1)


def set_to(step: Callable[[], object]) -> None:
    m = 0
    while m < 2:
        step()
        m = m + 1


def begun_by_a_call(step: Callable[[], object]) -> None:
    m = abs(0)
    while m < 2:
        step()
        m += 1


def called(step: Callable[[], object]) -> None:
    for m in range(abs(-3)):
        step()


def changed(step: Callable[[], object]) -> None:
    for m in range(3):
        m = 7
        step()


def straight(step: Callable[[], object]) -> None:
    step()


class Tl:
    """As much of the language as these kernels use."""

    def program_id(self, axis: int) -> int:
        return PROGRAM[axis]

    def cdiv(self, a: int, b: int) -> int:
        return math.ceil(a / b)


PROGRAM = (5, 1, 0)


def parts(kernel: Callable[..., object], *args: object) -> list[float | None]:
    """Return the part of a kernel that is known to be over each time that it is suspended."""
    bridge: Bridge
    bridge = Bridge(lambda: kernel(lambda: bridge.suspend("here"), *args), kernel=True)
    found = []
    while not isinstance(bridge.resume(), Finished):
        found.append(part_of_loop(bridge.frame, kernel, PROGRAM))
    assert part_of_loop(bridge.frame, kernel, PROGRAM) is None
    return found


@given(M=st.integers(0, 9), N=st.integers(0, 4), K=st.integers(0, 5))
def test_the_part_is_that_of_all_turns(M: int, N: int, K: int) -> None:
    """Of loops that are alike in every turn, the n-th of all turns has n parts of the whole behind it."""
    found = parts(uniform, M, N, K)
    assert found == pytest.approx([turn / len(found) for turn in range(len(found))])


@given(M=st.integers(0, 30), pes=st.integers(1, 7))
def test_rows_that_are_dealt(M: int, pes: int) -> None:
    """The bounds may have the program's number, sums, products, min and cdiv in them."""
    found = parts(dealt, M, pes, Tl())
    assert found == pytest.approx([turn / len(found) for turn in range(len(found))])
    found = parts(cut, M, Tl())
    assert found == pytest.approx([turn / len(found) for turn in range(len(found))])


@given(M=st.integers(0, 30), size=st.integers(1, 7))
def test_blocks_that_a_while_loop_steps_over(M: int, size: int) -> None:
    """The part is that of the rows, and goes on within a block; a short block at the end goes on faster."""
    found = parts(stepped, M, size, Tl())
    rows = [min(size, M - at) for at in range(0, M, size)]
    assert found == pytest.approx(
        [(at * size + block * turn / 4) / M for at, block in enumerate(rows) for turn in range(4)]
    )


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        (before, [0.0]),
        (behind, [1.0]),
        (below, [0.25, 0.5, 0.75, 1.0]),
        (inside_unknown, [0.0, 0.25, 0.5, 0.75]),
        (two, [None] * 6),
        (over_a_list, [None] * 2),
        (endless, [None] * 3),
        (downwards, [None] * 3),
        (changed_by_two, [None] * 2),
        (set_again, [None] * 2),
        (set_to, [None] * 2),
        (begun_by_a_call, [None] * 2),
        (called, [None] * 3),
        (changed, [None] * 3),
        (straight, [None]),
    ],
)
def test_what_is_not_known_is_not_said(kernel: Callable[..., object], found: list[float | None]) -> None:
    assert parts(kernel) == found


def test_a_helper_counts_with_the_loop_around_it() -> None:
    """The kernel's own loop counts, wherever below it is suspended."""
    assert parts(helped, 4) == [0.0, 0.25, 0.5, 0.75]


def test_a_kernel_without_source_is_unknown() -> None:
    names: dict[str, Callable[..., object]] = {}
    exec("def kernel(step):\n    for m in range(3):\n        step()\n", names)
    assert parts(names["kernel"]) == [None] * 3


def test_looking_keeps_nothing() -> None:
    """What the kernel gives up is gone at once, though somebody looked at its variables before."""
    gone: list[str] = []

    class Tile:
        def __del__(self) -> None:
            gone.append("gone")

    def kernel(step: Callable[[], object]) -> None:
        for m in range(2):
            tile = Tile()
            step()
            del tile
            step()

    bridge: Bridge
    bridge = Bridge(lambda: kernel(lambda: bridge.suspend("here")), kernel=True)
    bridge.resume()
    assert part_of_loop(bridge.frame, kernel, PROGRAM) == 0.0
    assert gone == []
    bridge.resume()
    assert gone == ["gone"]
    bridge.close()
