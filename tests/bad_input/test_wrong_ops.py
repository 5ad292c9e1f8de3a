"""`--verify-ops`: an op that phase 2 computed wrongly is named on the command line, with exit code 1."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from kernbench_core.compute.backends import Backend

BENCH = """
import numpy as np

def kernel(x, y, tl):
    me = tl.program_id(0)
    a = tl.load(x, shape=(16, 16))
    b = tl.load(y, shape=(16, 16))
    mask = tl.arange(0, 16) < 12
    tl.store(y + 256, tl.load(x + tl.arange(0, 16), mask=mask, other=2.0)[None, :] + tl.dot(a, b * (me + 1)))

def bench(rt):
    x = rt.tensor(np.eye(16, dtype=np.float16))
    y = rt.tensor(np.ones((32, 16), np.float16))
    rt.launch(kernel, x, y, grid=(1,))
    rt.check(x, np.eye(16, dtype=np.float16))
"""


@pytest.fixture
def wrong_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make products of phase 2 wrong in one element."""
    product = Backend.product

    def wrong(backend: Backend, a: Any, b: Any) -> Any:
        found = product(backend, a, b)
        found[..., 3, 5] += 1
        return found

    monkeypatch.setattr(Backend, "product", wrong)


def test_right_ops_are_told_so(folder: Any) -> None:
    """Loads, stores, a masked load, products and sums: counted in the verdict, and exit code 0."""
    folder.write("k.py", BENCH)
    outcome = folder.run("k.py", "--topology", "tiny", "--verify-ops", "-q")
    assert re.fullmatch(
        r"k on tiny: [\d.]+ us, data not verified \(--verify-data does\), ops verified: 8\n", outcome.out
    )
    assert (outcome.code, outcome.err) == (0, "")


def test_the_first_wrong_op_is_named_with_its_line(folder: Any, wrong_products: None) -> None:
    """Though the tensor that the bench checks is right: the op, its unit, line, dtype and element; exit code 1."""
    folder.write("k.py", BENCH)
    outcome = folder.run("k.py", "--topology", "tiny", "--verify-data", "--verify-ops")
    assert "\ndata verified: 1 tensor, largest error 0, OPS ARE WRONG: 1 of 8\n" in outcome.out
    told = " ".join(line.strip() for line in outcome.out.splitlines())
    assert re.search(
        r"gemm_f16 \(op \d+ of PE 0, sip0\.cube0\.pe0\.pe_gemm, [\d.]+ ns\) at \S*k\.py:9, which gives f32, must give "
        r"what it gives by itself, but 1 of 256 elements differ; the worst is \[3, 5\]: got 2\.0, expected 1\.0\.",
        told,
    ), told
    assert outcome.code == 1


def test_json_has_the_verdict_on_ops(folder: Any, wrong_products: None) -> None:
    """Counts and texts beside those of tensors; the manifest has the option, so that a rerun verifies again."""
    folder.write("k.py", BENCH)
    outcome = folder.run("k.py", "--topology", "tiny", "--verify-ops", "--json")
    found = json.loads(outcome.out)
    assert (found["verified"], found["ops_verified"], found["ops_checked"], found["ops_wrong"]) == (None, False, 8, 1)
    assert [re.search(r"the worst is \[3, 5\]", text) is not None for text in found["op_failures"]] == [True]
    assert (outcome.code, found["manifest"]["verify_ops"]) == (1, True)


def test_it_needs_data(folder: Any) -> None:
    """Shapes alone cannot be verified."""
    folder.write("k.py", BENCH)
    outcome = folder.run("k.py", "--topology", "tiny", "--verify-ops", "--no-data")
    assert outcome.err == "error: verifying data needs data; leave out either --verify-ops or --no-data.\n"
    assert outcome.code == 2


def test_the_fault_is_one_of_phase_2(wrong_products: None) -> None:
    """The tests above break what makes the first result, and not the second one."""
    assert float(Backend().product(np.eye(8, dtype=np.float32), np.eye(8, dtype=np.float32))[3, 5]) == 1.0
