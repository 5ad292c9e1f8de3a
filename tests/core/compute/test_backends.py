"""What computes floats: numpy by itself, PyTorch where it is installed, on a GPU where there is one."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

import kernbench_core as kb
import kernbench_core.compute.backends.torch_backend as torch_backend_module
from kernbench_core.compute.backends import Backend, backend_of
from kernbench_core.compute.backends.torch_backend import TorchBackend
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.compute.ops import OPS, Form, MathOp
from kernbench_core.compute.ops.record import MathFunction
from kernbench_core.errors import UsageError
from kernbench_core.values.arrays import Array
from kernbench_core.values.dtypes import info, numpy_dtype, tolerance
from tests.core.compute.recorder import Recorder, host

#: Looked for now, as other tests put a module of this name beside them.
INSTALLED = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not INSTALLED, reason="PyTorch is not installed")
ODD = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, np.inf, -np.inf, np.nan]


def torch_devices() -> list[str]:
    return ["cpu", "cuda"]


@pytest.fixture(params=torch_devices())
def torch_backend(request: pytest.FixtureRequest) -> Backend:
    """Return PyTorch on the CPU, and on a GPU."""
    if not INSTALLED:
        pytest.skip("PyTorch is not installed")
    import torch

    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU that PyTorch sees")
    return backend_of(f"torch:{request.param}")


def operands(op: MathOp, dtype: str, seed: int = 5) -> Sequence[np.ndarray]:
    """Return operands of an op: odd numbers among random ones, which each meet all others."""
    rng = np.random.default_rng(seed)
    numbers = np.array([*ODD, *rng.normal(size=22)]).astype(numpy_dtype(dtype))
    first, second = numbers[:, None] + np.zeros((32, 32), numbers.dtype), numbers[None, :] + np.zeros_like(numbers)
    given = [first, np.broadcast_to(second, first.shape), first.T.copy()]
    if op.name == "where":
        given[0] = given[0] > 0
    return given[: op.arity]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_every_op_of_torch_is_what_numpy_gives(torch_backend: Backend, dtype: str) -> None:
    """Of numbers, zeros with a sign, infinities and NaN, each with each, and along each axis."""
    found = [op for op in OPS.values() if torch_backend.function(op) is not None]
    assert {"exp", "add", "where", "sum", "max"} <= {op.name for op in found}
    for op in found:
        ways = [{}, {"axis": 0}, {"axis": -1, "keepdims": True}] if op.form is Form.REDUCTION else [{}]
        for params in [*ways, {"propagate_nan": True}]:
            given = operands(op, dtype)
            function = torch_backend.function(op)
            assert function is not None
            with np.errstate(all="ignore"):
                want = op.function(params, *given)
            got = function(params, *given)
            assert got.shape == want.shape, op.name
            assert got.dtype == (bool if want.dtype == bool else numpy_dtype(dtype)), op.name
            allowed = tolerance(dtype)
            np.testing.assert_allclose(got, want, allowed, allowed, err_msg=f"{op.name} {params}")


def graph(record: Recorder) -> list:
    """Log products that share an operand, alike ones, one of integers, and float math on what they give."""
    rng = np.random.default_rng(11)

    def operand(dtype: str = "f16"):
        return host(rng.integers(-4, 5, (8, 8)).astype(numpy_dtype(dtype)))

    shared = operand()
    made = [record.dot(operand(), shared, "f32") for _ in range(3)]
    made += [record.dot(operand("f32"), operand("f32"), "f32", transpose_b=True) for _ in range(2)]
    made.append(record.dot(operand("int8"), operand("int8"), "int32"))
    made.append(record.op("exp", [record.op("sub", [made[0], made[1]], (8, 8), "f32")], (8, 8), "f32"))
    made.append(record.op("sum", [made[-1]], (8, 1), "bf16", {"axis": 1, "keepdims": True}))
    made.append(record.op("cast", [made[2]], (8, 8), "f16"))
    made.append(record.op("add", [operand("int32"), made[5]], (8, 8), "int32"))
    return made


def test_a_graph_is_what_numpy_gives(torch_backend: Backend) -> None:
    """Floats are computed by PyTorch, integers and what it lacks by numpy; the executor says how many."""
    record = Recorder()
    made = graph(record)
    record.executor(keep_all=True).run()
    wanted = [value.array() for value in made]
    torch_backend.worth_elements = torch_backend.worth_multiplications = 0
    other = record.executor(inputs={}, keep_all=True, backend=torch_backend)
    for value, want in zip(made, wanted, strict=True):
        got = other.materialize(value)
        assert got.dtype == want.dtype
        allowed = tolerance(value.dtype) if info(value.dtype).kind == "float" else 0
        np.testing.assert_allclose(got.astype(float), want.astype(float), allowed, allowed)
    found = other.computed_by
    assert found is not None
    assert (found.backend, found.ops, found.by_numpy) == (torch_backend.name, 11, 3)
    assert found.words.startswith(f"{torch_backend.name} (torch ")
    assert found.words.endswith(", 3 of 11 ops by numpy)")


@pytest.mark.parametrize(("elements", "multiplications", "own"), [(0, 0, 8), (129, 0, 5), (0, 513, 3), (65, 513, 1)])
def test_what_is_too_little_for_a_backend_is_numpys(elements: int, multiplications: int, own: int) -> None:
    """Five products of 8 x 8 x 8 take 512 multiplications; `sub` has 128 elements, `exp` and `sum` have 64."""
    record, asked = Recorder(), []

    class Picky(Backend):
        name = "picky"
        worth_elements, worth_multiplications = elements, multiplications

        def product(self, a: Array, b: Array) -> Array:
            asked.append("product")
            return super().product(a, b)

        def function(self, op: MathOp) -> MathFunction | None:
            return lambda params, *arrays: asked.append(op.name) or op.function(params, *arrays)

    made = graph(record)
    record.executor(keep_all=True).run()
    other = record.executor(inputs={}, keep_all=True, backend=Picky())
    for value in made:
        np.testing.assert_array_equal(other.materialize(value), value.array())
    found = other.computed_by
    assert found is not None
    assert found.ops - found.by_numpy == own
    assert ("product" in asked) == (multiplications <= 512)
    assert {"sub", "exp", "sum"} & {*asked} == {
        name for name, size in (("sub", 128), ("exp", 64), ("sum", 64)) if size >= elements
    }


def test_single_ops_are_verified_against_numpy(torch_backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second way is numpy's whatever the backend is, so a wrong one is found."""
    record = Recorder()
    graph(record)
    assert record.executor(backend=torch_backend).verify_ops().ok
    right = type(torch_backend).product
    torch_backend.worth_multiplications = 0
    monkeypatch.setattr(type(torch_backend), "product", lambda self, a, b: right(self, a, b) + 1)
    record = Recorder()
    graph(record)
    assert record.executor(backend=torch_backend).verify_ops().wrong == 5


def test_read_only_and_turned_operands(torch_backend: Backend) -> None:
    """Arrays that may not be written to, and views with steps backwards, go to PyTorch without a warning."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    x.flags.writeable = False
    function = torch_backend.function(OPS["neg"])
    assert function is not None
    np.testing.assert_array_equal(function({}, x[::-1, ::-1]), -x[::-1, ::-1])
    np.testing.assert_array_equal(torch_backend.product(x, x.T), x @ x.T)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


class Sent:
    """Stand for PyTorch with a GPU: tensors are arrays, and `sent` are those that went to the GPU."""

    def __init__(self) -> None:
        self.sent: list[np.ndarray] = []

    def __getattr__(self, name: str) -> Any:
        return MagicMock(name=name)

    def from_numpy(self, array: np.ndarray) -> Any:
        return SimpleNamespace(to=lambda device: self._moved(array))

    def _moved(self, array: np.ndarray) -> Any:
        self.sent.append(array)
        return self._tensor(array.copy())

    def _tensor(self, array: np.ndarray) -> Any:
        return SimpleNamespace(held=array, nbytes=array.nbytes, cpu=lambda: SimpleNamespace(numpy=lambda: array))

    def matmul(self, a: Any, b: Any) -> Any:
        return self._tensor(a.held @ b.held)


def test_operands_stay_on_a_gpu_while_they_live_and_cannot_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """What several products read is sent once; what may be written to is sent each time; what is gone is forgotten."""
    gpu = Sent()
    backend = TorchBackend(gpu, SimpleNamespace(type="cuda"))
    many, few = np.arange(1 << 16, dtype=np.float32).reshape(256, 256), np.eye(256, dtype=np.float32)
    many.flags.writeable = False
    assert (backend.product(many, few) == many).all() and len(gpu.sent) == 2
    few *= 2
    assert (backend.product(many, few) == 2 * many).all() and len(gpu.sent) == 3
    gpu.sent.clear()
    del many
    for number in range(8):  # most probably at the address of the one before
        other = np.full((256, 256), number, np.float32)
        other.flags.writeable = False
        assert (backend.product(other, other) == 256 * number * number).all() and len(gpu.sent) == number + 1
        del other
        gpu.sent[number] = few

    monkeypatch.setattr(torch_backend_module, "KEPT_BYTES", 3 * few.nbytes)
    alive = [np.full((256, 256), number, np.float32) for number in range(4)]
    for each in alive:
        each.flags.writeable = False
        backend.product(each, each)
    gpu.sent.clear()
    backend.product(alive[3], alive[1])
    assert not gpu.sent
    backend.product(alive[0], alive[3])
    assert [each[0, 0] for each in gpu.sent] == [0]


def test_numpy_says_that_it_computed() -> None:
    """And what computed nothing says nothing."""
    record = Recorder()
    graph(record)
    executor = record.executor()
    assert executor.computed_by is None
    executor.run()
    found = executor.computed_by
    assert found is not None
    assert (found.backend, found.device, found.ops, found.by_numpy) == ("numpy", "CPU", 11, 11)
    assert found.library == f"numpy {np.__version__}"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("jax", "a backend must be numpy, torch, torch:cpu or torch:cuda, not 'jax'; give one of these."),
        (7, "a backend must be numpy, torch, torch:cpu or torch:cuda, not 7; give one of these."),
        ("torch:", "a backend must be numpy, torch, torch:cpu or torch:cuda, not 'torch:'; give one of these."),
        ("numpy:cpu", "backend 'numpy' has no device, as in 'numpy:cpu'; give --backend numpy."),
        pytest.param(
            "torch:mps", "the device of --backend torch:mps must be cpu, cuda or cuda:N; give one of these.",
            marks=needs_torch,
        ),
    ],
)  # fmt: skip
def test_a_backend_that_is_none_is_a_sentence(name: object, sentence: str) -> None:
    """Before anything is simulated: for the options of a run, too."""
    with pytest.raises(UsageError) as caught:
        backend_of(name)
    assert str(caught.value) == sentence
    with pytest.raises(UsageError) as caught:
        kb.run("no bench is looked for", backend=name)
    assert str(caught.value) == sentence


def test_pytorch_that_is_not_installed_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError) as caught:
        backend_of("torch:cuda")
    assert str(caught.value) == (
        "--backend torch:cuda needs PyTorch, which is not installed; pip install 'kernbench[torch]'."
    )


@needs_torch
def test_a_gpu_that_is_not_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many there are."""
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(UsageError) as caught:
        DataExecutor(Recorder().log, Recorder().store, backend="torch:cuda")
    assert str(caught.value) == (
        f"--backend torch:cuda needs a GPU that PyTorch {torch.__version__} sees, and it sees none; give --backend "
        "torch:cpu, or leave it out."
    )
