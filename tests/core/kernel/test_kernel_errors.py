"""What a kernel raises keeps its class, its place and its time, and what cannot run is a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import ComponentError, KernelError, UninitializedReadError, UnsupportedError
from kernbench_core.graph import Node
from tests.core.kernel_rig import Rig

X = np.arange(256, dtype=np.float32).reshape(16, 16)


def test_an_exception_keeps_its_traceback_place_and_time() -> None:
    """The sentence has line, PE, program and time; the kernel's own frames follow; the cause is chained."""

    def helper(value: Any) -> float:
        return 1.0 / (value - value)

    def kernel(x: Any, tl: Any) -> None:
        helper(0)

    rig = Rig()
    with pytest.raises(KernelError) as caught:
        rig.run(kernel, rig.tensor(X))
    inner, outer = helper.__code__.co_firstlineno + 1, kernel.__code__.co_firstlineno + 1
    assert str(caught.value) == (
        f"{__file__}:{inner}: ZeroDivisionError: float division by zero\n"
        "  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at 0 ns; the kernel's own traceback, innermost "
        "call last:\n"
        f'  File "{__file__}", line {outer}, in kernel\n'
        "    helper(0)\n"
        f'  File "{__file__}", line {inner}, in helper\n'
        "    return 1.0 / (value - value)"
    )
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("loads", [0, 1])
def test_an_exhausted_iterator_keeps_its_line(loads: int) -> None:
    """`next()` without a default raises StopIteration, which no generator lets through; with commands or without."""

    def kernel(x: Any, tl: Any) -> None:
        for _ in range(loads):
            tl.load(x, shape=(4,))
        next(iter([]))

    rig = Rig()
    with pytest.raises(KernelError) as caught:
        rig.run(kernel, rig.tensor(np.zeros(4, np.float32)))
    line = kernel.__code__.co_firstlineno + 3
    head, place, *own = str(caught.value).splitlines()
    assert head == f"{__file__}:{line}: StopIteration"
    assert place.startswith("  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at ")
    assert own[0] == f'  File "{__file__}", line {line}, in kernel'
    assert own[1].strip() == "next(iter([]))"
    assert isinstance(caught.value.__cause__, StopIteration)


def test_a_runtime_error_of_a_kernel_stays_one() -> None:
    """Also the one that a generator of the kernel's own turns a StopIteration into."""

    def numbers() -> Any:
        yield next(iter([]))

    def kernel(tl: Any) -> None:
        list(numbers())

    with pytest.raises(KernelError) as caught:
        Rig().run(kernel)
    line = kernel.__code__.co_firstlineno + 1
    assert str(caught.value).splitlines()[0] == f"{__file__}:{line}: RuntimeError: generator raised StopIteration"


def test_a_read_of_unwritten_memory_is_raised_at_the_line_that_waits() -> None:
    """The sentence names the load's line and the tensor; a kernel may catch it; a dropped load is not lost."""

    def kernel(x: Any, caught: Any, tl: Any) -> None:
        load = tl.load(x, shape=(16, 16), wait=False)
        try:
            tl.wait(load)
        except UninitializedReadError as error:
            caught.append(str(error))

    def dropped(x: Any, tl: Any) -> None:
        tl.load(x, shape=(16, 16), wait=False)

    messages: list[str] = []
    rig = Rig()
    x = rig.empty((16, 16), name="scratch")
    rig.run(kernel, x, messages)
    line = kernel.__code__.co_firstlineno + 1
    assert messages[0].partition("\n")[0] == (
        f"tl.load at {__file__}:{line} must read memory that was written, and element [0, 0] of tensor 'scratch' was "
        "not; store to it first, or make the tensor with rt.zeros."
    )
    with pytest.raises(UninitializedReadError, match="in kernel 'dropped'"):
        rig.run(dropped, x)


def test_kernel_errors_keep_their_class() -> None:
    """A refused name stays an UnsupportedError when it leaves the kernel."""
    rig = Rig()
    with pytest.raises(UnsupportedError, match="in kernel 'kernel'"):
        rig.run(lambda_kernel(), rig.tensor(X))


def lambda_kernel() -> Any:
    def kernel(x: Any, tl: Any) -> None:
        tl.atomic_add(x, 1)

    return kernel


def test_a_pe_cpu_that_the_design_lacks_is_a_sentence() -> None:
    """A kernel can run on a PE only."""
    rig = Rig()
    rig.cpus[0].node = Node("sip7.cube0.pe0.pe_cpu", "pe_cpu")
    with pytest.raises(ComponentError) as caught:
        rig.run(lambda tl: None)
    assert str(caught.value) == (
        "sip7.cube0.pe0.pe_cpu: a kernel must run on the pe_cpu of a PE, and the design has none of this id."
    )


def test_what_a_kernel_leaks_cannot_be_called_later() -> None:
    """A tl is dead outside its program."""
    leaked: list[Any] = []
    rig = Rig()
    x = rig.tensor(X)
    rig.run(lambda x, tl: leaked.append((x, tl)), x)
    pointer, tl = leaked[0]
    with pytest.raises(KernelError, match=r"^a call that takes simulated time must be made by the kernel"):
        tl.load(pointer)
