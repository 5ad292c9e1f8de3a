"""What PyTorch computes where it is installed, on a GPU where there is one, and the names that it has."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

import kernbench as kb
import kernbench_builtin.torch.torch_backend as torch_backend_module
from kernbench_builtin.torch.torch_backend import TorchBackend
from kernbench_builtin.verify.op_check import verify_ops
from kernbench_core.compute.backends import Backend
from kernbench_core.compute.ops import OPS, Form, MathOp
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.runs import open_backend
from kernbench_core.values.dtypes import info, numpy_dtype, tolerance
from tests.core.compute.recorder import Recorder, graph

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
    return TorchBackend.on(request.param)


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


def test_single_ops_are_verified_against_numpy(torch_backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second way is numpy's whatever the backend is, so a wrong one is found."""
    record = Recorder()
    graph(record)
    assert verify_ops(record.executor(backend=torch_backend)).ok
    right = type(torch_backend).product
    torch_backend.worth_multiplications = 0
    monkeypatch.setattr(type(torch_backend), "product", lambda self, a, b: right(self, a, b) + 1)
    record = Recorder()
    graph(record)
    assert verify_ops(record.executor(backend=torch_backend)).wrong == 5


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
def test_a_backend_that_is_none_is_a_sentence(plugins: Plugins, name: object, sentence: str) -> None:
    """Before anything is simulated, or a bench is looked for."""
    with pytest.raises(UsageError) as caught:
        kb.run("no bench is looked for", "tiny", backend=name, plugins=plugins)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", ["torch", "torch:cpu"])
def test_pytorch_that_is_not_installed_is_a_sentence(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It says what to install; without a device it is that of the CPU."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError) as caught:
        open_backend(plugins, name)
    assert str(caught.value) == (
        "--backend torch:cpu needs PyTorch, which is not installed; pip install 'kernbench[torch]'."
    )


def test_a_gpu_that_is_not_there_is_a_sentence(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many there are."""
    there = SimpleNamespace(__version__="2.9.0", cuda=SimpleNamespace(device_count=lambda: 0))
    monkeypatch.setitem(sys.modules, "torch", there)
    with pytest.raises(UsageError) as caught:
        open_backend(plugins, "torch:cuda")
    assert str(caught.value) == (
        "--backend torch:cuda needs a GPU that PyTorch 2.9.0 sees, and it sees none; give --backend torch:cpu, or "
        "leave it out."
    )
