"""The threads of the matrix library change no bit; small products are kept to one of them."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_core.compute import batches, threads
from kernbench_core.compute.backends import Backend
from kernbench_core.errors import ExecutionError
from kernbench_core.values.arrays import Array
from tests.core.compute.recorder import Recorder, host


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stand in for a matrix library of seven threads; collect what it is set to."""
    told = [7]
    monkeypatch.setattr(threads, "_openblas", lambda: (lambda: told[-1], told.append))
    return told


def test_the_library_of_numpy_is_found_where_it_is_openblas() -> None:
    """And it is told, and told again what it was before; elsewhere there is nothing to tell."""
    built = np.show_config("dicts")["Build Dependencies"]["blas"]["name"]  # type: ignore[call-overload]
    if "scipy-openblas" not in built:
        pytest.skip(f"numpy has {built}")
    found = threads._openblas()
    assert found is not None
    before = found[0]()
    with threads.one_blas_thread():
        assert found[0]() == 1
    assert found[0]() == before


def log(record: Recorder) -> list:
    """Log products of every sort, and large math on what they give."""
    rng = np.random.default_rng(2)

    def operand(*shape: int):
        return host(rng.normal(size=shape).astype(np.float16))

    shared = operand(96, 512)
    made = [record.dot(operand(64, 96), shared, "f32") for _ in range(5)]
    made += [record.dot(operand(96, 96), operand(96, 96), "f16") for _ in range(6)]
    made += [record.dot(operand(8, 8), operand(8, 8), "f32", accumulate=True, more=[host(np.ones((8, 8), np.float32))])
             for _ in range(6)]  # fmt: skip
    large = [operand(1024, 512) for _ in range(4)]
    made += [record.op("exp", [each], (1024, 512), "f32") for each in large]
    made.append(record.op("add", made[-2:], (1024, 512), "f32"))
    return made


def test_threads_change_no_bit(library: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Which ops are computed together depends on the log alone."""
    monkeypatch.setattr(batches, "_SCRATCH", 1 << 16)
    record = Recorder()
    made = log(record)
    record.executor(keep_all=True).run()
    assert library == [7, 1, 7]
    found = [value.array().tobytes() for value in made]
    monkeypatch.setattr(threads, "_openblas", lambda: None)
    record = Recorder()
    made = log(record)
    record.executor(keep_all=True).run()
    assert [value.array().tobytes() for value in made] == found


def test_only_large_products_have_the_threads_of_the_library(library: list[int]) -> None:
    """Small ones have one, also where one of them fails."""
    record, found = Recorder(), set[tuple[int, int]]()

    class Watched(Backend):
        def product(self, a: Array, b: Array) -> Array:
            found.add((a.shape[-1], library[-1]))
            return super().product(a, b)

    for size in (128, 256):
        for _ in range(16):
            record.dot(*(host(np.ones((size, size), np.float32)) for _ in range(2)), "f32")
    record.executor(backend=Watched()).run()
    assert found == {(128, 1), (256, 7)}
    assert library[-1] == 7
    record.op("add", [host(np.ones((10, 5), np.float32)), host(np.ones(3, np.float32))], (10, 5), "f32")
    with pytest.raises(ExecutionError, match=r"could not be computed: The operands of add"):
        record.executor().run()
    assert library[-1] == 7


@pytest.mark.parametrize("large", [False, True])
def test_an_op_that_fails_is_named(library: list[int], large: bool) -> None:
    """Whatever it is computed beside."""
    record, shape = Recorder(), (1024, 512) if large else (10, 5)
    log(record)
    record.op("add", [host(np.ones(shape, np.float32)), host(np.ones(3, np.float32))], shape, "f32")
    with pytest.raises(ExecutionError, match=r"^add \(op 22 of PE 0, .* could not be computed: The operands of add"):
        record.executor().run()
    assert library[-1] == 7
