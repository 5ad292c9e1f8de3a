"""What advice promises, against runs that carry it out; and where there is nothing to carry out, there is no advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import kernbench as kb
from kernbench_builtin.explain.advice.rule import FACT
from kernbench_builtin.explain.verdict import RunVerdict

Bench = Callable[[Any], None]


def ran(bench: Bench, topology: str = "tiny", **more: Any) -> RunVerdict:
    found = kb.run(bench, topology, data=False, **more).part(RunVerdict)
    assert found is not None and found.kernel_ns is not None
    return found


def promised(found: RunVerdict, rule: str) -> float:
    """Return what a rule says is gained of kernels; 0.0 where it advises nothing."""
    return max((each.gain for each in found.advice if (each.rule, each.about) == (rule, "kernel")), default=0.0)


def gained(before: RunVerdict, after: RunVerdict) -> float:
    assert before.kernel_ns is not None and after.kernel_ns is not None
    return 1 - after.kernel_ns / before.kernel_ns


def rules(found: RunVerdict) -> set[str]:
    return {each.rule for each in found.advice if each.about != FACT}


def over(kernel: Any, shapes: Sequence[tuple[int, ...]], *args: Any, **launch: Any) -> Bench:
    """Return a program that launches a kernel over tensors of some shapes, all of f32."""

    def bench(rt: Any) -> None:
        names = "abc"[: len(shapes)]
        tensors = [rt.tensor(shape, "f32", name=name, resident=True) for name, shape in zip(names, shapes, strict=True)]
        rt.launch(kernel, *tensors, *args, **launch)

    return bench


# More programs ----------------------------------------------------------------------------------------


def scales(a: Any, n: int, tl: Any) -> None:
    """Load a program's elements, multiply them thirty times and store them."""
    at = a + tl.program_id(0) * n
    x = tl.load(at, shape=(n,))
    for _ in range(30):
        x = x * 1.01
    tl.store(at, x)


def adds_columns(a: Any, b: Any, c: Any, rows: int, tl: Any) -> None:
    """Add up outer products of short columns and rows, one after the other: more programs have as many of them."""
    at, total = tl.program_id(0) * rows, tl.zeros((rows, 16), "f32")
    for k in range(32):
        total = total + tl.load(a + k * 64 + at, shape=(rows, 1)) * tl.load(b + k * 16, shape=(1, 16))
    tl.store(c + at * 16, total)


def exponentiates(a: Any, b: Any, n: int, tl: Any) -> None:
    """Go through a program's elements in a loop."""
    for at in range(tl.program_id(0) * n, (tl.program_id(0) + 1) * n, 1024):
        tl.store(b + at, tl.exp(tl.load(a + at, shape=(1024,))))


def multiplies(a: Any, b: Any, c: Any, rows: int, tl: Any) -> None:
    """Multiply a program's rows by a matrix that all programs load."""
    at = tl.program_id(0) * rows * 128
    tl.store(c + at, tl.dot(tl.load(a + at, shape=(rows, 128)), tl.load(b, shape=(128, 128))))


@pytest.mark.parametrize(
    ("kernel", "shapes", "programs", "each"),
    [
        (scales, [(64,)], 1, 16),
        (scales, [(1024,)], 1, 256),
        (scales, [(16384,)], 1, 4096),
        (adds_columns, [(32, 64), (32, 16), (64, 16)], 2, 16),
        (exponentiates, [(16384,), (16384,)], 1, 4096),
        (exponentiates, [(16384,), (16384,)], 2, 4096),
        (multiplies, [(128, 128), (128, 128), (128, 128)], 1, 32),
        (multiplies, [(512, 128), (128, 128), (512, 128)], 1, 128),
    ],
)
def test_more_programs_bring_what_is_promised(
    kernel: Any, shapes: list[tuple[int, ...]], programs: int, each: int
) -> None:
    """What each command takes however little it does is not divided, nor is what all load."""
    before = ran(over(kernel, shapes, each * 4 // programs, grid=(programs,)))
    told, found = promised(before, "idle-pes"), gained(before, ran(over(kernel, shapes, each, grid=(4,))))
    assert told <= found + 0.05
    assert told >= found - 0.15


def test_programs_of_one_pe_go_to_others() -> None:
    """With all that they have to do."""
    shapes = [(16384,), (16384,)]
    before, after = (ran(over(exponentiates, shapes, 1024, grid=(16,), pes=pes)) for pes in ([0], None))
    assert promised(before, "idle-pes") == pytest.approx(gained(before, after), abs=0.05)


# More in each turn ------------------------------------------------------------------------------------


def rounds(a: Any, n: int, tl: Any) -> None:
    """Load a program's elements and go over them again and again: there are no more to take at once."""
    at = a + tl.program_id(0) * n
    x = tl.load(at, shape=(n,))
    for _ in range(30):
        x = x * 1.01 + 0.1
    tl.store(at, x)


def parts(a: Any, b: Any, n: int, tl: Any) -> None:
    """Go over a program's elements, so many at a time."""
    for at in range(tl.program_id(0) * 4096, (tl.program_id(0) + 1) * 4096, n):
        x = tl.load(a + at, shape=(n,))
        for _ in range(8):
            x = x * 1.01
        tl.store(b + at, x)


def test_turns_over_the_same_data_are_not_to_do_more() -> None:
    """Blocks that are larger leave PEs without a program, and take longer."""
    before, after = ran(over(rounds, [(256,)], 64)), ran(over(rounds, [(256,)], 256, pes=[0]))
    assert gained(before, after) < 0
    assert not {"small-ops", "issue", "small-transfers"} & rules(before)
    assert any("the PE's CPU takes" in each.line and each.about == FACT for each in before.advice)


def test_turns_over_other_data_are_to_do_more() -> None:
    """And PEs with several programs are to have larger ones."""
    shapes = [(16384,), (16384,)]
    before, after = (ran(over(parts, shapes, n)) for n in (128, 512))
    assert 0.08 < promised(before, "small-ops") <= gained(before, after)
    several, fewer = (ran(over(rounds, [(4096,)], n, grid=(4096 // n,))) for n in (64, 256))
    assert 0.08 < promised(several, "issue") <= gained(several, fewer)
