"""A kernel alone: arrays in, arrays out, against numpy; the options of a run; and what it refuses."""

from __future__ import annotations

import inspect
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench as kb
from kernbench_core.errors import KernelError, LimitError, NoDataError, OutOfBoundsError, UsageError
from kernbench_core.runs.options import RunCall, RunOptions
from tests.core.working_machine import MACHINE, on_machine

KINDS = {
    "f4": np.float32, "f2": np.float16, "bf16": ml_dtypes.bfloat16, "f8": ml_dtypes.float8_e4m3fn, "i1": np.int8,
    "i4": np.int32,
}  # fmt: skip


def axpy(x, y, out, n, a, BLOCK: tl.constexpr = 32, *, tl):  # noqa: F821, N803
    """Compute out = a x + y, a block for each program."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) * a + tl.load(y + offsets, mask=mask), mask=mask)


def negate(x, n, tl):
    """Negate a PE's share in place."""
    first = tl.program_id(0) * n
    tl.store(x + first, -tl.load(x + first, shape=(n,)))


def nothing(tl, **more):
    """Do nothing with anything."""


def launch(kernel: Any, *args: Any, **given: Any) -> Any:
    return kb.launch(kernel, *args, **on_machine(**given))


def ramp(n: int, kind: Any = np.float32) -> Any:
    return (np.arange(n) % 7 - 3).astype(kind)


def test_an_array_that_is_given_twice_is_one_tensor() -> None:
    """A kernel in place finds by one parameter what it stored by the other, as on any machine; a view is no other."""

    def kernel(x: Any, y: Any, z: Any, rest: Any, tl: Any) -> None:
        tl.store(y + tl.arange(0, 4), 5.0)
        for out, at in ((z, x), (rest[1], rest[0])):
            tl.store(out + tl.arange(0, 4), tl.load(at + tl.arange(0, 4)))

    x, z, w = ramp(4), ramp(4), ramp(4)
    outputs = launch(kernel, x, x[:], z, [x, w], grid=(1,)).outputs
    assert {name: outputs[name].tolist() for name in outputs} == dict.fromkeys(("x", "z", "rest[1]"), [5.0] * 4)
    assert x.tolist() == z.tolist() == ramp(4).tolist()


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 150), st.integers(-3, 3), st.sampled_from(sorted(KINDS)), st.sampled_from([1, 16, 64]))
def test_outputs_are_what_numpy_gives(n, a, kind, block) -> None:
    """Small integers are exact in every dtype. The caller's arrays stay as they are, even the one that is written."""
    x, y, out = ramp(n, KINDS[kind]), ramp(n, KINDS[kind])[::-1].copy(), np.full(n, 5, KINDS[kind])
    before = [array.copy() for array in (x, y, out)]
    result = launch(axpy, x, y, out, n, a, BLOCK=block, grid=(-(-n // block),))
    assert list(result.outputs) == ["out"]
    assert result.outputs["out"].dtype == KINDS[kind]
    right = x.astype(np.int64) * a + y.astype(np.int64)
    assert (result.outputs["out"].astype(np.int64) == right).all()
    for array, was in zip((x, y, out), before, strict=True):
        assert (array == was).all() and array.flags.writeable


def test_a_program_for_each_pe_without_a_grid() -> None:
    """What is written in place is an output, by the name of its parameter; a strided view is laid out anew."""
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    result = launch(negate, x.T, 8)
    assert (result.outputs["x"] == -x.T).all()
    assert result.params["n"] == 8


def test_it_takes_the_time_of_a_bench_that_has_the_data_there() -> None:
    """Op for op: the arrays are on the device before, so that nothing is copied."""
    x, y, out = (ramp(100) for _ in range(3))

    def bench(rt: Any) -> None:
        tensors = [rt.tensor(array, resident=True) for array in (x, y, out)]
        rt.launch(axpy, *tensors, 100, 2.0, grid=(4,))

    alone, by_hand = launch(axpy, x, y, out, 100, 2.0, grid=(4,)), kb.run(bench, **on_machine())
    assert alone.op_log_sha256 == by_hand.op_log_sha256
    assert alone.phases == by_hand.phases
    assert alone.bench == "axpy"


def test_arrays_inside_containers_have_numbers() -> None:
    def kernel(several, *rest, named, tl, **more):
        each = (*several[0], several[1], *rest, named["x"], more["extra"], more["tail"][0])
        for number, pointer in enumerate(each):
            tl.store(pointer, tl.full((1,), float(number), tl.float32))

    def one() -> Any:
        return np.zeros(1, np.float32)

    result = launch(
        kernel, ((one(),), one()), one(), one(), named={"x": one(), "n": 3}, extra=one(), tail=[one()], grid=(1,)
    )
    found = {name: int(array[0]) for name, array in result.outputs.items()}
    assert found == {
        "several[0]": 0, "several[1]": 1, "rest[0]": 2, "rest[1]": 3, "named[0]": 4, "extra": 5, "tail[0]": 6,
    }  # fmt: skip


def test_each_parameter_has_a_tensor_of_its_own() -> None:
    """Also where one array is given twice."""

    def kernel(x, y, tl):
        tl.store(x, tl.load(y + tl.arange(0, 4)) + 1)

    x = np.zeros(4, np.float32)
    result = launch(kernel, x, x, grid=(1,))
    assert {name: array.tolist() for name, array in result.outputs.items()} == {"x": [1, 1, 1, 1]}


def test_a_kernel_may_call_its_parameters_as_options_are_called() -> None:
    """By position; then the option of that name can be given as well."""

    def kernel(grid, device, pes, wait, rt, seed, topology, tl):
        tl.store(grid, device + pes + wait + rt + seed)

    result = launch(kernel, np.zeros(1, np.int32), 1, 2, 3, 4, 5, "mine", grid=(1,), seed=7, topology=MACHINE)
    assert result.outputs["grid"].tolist() == [15]
    assert result.manifest["seed"] == 7
    assert result.params["seed"] == 5


@pytest.mark.filterwarnings("ignore:the run in .* cannot be run again")
def test_options_are_those_of_a_run(tmp_path) -> None:
    """The record is the one of `kb.run`, and so are the checks."""
    arrays = [ramp(64) for _ in range(3)]
    result = launch(
        axpy, *arrays, 64, 3, set={"system.chunk_bytes": "2 KiB"}, out=tmp_path / "out", grid=(2,),
    )  # fmt: skip
    assert result.manifest["configuration"]["system"]["chunk_bytes"] == "2 KiB"
    assert (np.load(tmp_path / "out" / "params" / "x.npy") == arrays[0]).all()
    assert {"a": 3, "n": 64, "BLOCK": 32}.items() <= result.params.items()
    taken = set(inspect.signature(kb.launch).parameters)
    options = set(inspect.signature(RunOptions).parameters)
    assert options - taken == {"verify_data", "depends"}
    with pytest.raises(LimitError):
        launch(axpy, *arrays, 64, 3, max_events=5)


def test_without_data_there_is_time_and_no_output() -> None:
    arrays = [ramp(64) for _ in range(3)]
    result = launch(axpy, *arrays, 64, 3, grid=(2,), data=False)
    assert result.op_log_sha256 == launch(axpy, *arrays, 64, 3, grid=(2,)).op_log_sha256
    with pytest.raises(NoDataError) as caught:
        len(result.outputs)
    assert str(caught.value) == (
        "the outputs have no data in a run that keeps shapes only; leave out data=False."
    )


def test_numbers_that_are_not_finite_arrive(tmp_path) -> None:
    def kernel(x, low, none, tl):
        assert none is None
        tl.store(x, tl.full((1,), low, tl.float32))

    assert launch(kernel, np.zeros(1, np.float32), float("-inf"), None, grid=(1,)).outputs["x"][0] == -np.inf


class Foreign:
    """Be an array of another library."""

    __dlpack__ = None


X = ramp(4)
OPTIONS = ", ".join(
    sorted(
        {*inspect.signature(RunCall).parameters, "grid", "links"}
        - {"bench", "params", "verify_data", "cached", "depends"}
    )
)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: launch(3), "kb.launch: the kernel must be a function, not 3; give it first."),
        (
            lambda: launch(negate, X),
            "kb.launch: the arguments do not fit kernel 'negate'(x, n): missing a required argument: 'n'.",
        ),
        (
            lambda: launch(negate, X, m=1),
            f"kb.launch: argument 'm' must be a parameter of kernel 'negate'(x, n) or one of the options {OPTIONS}; "
            "correct its name.",
        ),
        (
            lambda: launch(negate, X, 1, verify_data=True),
            "kb.launch: argument 'verify_data' must be a parameter of kernel 'negate'(x, n) or one of the options "
            f"{OPTIONS}; correct its name.",
        ),
        (
            lambda: launch(negate, X, 1, tl=1),
            "kb.launch: argument 'tl' of kernel 'negate' must be left out; every program has its own.",
        ),
        (
            lambda: launch(lambda seed, tl: None, seed=1),
            "kb.launch: argument 'seed' must be that of kernel '<lambda>' or the option of this name, and could be "
            "either; give the kernel's by position.",
        ),
        (
            lambda: launch(negate, X.astype(np.complex64), 1),
            "kb.launch: array 'x' of kernel 'negate' must be of dtype bool, int8, int16, int32, int64, uint8, uint16, "
            "uint32, uint64, f8e4m3, f8e5m2, f16, bf16, f32, f64, not complex64; cast it, as in x.astype(np.float32).",
        ),
        (
            lambda: launch(negate, X[:0], 1),
            "kb.launch: array 'x' of kernel 'negate' must hold an element, not be of shape (0,).",
        ),
        (
            lambda: launch(negate, np.ma.masked_equal(X, X[0]), 1),
            "kb.launch: argument 'x' of kernel 'negate' must be an array without a mask, not one of numpy.ma; give its "
            ".filled(value), and the mask as an array of its own.",
        ),
        (
            lambda: launch(negate, Foreign(), 1),
            "kb.launch: argument 'x' of kernel 'negate' must be a numpy array to become a tensor, not a Foreign; give "
            "numpy.asarray(x).",
        ),
        (
            lambda: launch(negate, X, 1, grid=(0,)),
            "kb.launch: grid must be a tuple of one to three positive integers, not (0,); write grid=(x, y).",
        ),
        (
            lambda: launch(negate, X, 1, grid=(10**30,)),
            f"kb.launch: grid must have at most 16,777,216 programs, not ({10**30},); let each program do more.",
        ),
        (
            lambda: launch(negate, X, 1, seed=-1),
            "the seed must be an integer of at least 0, not -1; give another --seed.",
        ),
    ],
)
def test_what_cannot_be_launched_is_a_sentence(call, sentence) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value) == sentence


def test_an_error_names_the_line_of_the_kernel() -> None:
    def beyond(x, tl):
        tl.load(x + 1000)

    with pytest.raises(OutOfBoundsError) as caught:
        launch(beyond, X, grid=(1,))
    line = beyond.__code__.co_firstlineno + 1
    assert str(caught.value).startswith(
        f"tl.load at {__file__}:{line} must stay inside tensor 'x' of shape (4,), and reaches element [1000]; correct "
        "the index arithmetic, or mask it off.\n  in kernel 'beyond', program (0, 0, 0), on sip0.cube0.pe0 at "
    )


def test_a_kernel_needs_its_tl() -> None:
    def kernel(x):
        """Have no tl."""

    with pytest.raises(KernelError) as caught:
        launch(kernel, X)
    assert str(caught.value) == "kernel 'kernel' must have a parameter named 'tl'; add it, last by custom."


def test_a_tensor_of_another_run_is_refused() -> None:
    kept = []

    def bench(rt: Any) -> None:
        kept.append(rt.tensor(X))

    kb.run(bench, **on_machine())
    with pytest.raises(KernelError):
        launch(negate, kept[0], 1)


def test_nothing_but_numbers_is_a_launch_too() -> None:
    assert launch(nothing, a=1, b="x", c=None).outputs == {}
