"""Values that kernels branch on although only phase 2 knows them: counted, confirmed, and refused by default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_core.compute import on_demand
from kernbench_core.compute.backends import Backend
from tests.builtin.triton.kernels import scaling


def branching(x: Any, y: Any, n: Any, tl: Any) -> None:
    """Store the sum where it is above 9, else its negative; look at the sum twice."""
    total = tl.sum(tl.load(x + tl.arange(0, n)) * 1.5)
    above = bool(total > 9)
    tl.store(y, total if above and float(total) > 9 else -total)


def branch(values: list[float], **options: Any) -> kb.RunResult:
    """Launch the kernel by itself."""
    x, y = np.array(values, np.float32), np.zeros(1, np.float32)
    return kb.launch(branching, x, y, len(values), topology="tiny", grid=(1,), outputs=True, **options)


@pytest.mark.parametrize(("values", "found", "read"), [([1, 2, 3, 1], 10.5, 2), ([1, 2, 2, 1], -9.0, 1)])
def test_kernels_branch_on_what_they_computed(values: list[float], found: float, read: int) -> None:
    """At no simulated time; each value is counted once, and confirmed where ops are verified."""
    result = branch(values, materialize="on_demand", verify_ops=True)
    assert result.outputs["y"].tolist() == [found]
    assert (result.branch_values.read, result.branch_values.confirmed) == (read, read)
    assert result.branch_values.words == f"branch values: {read} of {read} confirmed"
    assert result.to_json()["branch_values"] == {"read": read, "confirmed": read}
    assert branch(values, materialize="on_demand").branch_values.words == (
        f"branch values: {read}, not confirmed (--verify-data does)"
    )


def test_by_default_that_is_refused() -> None:
    """And another word than the two is, too."""
    with pytest.raises(kb.KernbenchError, match="must have data that is known while the kernel runs"):
        branch([1, 2, 3, 1])
    with pytest.raises(kb.KernbenchError) as error:
        branch([1, 2, 3, 1], materialize="always")
    assert str(error.value) == "materialize must be 'determined' or 'on_demand', not 'always'."


def test_a_value_that_comes_out_otherwise_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Phase 2 computes it anew, from the data of the host on: a sum that is another the second time is found."""
    sums = list[object]()

    def drifting(params: Any, x: Any) -> Any:
        sums.append(x)
        return np.sum(x, axis=params["axis"]) + (len(sums) > 1)

    monkeypatch.setattr(Backend, "function", lambda backend, op: drifting if op.name == "sum" else None)
    with pytest.raises(kb.KernbenchError) as error:
        branch([1, 2, 3, 1], materialize="on_demand", verify_ops=True)
    sentence = str(error.value)
    assert sentence.startswith("do not use this result: what ")
    line = branching.__code__.co_firstlineno + 4
    assert f"at {__file__}:{line} read while the run went on, computed again, " in sentence
    assert "got 11.5, expected 10.5" in sentence


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_script_gets_is_confirmed(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each array that a launch changed is counted once; what is too large to be kept leaves the run unverified."""
    if not kept:
        monkeypatch.setattr(on_demand, "_KEPT_BYTES", 12)
    with kb.triton("tiny") as sim:
        kernel = scaling()
        x, y, z = np.arange(4, dtype=np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
        kernel[(1,)](x, y, 4, BLOCK=4)
        kernel[(1,)](y, z, 4, BLOCK=4)
    assert z.tolist() == [0, 4, 8, 12] and sim.result is not None
    assert sim.result.host_reads.words == f"host reads: {2 if kept else 0} of 2 confirmed"
    assert sim.verified is kept
