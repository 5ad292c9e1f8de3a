"""A dtype is one record, and a math op one beside its second way: where a copy of the sources has them, kernels do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
PACKAGES = ("kernbench_core", "kernbench_builtin", "kernbench_ccl")
RECORD = """DTYPES: Final[Mapping[str, DTypeInfo]] = MappingProxyType(
    {
        record.name: record
        for record in (
            DTypeInfo(
                name="f8e4m3fnuz", kind="float", itemsize=1, rank=1, numpy_name="float8_e4m3fnuz", library="ml_dtypes",
                triton="float8e4b8", tolerance=0.125, digits=4, least=2.0**-10, greatest=240.0, beside="f16",
                meets_integers=False,
            ),
"""
OP = """OPS: Final = (
    _of_float("ln1p", np.log1p, LOOKUP + STEP, triton=_ROUNDED),
"""
SECOND = '"ln1p": lambda x: np.log(1.0 + x),'
OF_DTYPE = '''
"""A product, a sum and a look at what a new dtype holds."""
import ml_dtypes
import numpy as np


def kernel(x_ptr, y_ptr, product_ptr, sum_ptr, mixed_ptr, stop_ptr, tl):
    x, y = tl.load(x_ptr, shape=(16, 16)), tl.load(y_ptr, shape=(16, 16))
    tl.store(product_ptr, tl.dot(x, y))
    tl.store(sum_ptr, (x + y).to("f32"))
    tl.store(mixed_ptr, x + y.to(tl.float8e5))
    tl.store(stop_ptr, (x.to(tl.float32) * 1000.0).to(tl.float8e4b8))


def bench(rt):
    kind = ml_dtypes.float8_e4m3fnuz
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-8, 9, (16, 16)).astype(kind) for _ in range(2))
    a, b = rt.tensor(x, name="a"), rt.tensor(y, name="b")
    assert a.dtype == "f8e4m3fnuz"
    outs = [rt.empty((16, 16), dtype, name=dtype) for dtype in ("f32", "f32", "f16", "f8e4m3fnuz")]
    rt.launch(kernel, a, b, *outs, grid=(1,))
    wide = [each.astype(np.float32) for each in (x, y)]
    wanted = (
        wide[0] @ wide[1],
        (wide[0] + wide[1]).astype(kind).astype(np.float32),
        (wide[0] + wide[1].astype(ml_dtypes.float8_e5m2).astype(np.float32)).astype(np.float16),
        np.clip(wide[0] * 1000, -240, 240).astype(kind),
    )
    for out, right in zip(outs, wanted, strict=True):
        rt.copy_to_host(out)
        rt.check(out, right, rtol=0, atol=0)
'''

OF_OP = '''
"""The logarithm of one more: of a tile, as its method, and in a composite."""
import numpy as np


def kernel(x_ptr, y_ptr, z_ptr, out_ptr, tl):
    x = tl.load(x_ptr, shape=(16, 16))
    tl.store(y_ptr, tl.ln1p(x))
    tl.store(z_ptr, x.to(tl.float16).ln1p())
    tl.composite("math", tl.ref(x_ptr, (16, 16)), out=out_ptr, math_op="relu", epilogue=["ln1p"], wait=True)


def bench(rt):
    x = np.random.default_rng(3).uniform(0, 9, (16, 16)).astype(np.float32)
    outs = [rt.empty((16, 16), dtype, name=name) for dtype, name in (("f32", "y"), ("f16", "z"), ("f32", "out"))]
    rt.launch(kernel, rt.tensor(x, name="x"), *outs, grid=(1,))
    for out in outs:
        rt.copy_to_host(out)
        rt.check(out, np.log(1 + x.astype(np.float64)))
'''


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the packages, and add a record to each of two files, and to a third how the op is computed a second way."""
    folder = tmp_path_factory.mktemp("added")
    for name in PACKAGES:
        shutil.copytree(REPO / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, first, added in (
        ("kernbench_core/values/dtypes.py", "\n".join(RECORD.splitlines()[:4]) + "\n", RECORD),
        ("kernbench_core/compute/ops/special.py", OP.partition("\n")[0] + "\n", OP),
        ("kernbench_builtin/verify/elementwise.py", '    "exp": np.exp,', '    "exp": np.exp, ' + SECOND),
    ):
        file = folder / name
        text = file.read_text(encoding="utf-8")
        assert text.count(first) == 1
        file.write_text(text.replace(first, added), encoding="utf-8")
    (folder / "of_dtype.py").write_text(OF_DTYPE, encoding="utf-8")
    (folder / "of_op.py").write_text(OF_OP, encoding="utf-8")
    return folder


RUN = ("--topology", "tiny", "--verify-data", "--verify-ops", "--json")
COMMANDS = {
    "of the dtype": ("run", "of_dtype.py", *RUN),
    "of the op": ("run", "of_op.py", *RUN),
    "matrix unit": ("components", "builtin.pe_gemm", "--json"),
    "vector unit": ("components", "builtin.pe_math", "--json"),
    "collective": ("ccl", "all_reduce", "-d", "float8e4b8", "-b", "256", "-e", "256", "--ranks", "2"),
}
IN_TURN = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from kernbench_core.cli import main
told = {}
for name, words in json.loads(sys.argv[1]).items():
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(words)
    told[name] = code, out.getvalue(), err.getvalue()
print(json.dumps(told))
"""
Told = Mapping[str, tuple[int, str, str]]


@pytest.fixture(scope="module")
def told(tree: Path) -> Told:
    """Carry out all commands in one process of that tree; give the exit code, stdout and stderr of each."""
    done = subprocess.run(
        [sys.executable, "-c", IN_TURN, json.dumps(COMMANDS)], cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: Told = json.loads(done.stdout)
    return found


def table(told: Told, unit: str, name: str) -> dict[str, float]:
    """Give a table of numbers among the parameters of a model."""
    declared = json.loads(told[unit][1])["component"]["params"]
    return next(param for param in declared if param["name"] == name)["default"]


def verified(told: Told, name: str) -> bool:
    """Tell whether a run was right; one that failed says why."""
    code, out, err = told[name]
    assert code == 0, err
    return json.loads(out)["verified"] is True


def test_a_kernel_computes_in_a_dtype_that_one_record_added(told: Told) -> None:
    """Loaded, multiplied, added, met with another 8-bit float, cast and stored: right, computed again too."""
    assert verified(told, "of the dtype")


def test_its_rate_is_that_of_its_size(told: Told) -> None:
    """The matrix unit multiplies it as it does int8; presets need not name it."""
    rates = table(told, "matrix unit", "rates")
    assert rates["f8e4m3fnuz"] == rates["int8"] == 2


def test_a_kernel_calls_an_op_that_one_record_added(told: Told) -> None:
    """As a function, as a method, and as a step of an epilogue: right, computed a second way too; it costs 5 cycles."""
    assert verified(told, "of the op")
    assert table(told, "vector unit", "costs")["ln1p"] == 5


def test_a_collective_reduces_it(told: Told) -> None:
    """By its exact integers, and by real numbers within what the sizes of its steps allow."""
    code, _, err = told["collective"]
    assert code == 0, err
