"""Kernels in files, and jit functions in Python, that are run alone: `kernbench run FILE.py:KERNEL`, `kb.launch`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.triton import kernel_program
from kernbench_core.cli import main
from kernbench_core.host.parameters.kernel_argument import NewArray
from kernbench_core.plugins import Plugins
from kernbench_core.values.dtypes import NAMES
from tests.builtin.triton.kernels import scaling

KERNELS = '''
import triton
import triton.language as tl

@triton.jit
def axpy(x, y, out, n, a, BLOCK: tl.constexpr = 64):
    """Add a times x to y."""
    columns = tl.num_programs(1)
    at = (tl.program_id(0) * columns + tl.program_id(1)) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * a + tl.load(y + at, mask=at < n), mask=at < n)

@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (16, 64)], key=["n"], reset_to_zero=["total"])
@triton.heuristics({"WHOLE": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def tuned(x, total, n, BLOCK: tl.constexpr, WHOLE: tl.constexpr, TO: tl.constexpr = tl.float32, HOW: tl.constexpr = ""):
    if HOW == "count":
        tl.store(total, tl.load(total) + n)
        return
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + at) if WHOLE else tl.load(x + at, mask=at < n)
        tl.store(total + at, v.to(TO), mask=at < n)

def own(x, out, n, scale, tl):
    tl.store(out + tl.arange(0, n), tl.load(x + tl.arange(0, n)) * scale)
'''

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], plugins: Plugins) -> Call:
    """Give a function that does what `kernbench` does, beside a file of kernels; it gives code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNELS)
    rng = np.random.default_rng(3)
    for name in ("X", "Y"):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal((30, 25)).astype(np.float32))

    def run(*args: str) -> tuple[int, str, str]:
        return main(args, plugins), *capfd.readouterr()

    return run


AXPY = ("run", "k.py:axpy", "--topology", "tiny", "-p", "x=X.npy", "-p", "y=Y.npy", "-p", "out=empty:f32:750")


def test_a_kernel_in_a_file_is_run_and_run_again(call: Call) -> None:
    """Its output is a file, as numpy computes it; the given files stay; time and log are those of `kb.triton`."""
    before = [Path(f"{name}.npy").read_bytes() for name in "XY"]
    code, out, errors = call(*AXPY, "-p", "n=750", "-p", "a=0.5", "--grid", "4,3", "--out", "o", "--json")
    assert (code, errors) == (0, "")
    found = json.loads(out)
    assert [Path(f"{name}.npy").read_bytes() for name in "XY"] == before
    x, y = np.load("X.npy").ravel(), np.load("Y.npy").ravel()
    assert np.array_equal(np.load("o/outputs/out.npy"), x * np.float32(0.5) + y)
    assert found["params"]["out"] == "empty:f32:750"
    assert found["manifest"]["grid"] == "4,3"
    assert (found["manifest"]["materialize"], found["manifest"]["race_by"]) == ("on_demand", "program")
    assert [each["grid"] for each in found["launches"]] == [[4, 3, 1]]
    code, out, _ = call("rerun", "o/manifest.json")
    assert (code, out.split(":")[0]) == (0, "same op log")


def test_an_autotuned_kernel_chooses_and_tells(call: Call) -> None:
    """Each configuration is a row; what it chose is what runs; dtypes and texts are constants of compile time."""
    given = ("run", "k.py:tuned", "--topology", "tiny", "-p", "x=X.npy", "-p", "n=750", "--grid", "1", "--json")
    code, out, _ = call(*given, "-p", "total=zeros:f16:750", "-p", "TO=tl.float16", "--outputs", "--out", "o")
    found = json.loads(out)
    assert code == 0
    assert [row["chosen"] for row in found["rows"]] == [False, True]
    assert found["rows"][1]["time_ns"] < found["rows"][0]["time_ns"]
    assert found["launches"][0]["time_ns"] == found["rows"][1]["time_ns"]
    assert np.array_equal(np.load("o/outputs/total.npy"), np.load("X.npy").ravel().astype(np.float16))
    np.save("T.npy", np.full(3, 5, np.int32))
    call(*given, "-p", "total=T.npy", "-p", "HOW=count", "--out", "o2")
    assert np.load("o2/outputs/total.npy").tolist() == [750, 0, 0], "zeroed for the launch, as for each trial"
    assert np.load("T.npy").tolist() == [5, 5, 5]


def test_an_own_kernel_in_a_file(call: Call) -> None:
    """A function with `tl` is one; without a grid there is a program for each PE."""
    code, out, _ = call(
        "run", "k.py:own", "--topology", "tiny", "--json", "-p", "x=X.npy", "-p", "out=zeros:f32:9", "-p", "n=9", "-p",
        "scale=2", "--out", "o",
    )  # fmt: skip
    assert (code, json.loads(out)["launches"][0]["grid"]) == (0, [4, 1, 1])
    assert np.array_equal(np.load("o/outputs/out.npy"), np.load("X.npy").ravel()[:9] * 2)


def test_its_parameters_are_listed(call: Call) -> None:
    """What autotune and heuristics give is not asked for."""
    code, out, _ = call("list", "k.py:tuned", "--json")
    params = json.loads(out)["bench"]["params"]
    assert code == 0
    assert [(each["name"], each["type"], each["required"]) for each in params] == [
        ("x", "argument", True), ("total", "argument", True), ("n", "argument", True), ("TO", "constant", False),
        ("HOW", "constant", False),
    ]  # fmt: skip


_GRID = (
    "grid must be one to three positive integers, as 64 or 8,4, or made of the kernel's parameters, as "
    "'cdiv(n, BLOCK)', not"
)
_FORMS = "a number, true, false, none, a .npy file, empty:DTYPE:SHAPE or zeros:DTYPE:SHAPE"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("-p", "n=7", "-p", "a=1"), "kernel 'k:axpy' must have a grid; add --grid X, --grid X,Y or --grid X,Y,Z."),
        (("-p", "n=7", "--grid", "1"), "kernel 'k:axpy' needs a value for 'a'; give it with -p a=VALUE."),
        (("-p", "N=7", "--grid", "1"), "kernel 'k:axpy' has no parameter 'N'; its parameters are: x, y, out, n, a, "
         "BLOCK. Did you mean 'n'?"),
        (("-p", "n=seven", "--grid", "1"), f"parameter 'n' of kernel 'k:axpy' must be {_FORMS}, not 'seven'."),
        (("-p", "n=no.npy", "--grid", "1"), f"parameter 'n' of kernel 'k:axpy' must be {_FORMS}, not 'no.npy' (there "
         "is no such file)."),
        (("-p", "n=empty:f32", "--grid", "1"), f"parameter 'n' of kernel 'k:axpy' must be {_FORMS}, not 'empty:f32' "
         "(write empty:DTYPE:SHAPE, as empty:f32:8,4)."),
        (("-p", "n=zeros:f32:4,0", "--grid", "1"), f"parameter 'n' of kernel 'k:axpy' must be {_FORMS}, not "
         "'zeros:f32:4,0' (its shape is not one to be made; write zeros:DTYPE:SHAPE, as zeros:f32:8,4)."),
        (("-p", "n=C.npy", "--grid", "1"), f"parameter 'n' of kernel 'k:axpy' must be {_FORMS}, not 'C.npy' (its dtype "
         f"is complex64, none of {', '.join(NAMES)})."),
        (("--grid", "4x3"), f"{_GRID} '4x3'."),
        (("--grid", "0"), f"{_GRID} '0'."),
        (("--grid", "n ** 2"), f"{_GRID} 'n ** 2'."),
        (("--grid", "cdiv(n)"), f"{_GRID} 'cdiv(n)'."),
        (("--grid", "open(n, n)"), f"{_GRID} 'open(n, n)'."),
        (("-p", "n=7", "-p", "a=1", "--grid", "cdiv(m, 4)"), "--grid cdiv(m, 4) must be made of parameters of kernel "
         "'k:axpy', which are x, y, out, n, a, BLOCK, not of 'm'; correct the name."),
        (("--grid", "1,1,1,1"), f"{_GRID} '1,1,1,1'."),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_kernel_is_told(call: Call, args: tuple[str, ...], sentence: str) -> None:
    """A sentence each, before anything runs."""
    np.save("C.npy", np.zeros(3, np.complex64))
    assert call(*AXPY, *args) == (2, "", f"error: {sentence}\n")


def test_a_grid_of_the_kernels_parameters(call: Call) -> None:
    """Each configuration has its own; what is no positive number for the arguments is told."""
    code, out, _ = call(*AXPY, "-p", "n=750", "-p", "a=1", "--grid", "max(2, 1), cdiv(n, BLOCK) - 12 // 2", "--json")
    assert (code, json.loads(out)["launches"][0]["grid"]) == (0, [2, 6, 1])
    given = ("run", "k.py:tuned", "--topology", "tiny", "-p", "x=X.npy", "-p", "total=empty:f32:750", "-p", "n=100")
    code, out, _ = call(*given, "--grid", "cdiv(n, BLOCK)", "--json")
    assert (code, json.loads(out)["launches"][0]["grid"]) == (0, [2, 1, 1])
    own = (*given[:1], "k.py:own", *given[2:6], "-p", "out=zeros:f32:9", "-p", "n=9", "-p", "scale=2.5")
    code, out, _ = call(*own, "--grid", "min(n, 3)", "--json")
    assert (code, json.loads(out)["launches"][0]["grid"]) == (0, [3, 1, 1])
    for grid, sentence in (
        ("n - 9", "must be of positive integers for the kernel's parameters, not (0,); correct it."),
        ("n // (n - 9)", "must not divide by 0 for the kernel's parameters; correct it."),
        ("scale", "must be made of the kernel's parameters that are integers, not of 'scale', which is of type float; "
         "correct it."),
    ):  # fmt: skip
        code, _, errors = call(*own, "--grid", grid)
        assert (code, errors.splitlines()[0]) == (2, f"error: --grid {grid} {sentence}")


@pytest.mark.parametrize("grid", [[], 0, (4, 0), (True,), 2.5, {}])
def test_what_is_no_grid_in_python(grid: Any) -> None:
    """Neither no extents, nor what does not count."""
    with pytest.raises(kb.KernbenchError) as error:
        kb.run("gemm", "tiny", grid=grid)
    assert str(error.value) == f"grid must be one to three positive integers, as 64 or 8,4, not {grid!r}."


def test_a_bench_has_no_grid(call: Call) -> None:
    """Only kernels do."""
    assert call("run", "gemm", "--grid", "4") == (
        2, "", "error: --grid must be given with a kernel, and 'gemm' is a bench; drop it.\n"
    )  # fmt: skip


def test_kb_launch_takes_a_jit_function() -> None:
    """Outside of `kb.triton`, tuned or not; the caller's arrays stay, one that is given twice is one tensor."""
    with kb.triton("tiny"):
        import triton

        kernel = scaling()
        tuned = triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (16, 64)], key=["n"])(kernel)
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    for function, grid, given in ((kernel, 7, {"BLOCK": 16}), (tuned, lambda meta: (-(-100 // meta["BLOCK"]),), {})):
        found = kb.launch(
            function, x, y, 100, topology="tiny", grid=grid if callable(grid) else (grid,), **given  # type: ignore[arg-type]
        )
        assert np.array_equal(found.outputs["y_ptr"], 2 * x)
        assert not y.any()
    assert [row["chosen"] for row in found.rows] == [False, True]
    again = kb.launch(kernel, x, x, 100, topology="tiny", grid=(7,), BLOCK=16)
    assert list(again.outputs) == ["x_ptr"]
    with pytest.raises(kb.KernbenchError) as error:
        kb.launch(kernel, x, y, 100, topology="tiny", BLOCK=16)
    assert str(error.value) == (
        "kb.launch: kernel 'scale_kernel' must have a grid; add grid=(x,), grid=(x, y) or grid=(x, y, z)."
    )


def test_new_arrays_are_tensors_of_their_own() -> None:
    """Each is another one, whatever object of it lives where that of an earlier one did."""
    kernel = kernel_program.SingleLaunch(None, None)  # type: ignore[arg-type]
    held = [kernel.hold(f"x{i}", NewArray("f32", (4,), False), False) for i in range(20)]
    assert len({id(each) for each in held}) == 20
