"""What the host API refuses on a machine of toys: wrong calls, tensors of another run or gone, calls in kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.errors import (
    KernbenchError,
    KernelError,
    NoDataError,
    PageFaultError,
    PendingDataError,
    ShapeError,
    UsageError,
)
from tests.core.host.host_programs import copy_kernel, run
from tests.core.working_machine import on_machine

MASKED = np.ma.masked_equal([1, 2], 2)
NO_MASK = "an array without a mask, not one of numpy.ma; give its .filled(value), and the mask as an array of its own"


def one_request(call: Callable[[Any], object]) -> Callable[[Any], None]:
    """Be a bench that makes one call that must fail."""

    def bench(rt: Any) -> None:
        call(rt)

    return bench


@pytest.mark.parametrize(
    ("call", "which"),
    [
        (lambda rt: rt.tensor(MASKED, name="z"), "the array of tensor 'z'"),
        (lambda rt: rt.tensor(np.ma.array([1, 2], mask=False), name="z"), "the array of tensor 'z'"),
        (lambda rt: rt.tensor([[1, 2], MASKED], name="z"), "the array of tensor 'z'"),
        (lambda rt: rt.operand(MASKED, (2,), "int64", name="z"), "the array of tensor 'z'"),
        (lambda rt: rt.preload(rt.zeros((2,), name="z"), MASKED), "rt.preload: the array of tensor 'z'"),
        (lambda rt: rt.check(rt.zeros((2,), name="z"), MASKED), "rt.check('z'): expected"),
        (
            lambda rt: rt.launch(copy_kernel, {"a": [MASKED]}, 2, 3),
            "rt.launch: argument 'x_ptr' of kernel 'copy_kernel'",
        ),
        (lambda rt: rt.launch(copy_kernel, 1, 2, np.ma.masked), "rt.launch: argument 'n' of kernel 'copy_kernel'"),
    ],
)
def test_arrays_with_masks_are_refused(call: Callable[[Any], object], which: str) -> None:
    """A tensor would hold what lies under the mask."""
    with pytest.raises(KernbenchError) as caught:
        run(one_request(call))
    assert str(caught.value).split("\n")[0] == f"{which} must be {NO_MASK}."


def test_a_reference_with_a_mask_is_refused() -> None:
    """It is made when data is verified."""

    def bench(rt: Any) -> None:
        rt.check(rt.zeros((2,), name="z"), lambda: MASKED)
        line.append(sys._getframe().f_lineno - 1)

    line: list[int] = []
    with pytest.raises(ShapeError) as caught:
        run(bench, verify_data=True)
    assert str(caught.value) == f"the reference of tensor 'z', checked at {__file__}:{line[0]}, must be {NO_MASK}."


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda rt: rt.empty((4, 0)),
            ShapeError,
            "the shape of a tensor must be positive integers, not (4, 0); correct its extents.",
        ),
        (
            lambda rt: rt.tensor(np.zeros(4, np.float32), placement="rows"),
            UsageError,
            "tensor 'tensor1': placement must be Shard(dim), Replicate() or Interleave(nbytes), a tuple of one for "
            "each of sip, cube, pe, or a mapping from these names, not 'rows'; correct it.",
        ),
        (
            lambda rt: rt.check(rt.zeros((4,), name="z"), np.zeros(5)),
            ShapeError,
            "rt.check('z'): expected must have the tensor's shape (4,), not (5,).",
        ),
        (
            lambda rt: rt.check(rt.zeros((2,), name="z"), np.array([1j, 0])),
            ShapeError,
            "rt.check('z'): expected must be of real numbers, not of dtype complex128; cast it first.",
        ),
        (
            lambda rt: rt.check(rt.zeros((2,), name="z"), [None, 0]),
            ShapeError,
            "rt.check('z'): expected must be of real numbers, not of dtype object; cast it first.",
        ),
        (
            lambda rt: rt.check(rt.zeros((2,), name="z"), np.zeros(2), rtol="1e-3"),
            UsageError,
            "rt.check('z'): rtol must be a number from 0 up, not '1e-3'; leave it out for that of the dtype.",
        ),
        (
            lambda rt: rt.check(rt.zeros((2,), name="z"), np.zeros(2), atol=float("nan")),
            UsageError,
            "rt.check('z'): atol must be a number from 0 up, not nan; leave it out for that of the dtype.",
        ),
        (
            lambda rt: rt.tensor(np.array([1j]), "f32", name="z"),
            ShapeError,
            "the array of tensor 'z' must be of real numbers, not of dtype complex128; cast it first.",
        ),
        (
            lambda rt: rt.launch(copy_kernel, 1, 2),
            UsageError,
            "rt.launch: the arguments do not fit kernel 'copy_kernel'"
            "(x_ptr: 'Any', y_ptr: 'Any', n: 'int') -> 'None': missing a required argument: 'n'.",
        ),
        (
            lambda rt: rt.launch(copy_kernel, 1, 2, 3, grid=(0,)),
            UsageError,
            "rt.launch: grid must be a tuple of one to three positive integers, not (0,); write grid=(x, y).",
        ),
        (
            lambda rt: rt.launch(copy_kernel, 1, 2, 3, grid=(2**12, 2**12, 2)),
            UsageError,
            "rt.launch: grid must have at most 16,777,216 programs, not (4096, 4096, 2); let each program do more.",
        ),
        (
            lambda rt: rt.launch(copy_kernel, 1, 2, 3, device=[7]),
            UsageError,
            "rt.launch: device must name SIPs of this run, not [7]; this run has [0].",
        ),
    ],
)
def test_wrong_calls_are_refused_in_a_sentence(
    call: Callable[[Any], object], error: type[Exception], sentence: str
) -> None:
    """A call that cannot be right says what it must be."""
    with pytest.raises(error) as caught:
        run(one_request(call))
    said, place = str(caught.value).split("\n")
    assert said == sentence
    assert place.startswith(f"  in bench 'bench' at {__file__}:") and ", at simulated time " in place


def test_data_of_a_run_without_data_is_refused() -> None:
    """Shapes only: reading a tensor says how to get data."""
    with pytest.raises(NoDataError) as caught:
        run(one_request(lambda rt: rt.tensor((4,), name="x").numpy()), data=False)
    assert str(caught.value).split("\n")[0] == (
        "tensor 'x' has no data in a run that keeps shapes only; leave out --no-data to read it."
    )


def test_a_freed_tensor_is_dead() -> None:
    """Whatever is done with it says where it was freed; what took its place is not touched."""

    def clobber(pair: Any, tl: Any) -> None:
        tl.store(pair["out"][0] + tl.arange(0, 4), tl.full((4,), 7.0, tl.float32))

    def bench(rt: Any) -> None:
        a = rt.tensor(np.ones(4, np.float32), name="a")
        rt.free(a)
        line = sys._getframe().f_lineno - 1
        b = rt.tensor(np.zeros(4, np.float32), name="b")
        assert b.regions == a.regions
        calls: list[Callable[[], object]] = [
            a.value,
            a.numpy,
            lambda: rt.copy_to_host(a),
            lambda: rt.check(a, np.ones(4)),
            lambda: rt.free(a),
            lambda: rt.launch(copy_kernel, a, b, 4),
            lambda: rt.launch(clobber, {"out": [a]}),
        ]
        for call in calls:
            with pytest.raises(KernelError) as caught:
                call()
            assert str(caught.value) == (
                f"tensor 'a' must be live, and was freed at {__file__}:{line}; free it after its last use, or make a "
                "new tensor."
            )
        rt.check(b, np.zeros(4, np.float32))

    assert run(bench, verify_data=True).verified is True


def test_a_pointer_kept_by_a_kernel_faults_after_the_free() -> None:
    """Physical memory is used again, virtual addresses are not."""
    kept: list[Any] = []

    def keep(x: Any, tl: Any) -> None:
        kept.append(x)

    def use(tl: Any) -> None:
        tl.store(kept[0] + tl.arange(0, 4), tl.full((4,), 7.0, tl.float32))

    def bench(rt: Any) -> None:
        a = rt.tensor(np.ones(4, np.float32), name="a")
        rt.launch(keep, a, grid=(1,))
        rt.free(a)
        b = rt.tensor(np.zeros(4, np.float32), name="b")
        assert b.regions == a.regions
        rt.launch(use, grid=(1,))

    with pytest.raises(PageFaultError, match=r"must be mapped, and no tensor lies at or below it; was the tensor"):
        run(bench)


KEPT: dict[str, Callable[[Any, Any, Any], Any]] = {
    "store": lambda tl, x, tile: tl.store(x, tile),
    "free": lambda tl, x, tile: tl.free(tile),
    "maximum": lambda tl, x, tile: tl.maximum(tile, 1.0),
    "add": lambda tl, x, tile: tl.load(x, shape=(4, 4)) + tile.reshape(4, 4),
    "dot": lambda tl, x, tile: tl.dot(tl.load(x, shape=(4, 4)), tile),
    "send": lambda tl, x, tile: tl.send(tile, 0),
}


@pytest.mark.parametrize("use", sorted(KEPT))
@pytest.mark.parametrize("how", ["PE", "program", "launch"])
def test_a_tile_of_another_program_is_refused(use: str, how: str) -> None:
    """A list that kernels close over would bring a tile from PE to PE, or to the next launch, in no time."""
    kept: list[Any] = []

    def kernel(x: Any, last: int, tl: Any) -> None:
        if tl.program_id(0) == 0 and not kept:
            kept.append(tl.load(x, shape=(4, 4)))
        for _ in range(8):
            tl.load(x)
        if tl.program_id(0) == last:
            KEPT[use](tl, x, kept[0])

    def bench(rt: Any) -> None:
        x = rt.zeros((4, 4))
        if how == "launch":
            rt.launch(kernel, x, 1, grid=(1,))
        rt.launch(kernel, x, how != "launch", grid=(2,), pes=[0] if how == "program" else None)

    with pytest.raises(KernelError) as caught:
        kb.run(bench, **on_machine())
    line = kernel.__code__.co_firstlineno
    said = str(caught.value).splitlines()[0]
    assert said.startswith(f"tl.{use} at {__file__}:")
    assert said.endswith(
        f" must be given a result of its own program, not the result of tl.load made at {__file__}:{line + 2} by "
        "another one; send it with tl.send, or store and load it."
    )


def test_a_tensor_of_another_run_is_refused() -> None:
    """Its addresses mean something else here."""
    tensors: list[Any] = []

    def first(rt: Any) -> None:
        tensors.append(rt.tensor(np.ones(4, np.float32), name="a"))

    def second(rt: Any) -> None:
        rt.tensor(np.ones(4, np.float32))
        with pytest.raises(KernelError) as caught:
            rt.launch(copy_kernel, tensors[0], tensors[0], 1)
        assert str(caught.value) == (
            "tensor 'a' must be of this run, and is of another one; make it with this run's rt."
        )
        assert tensors[0].numpy().tolist() == [1.0] * 4

    run(first)
    run(second)


CALLS: dict[str, Callable[[Any, Any], object]] = {
    "rt.tensor": lambda rt, x: rt.tensor((4,)),
    "rt.zeros": lambda rt, x: rt.zeros((4,)),
    "rt.empty": lambda rt, x: rt.empty((4,)),
    "rt.free": lambda rt, x: rt.free(x),
    "rt.copy_to_host": lambda rt, x: rt.copy_to_host(x),
    "rt.check": lambda rt, x: rt.check(x, np.zeros(4)),
    "rt.launch": lambda rt, x: rt.launch(copy_kernel, x, x, 1),
    "rt.wait": lambda rt, x: rt.wait(None),
    "rt.wait_for": lambda rt, x: rt.wait_for(x),
    "rt.wait_all": lambda rt, x: rt.wait_all(),
    "rt.report": lambda rt, x: rt.report(size=4),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wait", [True, False])
def test_a_kernel_cannot_call_the_host_api(name: str, wait: bool) -> None:
    """Also not in a launch that outlives the host program; nor can anybody after the run."""
    seen: list[Any] = []

    def bench(rt: Any) -> None:
        x = rt.tensor(np.zeros(4, np.float32), name="x")
        seen.extend((rt, x))

        def kernel(tl: Any) -> None:
            CALLS[name](rt, x)

        rt.launch(kernel, grid=(1,), wait=wait)

    with pytest.raises(KernelError) as caught:
        run(bench)
    said, place = str(caught.value).split("\n")
    assert said == f"{name} must be called by the host program, not in a kernel; call it around the launch."
    assert "in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at " in place
    with pytest.raises(UsageError) as late:
        CALLS[name](*seen)
    assert str(late.value) == f"{name} must be called by the host program while it runs; call it in the bench."


@pytest.mark.parametrize(
    ("look", "error", "sentence"),
    [
        (
            lambda x: x.numpy(),
            PendingDataError,
            "tensor 'x' must be read by the host program, not in a kernel, where its data may not be computed yet; "
            "give the tensor to the launch, and load it.",
        ),
        (
            lambda x: x.value(),
            KernelError,
            "the value of tensor 'x' must be read by the host program, not in a kernel; give the tensor to the "
            "launch, and load it.",
        ),
    ],
)
def test_a_kernel_cannot_look_at_a_tensor_of_the_host(
    look: Callable[[Any], object], error: type[Exception], sentence: str
) -> None:
    """Phase 2 stays out of kernels; after the run, even one that failed, the tensor can be read."""
    tensors: list[Any] = []

    def bench(rt: Any) -> None:
        x = rt.tensor(np.ones(4, np.float32), name="x")
        tensors.append(x)

        def kernel(tl: Any) -> None:
            look(x)

        rt.launch(kernel, grid=(1,))

    with pytest.raises(error) as caught:
        run(bench)
    assert str(caught.value).split("\n")[0] == sentence
    assert tensors[0].numpy().tolist() == [1.0] * 4
