"""What kernels written in Triton read into Python: each scalar that Python asks for its truth or value, once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_core.cli import main

KERNELS = """
import triton
import triton.language as tl


@triton.jit
def one_condition(x, out):
    if tl.load(x + 3) > 0:
        tl.store(out, 1)


@triton.jit
def of_floats(x, out):
    if tl.load(x + 3) * 1.5 > 0:
        tl.store(out, 1)


@triton.jit
def both(x, out):
    if tl.load(x + 3) > 0 and tl.load(x + 4) > 0:
        tl.store(out, 1)


@triton.jit
def the_first_decides(x, out):
    if tl.load(x + 3) < 0 and tl.load(x + 4) > 0:
        tl.store(out, 1)


@triton.jit
def either(x, out):
    if not (tl.load(x + 3) > 0 or tl.load(x + 4) > 0):
        tl.store(out, 1)


@triton.jit
def chained(x, out):
    if 0 < tl.load(x + 3) < 9:
        tl.store(out, 1)


@triton.jit
def a_bound(x, out):
    for i in range(tl.load(x + 3)):
        tl.store(out + i, 1)


@triton.jit
def a_spin(x, out):
    while tl.atomic_add(x, 1) < 2:
        pass


@triton.jit
def no_read(x, out):
    at = tl.load(x + 3)
    lanes = tl.arange(0, 16)
    tl.store(out + at + lanes, tl.load(x + tl.load(x + lanes), mask=tl.load(x + lanes) < 9), mask=lanes < 2)
    block = tl.make_block_ptr(x, (16,), (1,), (at,), (4,), (0,))
    tl.store(out + tl.arange(0, 4), tl.sum(tl.load(block)) * at)
    rows = tl.make_tensor_descriptor(x, (4, 4), (4, 1), (1, 4))
    tl.store(out + tl.arange(0, 4), tl.reshape(rows.load([at, 0]), (4,)))
    tl.device_print("at", at)
    tl.device_assert(lanes[None, :] + at < 99)
    print(at)


@triton.jit
def a_poll(x, out):
    tl.store(out, tl.atomic_poll(x + 3, 3))


@triton.jit
def an_address_of_the_host(x, out):
    y = tl.load(x).to(tl.pointer_type(tl.int32))
    tl.store(out, tl.load(y))
"""


def kernel_of(folder: Path, name: str) -> Callable[..., Any]:
    """Return a kernel of a file, as `import` gives it."""
    (folder / "reading.py").write_text(KERNELS)
    sys.modules.pop("reading", None)
    import reading  # type: ignore[import-not-found]

    found: Callable[..., Any] = getattr(reading, name)
    return found


READ = {
    "one_condition": 1, "of_floats": 1, "both": 2, "the_first_decides": 1, "either": 1, "chained": 2, "a_bound": 1,
    "a_spin": 3, "no_read": 0, "a_poll": 0,
}  # fmt: skip


@pytest.mark.parametrize("pipelined", [False, True])
@pytest.mark.parametrize("name", READ)
def test_an_element_that_decides_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pipelined: bool
) -> None:
    """And what addresses, masks and prints take of tiles is not read."""
    monkeypatch.syspath_prepend(str(tmp_path))
    x, out = np.arange(16, dtype=np.int32), np.zeros(32, np.int32)
    with kb.triton("tiny", pipeline_loops=pipelined) as sim:
        kernel_of(tmp_path, name)[(1,)](x, out)
    assert sim.result is not None
    found = sim.result.python_reads
    assert (0 if found is None else found.elements) == READ[name]
    if found is not None:
        assert {each.line.rpartition(":")[0] for each in found.lines} == {str(tmp_path / "reading.py")}


def test_addresses_of_the_host_are_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a kernel finds in memory, too."""
    monkeypatch.syspath_prepend(str(tmp_path))
    y, out = np.full(1, 7, np.int32), np.zeros(1, np.int32)
    with kb.triton("tiny") as sim:
        addresses = np.array([sim.data_ptr(y)], np.int64)
        kernel_of(tmp_path, "an_address_of_the_host")[(1,)](addresses, out)
    assert sim.result is not None
    assert out.tolist() == [7]
    assert sim.result.python_reads is None


SCRIPT = (
    KERNELS
    + """
import sys
import numpy as np


@triton.jit
def sums(x, out, n):
    total = 0.0
    for i in range(n):
        if tl.load(x + i) > 0:
            total += 1.0
    tl.store(out, total)


x, out = np.ones(300, np.int32), np.zeros(1, np.float32)
sums[(1,)](x, out, int(sys.argv[1]))
assert out[0] == int(sys.argv[1])
"""
)


def test_a_script_may_be_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`kernbench triton --strict-python` exits with 7 where more than 256 elements are read."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    given = ["triton", "--topology", "tiny"]
    assert main([*given, "--strict-python", str(script), "2"]) == 0
    assert "\n2 elements read into Python, of 2 loaded, in 2 ns of the PEs' CPUs" in capsys.readouterr().out
    assert main([*given, "--strict-python", str(script), "257"]) == 7
    assert f"  257 at {script}:" in capsys.readouterr().err
