"""What goes wrong with files written in Triton: a sentence with the line each, and arrays as they were."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_core.errors import LimitError

WHERE = "  in kernel '{name}', program (0, 0, 0), on sip0.cube0.pe0 at "


def kernels() -> dict[str, Any]:
    """Make kernels that cannot run; called where `triton` is kernbench's."""
    import triton
    import triton.language as tl

    @triton.jit
    def assembly(x: Any) -> None:
        tl.store(x, 5)
        tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x)], dtype=tl.int32, is_pure=True, pack=1)

    @triton.jit
    def unknown(x: Any) -> None:
        tl.store(x, tl.exponential(tl.load(x)))

    @triton.jit
    def of_math(x: Any) -> None:
        tl.store(x, tl.math.tanj(tl.load(x)))

    @triton.jit
    def undefined(x: Any) -> None:
        tl.store(x, nowhere)  # type: ignore[name-defined]  # noqa: F821 - that is the point

    @triton.jit
    def sized(x: Any, n: Any, BLOCK: tl.constexpr, MODE: tl.constexpr = ()) -> None:  # noqa: N803 - as kernels are written
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

    return {each.__name__: each for each in (assembly, unknown, of_math, undefined, sized)}


def line(kernel: Any, below: int) -> str:
    return f"{__file__}:{kernel.fn.__code__.co_firstlineno + below}"


CASES: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "assembly": (
        lambda k, x: k["assembly"][(1,)](x),
        "tl.inline_asm_elementwise at {assembly3} is a name of Triton's that kernbench refuses: there is no assembly "
        "language; write the computation with tl's ops.",
    ),
    "a name": (
        lambda k, x: k["unknown"][(1,)](x),
        "{unknown2}: AttributeError: tl has no name 'exponential'.",
    ),
    "a name of math": (
        lambda k, x: k["of_math"][(1,)](x),
        "{of_math2}: AttributeError: tl has no name 'tanj'. Did you mean tl.tanh?",
    ),
    "a name of Python": (
        lambda k, x: k["undefined"][(1,)](x),
        "{undefined2}: NameError: name 'nowhere' is not defined",
    ),
    "a block that is too large": (
        lambda k, x: k["sized"][(1,)](x, 8, BLOCK=1 << 24),
        "{sized3}: tl.load must find 64 MiB of TCM on sip0.cube0.pe0 for int32 [16777216], and the whole scratchpad "
        "has 2 MiB; use smaller tiles, or more pe.tcm.capacity.",
    ),
    "an empty block": (
        lambda k, x: k["sized"][(1,)](x, 8, BLOCK=0),
        "tl.arange at {sized2} must be given an end above its start, not (0, 0); skip the empty tile.",
    ),
    "a missing argument": (
        lambda k, x: k["sized"][(1,)](x, 8),
        "the arguments must fit kernel 'sized'(x: 'Any', n: 'Any', BLOCK: 'tl.constexpr', MODE: 'tl.constexpr' = ()) "
        "-> 'None': missing a required argument: 'BLOCK'; correct the launch.",
    ),
    "an argument too many": (
        lambda k, x: k["sized"][(1,)](x, 8, BLOCK=8, SIZE=3),
        "the arguments must fit kernel 'sized'(x: 'Any', n: 'Any', BLOCK: 'tl.constexpr', MODE: 'tl.constexpr' = ()) "
        "-> 'None': got an unexpected keyword argument 'SIZE'; correct the launch.",
    ),
    "a list": (
        lambda k, x: k["sized"][(1,)]([1, 2], 8, BLOCK=8),
        "argument 'x' of kernel 'sized' must be an array, a number, None or a tuple of these, not [1, 2] of type list; "
        "make it an array.",
    ),
    "a number for a pointer": (
        lambda k, x: k["sized"][(1,)](3, 8, BLOCK=8),
        "tl.load at {sized3} must be given a pointer, not index arithmetic; pass a tensor to the launch and use the "
        "argument.",
    ),
    "a view that reaches over itself": (
        lambda k, x: k["sized"][(1,)](np.lib.stride_tricks.as_strided(x, (3, 4), (8, 4)), 8, BLOCK=8),
        "argument 'x' of kernel 'sized' must lie in one piece of memory, not in bytes 0 to 32 with strides (8, 4); "
        "give a copy.",
    ),
    "a call without a grid": (
        lambda k, x: k["sized"](x, 8, BLOCK=8),
        "kernel 'sized' must be launched with a grid, not called; write sized[grid](…).",
    ),
    "no configuration": (
        lambda k, x: __import__("triton").autotune(configs=[], key=[])(k["sized"]),
        "triton.autotune of kernel 'sized' must be given a configuration at least, not none; write "
        "configs=[triton.Config({{…}})].",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_sentence_each(case: str) -> None:
    """The first line is told whole; the array is as it was, and the next launch runs."""
    do, wanted = CASES[case]
    x = np.arange(8, dtype=np.int32)
    with kb.triton("tiny") as sim:
        found = kernels()
        with pytest.raises(kb.KernbenchError) as error:
            do(found, x)
        lines = {f"{name}{below}": line(kernel, below) for name, kernel in found.items() for below in (2, 3)}
        assert str(error.value).splitlines()[0] == wanted.format(**lines)
        assert x.tolist() == list(range(8))
        found["sized"][(1,)](x, 8, BLOCK=8)
    assert x.tolist() == list(range(1, 9))
    assert len(sim.launches) == 1


def test_what_a_mask_or_a_constant_holds_is_no_argument() -> None:
    """Lists are constants of compile time where they are annotated so; arrays with gaps are given by their storage."""
    x = np.zeros(32, np.int32)
    with kb.triton("tiny"):
        kernels()["sized"][(1,)](x[::4], 30, BLOCK=32, MODE=[1, 2])
    assert x.tolist() == [1] * 30 + [0, 0]


@pytest.mark.parametrize("launches", [0, 1])
def test_a_limit_between_launches_is_a_sentence(launches: int) -> None:
    """Before the first, and behind one: with the line of the host's code that it is in."""
    with pytest.raises(LimitError) as error, kb.triton("tiny", timeout_s=4 if launches else 1):
        found = kernels()
        for _ in range(launches):
            found["sized"][(1,)](np.zeros(8, np.float32), 8, BLOCK=8)
        time.sleep(60)
    assert re.fullmatch(
        r"the run reached its limit of [14] s of wall time while running the host's code, in "
        r"\S*test_bad_input.py:\d+; raise --timeout if it is only long\.",
        str(error.value),
    )


@pytest.mark.parametrize("spins", ["in Python", "in the simulator"])
def test_a_kernel_that_never_ends(spins: str) -> None:
    """It is stopped by `timeout_s`, with the line at which it is; the array is as it was."""
    x = np.zeros(1, np.float32)
    with kb.triton("tiny", timeout_s=0.4):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, HERE: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
            tl.store(x_ptr, 3)
            while HERE:
                pass
            while tl.load(x_ptr) > 1:
                pass

        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](x, spins == "in Python")
    told = str(error.value)
    assert told.startswith("the run reached its limit of 0.4 s of wall time at simulated time ")
    if spins == "in Python":
        assert any(f" in {line(kernel, below)}, which never returned to the simulator; " in told for below in (3, 4))
    else:
        # none where the limit came while the kernel's own Python ran
        waits = [each for each in told.splitlines() if each.startswith("      sip0.cube0.pe0.pe_cpu ")]
        place = f"      sip0.cube0.pe0.pe_cpu kernel 'kernel' at {line(kernel, 5)} waits for tl."
        assert all(each.startswith(place) for each in waits)
    assert x.tolist() == [0.0]
