"""Accesses outside of tensors: an error, or with `oob="poison"` what numpy says of the elements that are there."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench as kb
from kernbench_builtin.saved.saved_run import load_run
from kernbench_core.cli import main
from kernbench_core.memory.outside import OutsideAccess
from kernbench_core.oplog.description import Access
from kernbench_core.plugins import Plugins
from kernbench_core.values.dtypes import NAMES, is_float, numpy_dtype
from kernbench_core.values.region import Region


def copy(x: Any, y: Any, start: int, step: int, low: int, high: int, other: Any, n: int, tl: Any) -> None:
    at = start + tl.arange(0, n) * step
    lane = tl.arange(0, n)
    mask = (lane >= low) & (lane < high)
    tl.store(y + lane, tl.load(x + at, mask=mask, other=other) if other is not None else tl.load(x + at, mask=mask))


@settings(max_examples=12)
@given(
    start=st.integers(-9, 20), step=st.integers(-2, 3), low=st.integers(0, 8), high=st.integers(0, 8),
    other=st.sampled_from([None, 2, 0]), size=st.integers(1, 12),
)  # fmt: skip
def test_reads_give_poison_where_nothing_is(start: int, step: int, low: int, high: int, other: Any, size: int) -> None:
    """Lanes outside are NaN, masked ones `other`, or NaN without one; they are counted; inside nothing changes."""
    x = np.arange(size, dtype=np.float32)
    y = np.zeros(8, np.float32)
    found = kb.launch(copy, x, y, start, step, low, high, other, 8, topology="tiny", grid=(1,), oob="poison")
    expected, outside = [], 0
    for lane in range(8):
        at = start + lane * step
        if not low <= lane < high:
            expected.append(np.nan if other is None else other)
        elif 0 <= at < size:
            expected.append(x[at])
        else:
            expected.append(np.nan)
            outside += 1
    assert np.array_equal(found.outputs["y"], np.array(expected, np.float32), equal_nan=True)
    assert sum(each.elements for each in found.outside) == outside
    assert all(not each.writes for each in found.outside)


@pytest.mark.parametrize("start", [1 << 62, -(1 << 63)])
def test_reads_give_poison_however_far_outside_they_are(start: int) -> None:
    """Elements that begin at byte 0 again, were 64 bits all that a byte's place has, are outside like any other."""
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    found = kb.launch(copy, x, y, start, 1, 0, 8, None, 8, topology="tiny", grid=(1,), oob="poison")
    assert np.isnan(found.outputs["y"]).all()
    assert [each.elements for each in found.outside] == [8]


@pytest.mark.parametrize("dtype", NAMES)
def test_poison_of_each_dtype(dtype: str) -> None:
    """NaN of floats, bytes 0xa5 of integers, True."""
    kind = numpy_dtype(dtype)
    x, y = np.zeros(2, kind), np.zeros(4, kind)
    found = kb.launch(copy, x, y, 0, 1, 0, 4, None, 4, topology="tiny", grid=(1,), oob="poison").outputs["y"]
    assert not found[:2].any()
    if is_float(dtype):
        assert np.isnan(found[2:].astype(np.float32)).all()
    else:
        assert found[2:].tobytes() == (b"\x01\x01" if dtype == "bool" else b"\xa5" * 2 * kind.itemsize)


KERNELS = '''
import triton
import triton.language as tl

@triton.jit
def shift(x, y, z, n, HIDE: tl.constexpr):
    at = tl.program_id(0) * 16 + tl.arange(0, 16)
    right = tl.load(x + at + 1)
    sum = right + tl.load(x + at)
    if HIDE:
        sum = tl.where(at < n - 1, sum, 0.0)
    tl.store(y + at, sum)
    tl.store(z + tl.program_id(0), tl.sum(sum, 0))
    if n > 1000:
        tl.store(z - 1, tl.load(z + n))
'''


def run(plugins: Plugins, hide: bool, *more: str) -> int:
    arrays = ("-p", "x=X.npy", "-p", "y=empty:f32:30", "-p", "z=empty:f32:2", "-p", f"HIDE={str(hide).lower()}")
    return main(("run", "k.py:shift", "--topology", "tiny", *arrays, "--grid", "2", *more), plugins)


def test_poison_goes_on_and_ends_where_it_is_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], plugins: Plugins
) -> None:
    """What is computed of it is NaN, in a fresh executor of the saved log too; with the lanes hidden results are right.

    The count stays; two runs are alike; the page lists it.
    """
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text(KERNELS)
    x = np.random.default_rng(1).standard_normal(30).astype(np.float32)
    np.save("X.npy", x)
    logs = []
    for hide, out in ((False, "a"), (True, "b"), (True, "c")):
        assert run(plugins, hide, "-p", "n=30", "--oob", "poison", "--out", out, "--json", "--verify-ops") == 0
        found = json.loads(capsys.readouterr().out)
        sums = np.append(x[:-1] + x[1:], 0 if hide else np.nan).astype(np.float32)
        assert np.array_equal(np.load(f"{out}/outputs/y.npy"), sums, equal_nan=True)
        written = np.load(f"{out}/outputs/z.npy")
        assert np.allclose(written, [sums[:16].sum(), sums[16:].sum()], equal_nan=True)
        reads, again, stores = found["outside"]
        assert [each["elements"] for each in (reads, again, stores)] == [3, 2, 2]
        assert [each["writes"] for each in (reads, again, stores)] == [False, False, True]
        assert (reads["name"], reads["index"], reads["count"]) == ("x", [30], 1)
        assert found["manifest"]["oob"] == "poison"
        logs.append(found["op_log_sha256"])
        executor = load_run(Path(out) / "oplog").executor()
        (last,) = [each for each in executor.op_log if each.params.get("nbytes") == 4 and each.op_id[0] == 1]  # type: ignore[index]
        place = Access("hbm", (Region(last.params["dst_addr"], 4),))
        assert executor.verify({"z": (place, written[1:])}).failures == ()
        assert math.isnan(written[1]) is not hide
    assert logs[1] == logs[2]
    assert main(("rerun", "b/manifest.json"), plugins) == 0
    assert main(("report", "b", "-o", "page.html"), plugins) == 0
    assert "Outside tensors" in Path("page.html").read_text()


def test_it_is_an_error_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], plugins: Plugins
) -> None:
    """The sentence names the tensor, the element and the line; with poison the page says it in words."""
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text(KERNELS)
    np.save("X.npy", np.ones(30, np.float32))
    assert run(plugins, True, "-p", "n=30") == 6
    assert capsys.readouterr().err.splitlines()[0] == (
        f"error: tl.load at {tmp_path}/k.py:8 must stay inside tensor 'x' of shape (30,), and reaches element [32]; "
        "correct the index arithmetic, or mask it off."
    )
    assert run(plugins, True, "-p", "n=3000", "--oob", "poison", "-v") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "data not verified (--verify-data does), 11 elements outside tensors tl.load at" in out
    assert (
        f"tl.store at {tmp_path}/k.py:15 reached 2 elements outside tensor 'z' of shape (2,) in 2 calls, dropped; "
        "the first was z[-1], on sip0.cube0.pe0 "
    ) in out


def test_accesses_in_words() -> None:
    """One element, and several calls."""
    one = OutsideAccess("tl.load", "k.py:3", "pe0", "x", (4, 2), (4, 1), False, 1, 1)
    assert str(one) == (
        "tl.load at k.py:3 reached 1 element outside tensor 'x' of shape (4, 2), poison; the first was x[4, 1], on pe0"
    )


def test_a_choice_of_oob_is_checked() -> None:
    with pytest.raises(kb.KernbenchError) as error:
        kb.launch(copy, oob="ignore", topology="tiny")
    assert str(error.value).startswith("kb.launch: the arguments do not fit")
    with pytest.raises(kb.KernbenchError) as error:
        kb.run("gemm", "tiny", oob="ignore")
    assert str(error.value) == "oob must be 'error' or 'poison', not 'ignore'."


def test_files_written_in_triton_take_poison() -> None:
    """Autotune's trials, too."""
    x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    with kb.triton("tiny", oob="poison") as sim:
        import triton
        import triton.language as tl

        @triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (1, 16)], key=[])
        @triton.jit
        def double(x_ptr, y_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803 - as kernels are written
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y_ptr + at, tl.load(x_ptr + at) * 2)

        double[lambda meta: (-(-10 // meta["BLOCK"]),)](x, y)
    assert y.tolist() == (2 * x).tolist()
    assert [each.elements for each in sim.result.outside] == [6, 6]  # type: ignore[union-attr]


def test_atomic_ops_leave_out_what_is_outside() -> None:
    """Of a tile, some lanes; of one pointer, all; inside nothing changes, and each is counted."""
    x, old = np.arange(6, dtype=np.int32), np.full(8, -1, np.int32)
    with kb.triton("tiny", oob="poison") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, old_ptr: Any) -> None:
            at = tl.arange(0, 8)
            tl.store(old_ptr + at, tl.atomic_add(x_ptr + at - 1, 10, mask=at < 6))
            tl.atomic_max(x_ptr - 1, 7)

        kernel[(1,)](x, old)
    assert x.tolist() == [10, 11, 12, 13, 14, 5]
    assert old.tolist() == [0, 0, 1, 2, 3, 4, 0, 0]
    assert sim.result is not None
    assert [(each.call, each.elements, each.writes, each.index) for each in sim.result.outside] == [
        ("tl.atomic_add", 1, True, (-1,)), ("tl.atomic_max", 1, True, (-1,)),
    ]  # fmt: skip
