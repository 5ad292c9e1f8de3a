"""What the latest seeds are made of: worked out by hand, and found when it is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench_core.kernel import TLContext
from kernbench_core.kernel.compute_commands import GemmCmd
from tests.reference.generator import FURTHER, STREAMED, Maker
from tests.reference.harness import compare
from tests.reference.posts import Runtime


def test_a_product_that_nobody_waits_for_is_the_same_product() -> None:
    def kernel(x: Any, out: Any, tl: Any) -> None:
        a = tl.load(x, shape=(2, 2))
        tl.store(out, tl.dot(a, a, tl.dot(a, tl.trans(a), wait=False), wait=False))

    runtime = Runtime(4)
    x, out = runtime.tensor(np.array([[1, 2], [3, 4]], np.float32), name="x"), runtime.zeros((2, 2), name="out")
    runtime.launch(kernel, x, out, grid=(1,))
    assert out.data.tolist() == [5 + 7, 11 + 10, 11 + 15, 25 + 22]


def _sum_on_its_way_is_lost(patch: pytest.MonkeyPatch) -> None:
    gemm = TLContext.gemm

    def mutant(self: Any, things: Any, *args: Any, **named: Any) -> Any:
        lost = type(getattr(things[-1], "command", None)) is GemmCmd
        return gemm(self, things[:2] if lost else things, *args, **named)

    patch.setattr(TLContext, "gemm", mutant)


@pytest.mark.parametrize(("fault", "seed"), [(_sum_on_its_way_is_lost, 20022)])
def test_a_planted_fault_is_found(fault: Callable[[pytest.MonkeyPatch], None], seed: int) -> None:
    program = Maker(seed, topology="tiny").program()
    assert compare(program) is None
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        assert compare(program) is not None


def test_earlier_seeds_have_none_of_it() -> None:
    """They make the programs that they always made."""
    earlier = [Maker(seed, topology="tiny").program().source() for seed in range(FURTHER, FURTHER + 10)]
    assert not any("dot(" in line and "wait=" in line for source in earlier for line in source.splitlines())
    later = "".join(Maker(seed, topology="tiny").program().source() for seed in range(STREAMED, STREAMED + 10))
    assert ", wait=False)" in later and "tl.free(" in later
