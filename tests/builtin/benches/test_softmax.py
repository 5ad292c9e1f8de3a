"""softmax: right for any size and dtype; each row is normalised."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_builtin.benches.softmax import softmax
from kernbench_core.errors import UsageError


@pytest.mark.parametrize(
    ("topology", "dtype"),
    [
        *(("tiny", dtype) for dtype in ("f32", "f16", "bf16")),
        ("packages", "f32"),
        *(("default", dtype) for dtype in ("f32", "f16", "bf16")),
    ],
)
def test_rows_are_right(run, topology, dtype) -> None:
    assert run("softmax", topology, rows=37, cols=33, block=4, dtype=dtype).verified


@pytest.mark.parametrize(("rows", "cols", "block"), [(1, 1, 1), (3, 5, 8), (9, 257, 2)])
def test_sizes_that_no_pe_and_no_block_divides(run, rows, cols, block) -> None:
    assert run("softmax", rows=rows, cols=cols, block=block).verified


def test_one_package_of_two(run) -> None:
    result = run("softmax", "packages", rows=10, cols=64, options={"device": "sip:1"})
    assert result.verified
    assert {op.component_id.partition(".")[0] for op in result.op_log} == {"sip1"}


def test_the_reference_is_a_softmax() -> None:
    rows = softmax(np.array([[0.0, np.log(3.0)], [1000.0, 1000.0]]))
    np.testing.assert_allclose(rows, [[0.25, 0.75], [0.5, 0.5]])


def test_sizes_must_be_positive(run) -> None:
    with pytest.raises(UsageError) as caught:
        run("softmax", block=0)
    assert str(caught.value) == "parameter 'block' must be a positive integer, not 0; give 1 or more."
