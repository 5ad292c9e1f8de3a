"""Branches on what an op makes that is not over yet, of this PE or another: the kernel waits for it, no longer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench as kb


def reading(a: Any, b: Any, c: Any, x: Any, y: Any, depth: int, delay: int, how: str, tl: Any) -> None:
    """Have one program multiply, and one look at a product that is under way, `delay` loads later."""
    pe, single = tl.program_id(0), tl.num_programs(0) == 1
    if pe == 0 and how != "none":
        tl.composite("gemm", tl.ref(a, (16, depth)), tl.ref(b, (depth, 16)), out=c)
    if pe == 1 or single:
        for _ in range(delay):
            tl.load(x)
        seen = tl.load(c)
        if how == "through":
            seen = seen * 2
        if how == "address":
            tl.store(y + seen.to("int32") % 4, 7)
        elif how == "print":
            tl.device_print("seen", seen)
            tl.store(y, 7)
        elif float(seen) > 0:
            tl.store(y, 7)


def run(how: str, *, delay: int = 0, depth: int = 64, programs: int = 2, **options: Any) -> Any:
    """Launch it; give the result, when the product is over, when the load is, and when the store is issued."""
    a, b = np.ones((16, depth), np.float16), np.ones((depth, 16), np.float16)
    c, x, y = np.ones((16, 16), np.float32), np.ones(1, np.float32), np.zeros(4, np.int32)
    found = kb.launch(
        reading, a, b, c, x, y, depth, delay, how, topology="tiny", grid=(programs,), materialize="on_demand", **options
    )
    ops = [op for op in found.op_log if op.stage_of is None]
    product = max((op.t_end for op in ops if op.op_name == "composite_gemm"), default=0.0)
    load = max(op.t_end for op in ops if op.op_name == "dma_read")
    store = next(op.t_start for op in ops if op.op_name in ("copy", "full") and op.t_start >= load)
    return found, product, load, store


def test_it_waits_until_the_op_is_over_and_no_longer() -> None:
    """Over many delays the kernel goes on when both are there, its load and the product, whichever is later."""
    _, _, load, store = run("none")
    after_load = store - load
    _, product, load, store = run("branch")
    assert store > load + after_load, "it waits"
    after_product = store - product
    waited = 0
    for delay in range(1, 8, 2):
        _, product, load, store = run("branch", delay=delay)
        assert store == max(product + after_product, load + after_load)
        waited += product + after_product > load + after_load
    assert 0 < waited < 4, "the product is over before the load in some, after it in others"


@pytest.mark.parametrize("programs", [1, 2])
@pytest.mark.parametrize("how", ["branch", "through", "address", "print"])
def test_whatever_needs_the_data_waits(how: str, programs: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A branch, also on what was computed of it, an address, a print; of this PE, whose load waits, and another one."""
    found, product, load, store = run(how, programs=programs, verify_ops=True)
    assert store > load > product if programs == 1 else store > product > load
    assert found.outputs["y"].tolist() == [7, 0, 0, 0], "64 % 4 is 0"
    assert found.branch_values.read == found.branch_values.confirmed == 1
    assert ("64" in capsys.readouterr().out) == (how == "print")


def test_waiting_for_data_orders_nothing() -> None:
    """It is read before it is there only by the machine's luck: a hazard, as without the branch; runs are alike."""
    found, again = run("branch")[0], run("branch")[0]
    assert [hazard.kind for hazard in found.hazards] == ["unordered_read"]
    assert found.op_log_sha256 == again.op_log_sha256
    assert found.hazards == again.hazards
