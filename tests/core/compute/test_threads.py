"""Parts in threads answer in their order, whatever they take, and the matrix library gets its own threads back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from kernbench_core.compute import batches, threads
from kernbench_core.compute.backends import Backend
from kernbench_core.compute.threads import in_threads
from kernbench_core.errors import ExecutionError
from kernbench_core.values.arrays import Array
from tests.core.compute.recorder import Recorder, host


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stand in for a matrix library of seven threads, and for three cores; collect what it is set to."""
    told = [7]
    monkeypatch.setattr(threads, "_openblas", lambda: (lambda: told[-1], told.append))
    monkeypatch.setattr(threads, "threads", lambda: 3)
    return told


def test_answers_come_in_the_order_of_the_parts(library: list[int]) -> None:
    """Also where the first takes longest; several are under way at a time, each with a matrix library of one thread."""
    meeting = threading.Barrier(3, timeout=20)

    def part(number: int) -> Callable[[], tuple[int, int]]:
        def compute() -> tuple[int, int]:
            if number < 3:
                meeting.wait()
            time.sleep(0.02 * (3 - number) if number < 3 else 0)
            return number, library[-1]

        return compute

    assert list(in_threads([part(number) for number in range(9)])) == [(number, 1) for number in range(9)]
    assert library == [7, 1, 7]


def test_an_error_ends_it_and_leaves_nothing_behind(library: list[int]) -> None:
    """The first in order is raised; parts that have not begun never do; the library is as before."""
    begun: list[int] = []

    def part(number: int) -> Callable[[], None]:
        def compute() -> None:
            begun.append(number)
            time.sleep(0.01)
            if number in (2, 4):
                raise ValueError(str(number))

        return compute

    with pytest.raises(ValueError, match="2"):
        list(in_threads([part(number) for number in range(100)]))
    assert library == [7, 1, 7]
    assert len(begun) < 100
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("kernbench-phase-2")]


@pytest.mark.parametrize("why", ["few parts", "one core", "another library"])
def test_without_threads_all_is_done_here(library: list[int], monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """Fewer parts than cores are left to the library's own threads, as is what its threads cannot be kept out of."""
    if why == "one core":
        monkeypatch.setattr(threads, "threads", lambda: 1)
    if why == "another library":
        monkeypatch.setattr(threads, "_openblas", lambda: None)
    here = threading.current_thread()
    parts = [threading.current_thread] * (2 if why == "few parts" else 9)
    assert list(in_threads(parts)) == [here] * len(parts)
    assert library == [7]


def test_the_library_of_numpy_is_found_where_it_is_openblas() -> None:
    """And it is told; elsewhere there is nothing to tell."""
    built = np.show_config("dicts")["Build Dependencies"]["blas"]["name"]  # type: ignore[call-overload]
    if "scipy-openblas" not in built:
        pytest.skip(f"numpy has {built}")
    found = threads._openblas()
    assert found is not None
    before = found[0]()
    with threads._one_blas_thread():
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
    assert library == [7, 1, 7, 1, 7]  # in threads, and in one
    found = [value.array().tobytes() for value in made]
    monkeypatch.setattr(threads, "_openblas", lambda: None)
    record = Recorder()
    made = log(record)
    record.executor(keep_all=True).run()
    assert [value.array().tobytes() for value in made] == found


def test_only_large_ops_go_to_threads(library: list[int]) -> None:
    """Small ones are computed here, one after another, with a matrix library of one thread, too."""
    record, found = Recorder(), set[tuple[int, bool, int]]()

    class Watched(Backend):
        def product(self, a: Array, b: Array) -> Array:
            found.add((a.shape[-1], threading.current_thread() is here, library[-1]))
            return super().product(a, b)

    here = threading.current_thread()
    for size in (128, 256):
        for _ in range(16):
            record.dot(*(host(np.ones((size, size), np.float32)) for _ in range(2)), "f32")
    record.executor(backend=Watched()).run()
    assert found == {(128, True, 1), (256, False, 1)}
    assert library[-1] == 7


def test_an_op_that_fails_in_a_thread_is_named(library: list[int]) -> None:
    """As it is elsewhere."""
    record = Recorder()
    log(record)
    record.op("add", [host(np.ones((1024, 512), np.float32)), host(np.ones(3, np.float32))], (1024, 512), "f32")
    with pytest.raises(ExecutionError, match=r"^add \(op 22 of PE 0, .* could not be computed: The operands of add"):
        record.executor().run()
    assert library[-1] == 7


def test_functions_of_plug_ins_are_called_in_one_thread(library: list[int]) -> None:
    """They may keep something from call to call."""
    record = Recorder()
    for _ in range(8):
        record.op("where_am_i", [host(np.zeros((256, 128), np.float32))], (256, 128), "f32")
    record.executor(functions={"where_am_i": f"{__name__}:where_am_i"}).run()
    assert called == {threading.current_thread()}
    assert library == [7]


called: set[threading.Thread] = set()


def where_am_i(params: object, inputs: list) -> np.ndarray:
    """Note the thread that computes; give the operand back."""
    called.add(threading.current_thread())
    return inputs[0]
