"""The host API on the built-in machine: what a host program may rely on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.errors import (
    KernelError,
    NoDataError,
    PageFaultError,
    PendingDataError,
    ShapeError,
    StoreError,
    UninitializedReadError,
    UsageError,
)
from kernbench_core.host.launch_arguments import deal_programs
from kernbench_core.values.dtypes import numpy_dtype


def copy_kernel(x_ptr: Any, y_ptr: Any, n: int, tl: Any) -> None:
    """Copy one PE's share, plus one."""
    offsets = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets) + 1.0)


def run(bench: Callable[..., None], **options: Any) -> kb.RunResult:
    """Run a host program on the smallest machine."""
    return kb.run(bench, topology="tiny", **options)


def test_numpy_between_launches_computes_what_it_needs_and_takes_no_time() -> None:
    """A host program may look at a result and decide what to launch next."""
    seen: list[float] = []

    def bench(rt: Any) -> None:
        x = rt.tensor(np.arange(64, dtype=np.float32))
        y = rt.empty((64,), "f32")
        for _ in range(3):
            rt.launch(copy_kernel, x, y, 16)
            before = rt.now
            total = float(y.numpy().sum())
            assert rt.now == before
            seen.append(total)
            x, y = y, x
            if total > 2100:
                break

    result = run(bench)
    assert seen == [np.arange(64).sum() + 64.0 * (i + 1) for i in range(2)]
    assert len([op for op in result.op_log if op.op_name == "dma_write"]) == 2 * 4


def test_preloaded_data_takes_no_copy() -> None:
    """What is there already costs what an empty tensor costs, and holds the data."""

    def bench(rt: Any) -> None:
        begin = rt.now
        rt.empty((1024,), "f32")
        empty = rt.now - begin
        begin = rt.now
        x = rt.tensor(np.arange(1024, dtype=np.float32), preloaded=True)
        assert rt.now - begin == empty
        assert x.numpy().sum() == 1023 * 512
        begin = rt.now
        rt.tensor(np.arange(1024, dtype=np.float32))
        assert rt.now - begin > empty

    run(bench)


def test_numpy_waits_in_simulated_time_for_a_running_launch_of_that_tensor() -> None:
    """Reading a tensor ends when its writer has ended; a tensor that no launch has is read at once."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.zeros(64, np.float32))
        other = rt.tensor(np.ones(4, np.float32))
        y = rt.empty((64,), "f32")
        handle = rt.launch(copy_kernel, x, y, 16, wait=False)
        launched = rt.now
        assert other.numpy().tolist() == [1.0] * 4
        assert rt.now == launched
        assert y.numpy().tolist() == [1.0] * 64
        assert rt.now == handle.request.response.completed_ns > launched

    run(bench)


def test_what_is_freed_is_forgotten() -> None:
    """A new tensor in recycled memory holds nothing of the old one."""

    def bench(rt: Any) -> None:
        old = rt.tensor(np.ones(64, np.float32))
        where = old.regions
        rt.free(old)
        new = rt.empty((64,), "f32", name="new")
        assert new.regions == where
        with pytest.raises(UninitializedReadError, match=r"^tensor 'new' must be written before the host looks at it"):
            new.numpy()

    run(bench)


def test_arrays_are_copied_when_they_enter() -> None:
    """Changing the host's array later does not change the device's."""

    def bench(rt: Any) -> None:
        mine = np.ones(8, np.float32)
        tensor = rt.tensor(mine)
        mine[:] = 7.0
        assert tensor.numpy().tolist() == [1.0] * 8

    run(bench)


def test_expectations_are_those_of_the_moment_of_the_check() -> None:
    """A tensor that is overwritten after rt.check is compared as it was."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.zeros(64, np.float32))
        y = rt.empty((64,), "f32")
        rt.launch(copy_kernel, x, y, 16)
        rt.check(y, np.ones(64, np.float32))
        rt.launch(copy_kernel, y, y, 16)
        rt.check(y, np.full(64, 2.0, np.float32))

    assert run(bench, verify_data=True).verified is True


def test_random_inputs_follow_the_seed() -> None:
    """The same seed gives the same numbers, another seed others."""
    drawn: dict[int, list[np.ndarray]] = {0: [], 1: []}

    def bench(rt: Any, seed: int) -> None:
        drawn[seed].append(rt.tensor((32,), "f16").numpy())

    for seed in (0, 0, 1):
        run(bench, params={"seed": seed}, seed=seed)
    assert np.array_equal(drawn[0][0], drawn[0][1])
    assert not np.array_equal(drawn[0][0], drawn[1][0])


@pytest.mark.parametrize(("dtype", "low", "high"), [("int8", -8, 7), ("uint8", 0, 15), ("uint32", 0, 15)])
def test_random_integers_are_small_and_of_every_value(dtype: str, low: int, high: int) -> None:
    """Signed ones are from -8 to 7, unsigned ones from 0 to 15; never a float that was cut off."""
    drawn: list[np.ndarray] = []
    run(lambda rt: drawn.append(rt.tensor((4096,), dtype).numpy()))
    assert sorted(set(drawn[0].tolist())) == [*range(low, high + 1)]


def test_a_tuple_of_numpy_integers_is_a_shape_too() -> None:
    """Sizes that were worked out with numpy are sizes; an array of numbers is content."""
    shapes: list[Any] = []

    def bench(rt: Any) -> None:
        shapes.extend(rt.tensor(source).shape for source in ((np.int64(4), 3), [4, 3], np.array([4, 3])))

    run(bench)
    assert shapes == [(4, 3), (2,), (2,)]


def test_copies_take_time_both_ways_and_reading_data_takes_none() -> None:
    """n bytes cost at least n over the PCIe link's rate, each way; the way back is a round trip and not shorter."""
    spent: list[float] = []

    def bench(rt: Any) -> None:
        before = rt.now
        tensor = rt.tensor(np.zeros(1 << 18, np.float32))
        middle = rt.now
        tensor.numpy()
        assert rt.now == middle
        rt.copy_to_host(tensor)
        spent.extend((middle - before, rt.now - middle))

    phases = run(bench).phases
    assert min(spent) >= (1 << 20) / 63.0
    assert [phases["host_to_device"], phases["device_to_host"]] == spent


@pytest.mark.parametrize(
    ("grid", "pes", "dealt"),
    [
        (None, [0, 1, 2], {0: ((0, 0, 0),), 1: ((1, 0, 0),), 2: ((2, 0, 0),)}),
        ((3,), [4, 5], {4: ((0, 0, 0), (2, 0, 0)), 5: ((1, 0, 0),)}),
        ((2, 2), [0], {0: ((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0))}),
        ((1, 1, 2), [0, 1, 2], {0: ((0, 0, 0),), 1: ((0, 0, 1),)}),
        ((np.int64(2),), [3], {3: ((0, 0, 0), (1, 0, 0))}),
    ],
)
def test_programs_are_dealt_round_robin(grid: Any, pes: list[int], dealt: Any) -> None:
    """Programs go to PEs in turn, x fastest."""
    assert deal_programs(pes, grid)[0] == dealt


def test_a_grid_runs_every_program_once() -> None:
    """With more programs than PEs each PE runs its own one after another, and all are run."""

    def mark(y_ptr: Any, width: int, tl: Any) -> None:
        place = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
        tl.store(y_ptr + place * width + tl.arange(0, width), tl.full((width,), float(place), tl.float32))

    def bench(rt: Any) -> None:
        y = rt.empty((15, 4), "f32")
        rt.launch(mark, y, 4, grid=(5, 3))
        rt.check(y, np.repeat(np.arange(15, dtype=np.float32)[:, None], 4, axis=1))

    assert run(bench, verify_data=True).verified is True


def one_request(call: Callable[[Any], object]) -> Callable[[Any], None]:
    """Be a bench that makes one call that must fail."""

    def bench(rt: Any) -> None:
        call(rt)

    return bench


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
    "composite": lambda tl, x, tile: tl.composite("gemm", tile, tl.ref(x, (4, 4)), x),
}


@pytest.mark.parametrize("use", sorted(KEPT))
@pytest.mark.parametrize("how", ["PE", "program", "launch"])
@pytest.mark.sample(3)
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
        kb.run(bench, "tiny")
    line = kernel.__code__.co_firstlineno
    said = str(caught.value).splitlines()[0]
    assert said.startswith(f"tl.{use} at {__file__}:")
    assert said.endswith(
        f" must be given what its own program made, and the result of tl.load made at {__file__}:{line + 2} is of "
        "another one; send it with tl.send, or store and load it."
    )


def test_a_composite_of_another_program_is_refused() -> None:
    """Its handle would tell when another PE is done."""
    kept: list[Any] = []

    def kernel(x: Any, y: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            kept.append(tl.composite("math", tl.ref(x, (4, 4)), None, y, math_op="relu"))
            tl.wait(kept[0])
        else:
            for _ in range(20):
                tl.load(x)
            tl.store(x, kept[0])

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.zeros((4, 4)), rt.zeros((4, 4)), grid=(2,))

    with pytest.raises(KernelError) as caught:
        kb.run(bench, "tiny")
    line = kernel.__code__.co_firstlineno
    assert str(caught.value).splitlines()[0] == (
        f"tl.store at {__file__}:{line + 7} must be given what its own program made, and the result of tl.composite "
        f"made at {__file__}:{line + 2} is of another one; send it with tl.send, or store and load it."
    )


def test_a_composite_of_a_freed_tensor_says_which_call_and_tensor() -> None:
    """The fault names the call, its line, the element and the tensor, as that of a load does."""
    kept: list[Any] = []

    def keep(x: Any, tl: Any) -> None:
        kept.append(tl.ref(x, (2, 2)))

    def use(c: Any, tl: Any) -> None:
        tl.composite("gemm", kept[0], kept[0], c, wait=True)

    def bench(rt: Any) -> None:
        a = rt.tensor(np.ones((2, 2), np.float32), name="a")
        rt.launch(keep, a, grid=(1,))
        rt.free(a)
        rt.launch(use, rt.empty((2, 2)), grid=(1,))

    with pytest.raises(PageFaultError) as caught:
        run(bench)
    here = f"{__file__}:{use.__code__.co_firstlineno + 1}"
    assert str(caught.value).partition("\n")[0] == (
        f"tl.composite at {here} must reach memory that is mapped, and element [0, 0] of tensor 'a' is not: virtual "
        "address 0x100000000 must be mapped, and no tensor lies at or below it; was the tensor freed? Free a tensor "
        "after its last use."
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


def test_a_bench_reports_rows_and_sees_what_was_recorded() -> None:
    def bench(rt: Any) -> None:
        x = rt.tensor(np.ones(4, np.float32))
        for _ in range(2):
            before, began = len(rt.op_log), rt.now
            rt.launch(copy_kernel, x, x, 1)
            rt.report(ops=sum(1 for _ in rt.op_log.since(before)), took=rt.now - began > 0)

    result = run(bench)
    assert len(result.rows) == 2 and result.rows[0] == result.rows[1]
    assert result.rows[0] == {"ops": result.timing.ops // 2, "took": True}


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
@pytest.mark.sample(4)
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
            "the value of tensor 'x' must be looked at by the host program, not in a kernel; give the tensor to the "
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


def test_references_and_notebooks_read_tensors_after_the_run() -> None:
    """A reference that is a function runs in phase 2, and may read what the run made."""
    tensors: list[Any] = []

    def bench(rt: Any) -> None:
        x = rt.tensor(np.arange(64, dtype=np.float32))
        y = rt.empty((64,), "f32")
        rt.launch(copy_kernel, x, y, 16, wait=False)
        rt.check(y, lambda: x.numpy() + 1.0)
        tensors.extend((x, y))

    assert run(bench, verify_data=True).verified is True
    assert np.array_equal(tensors[1].numpy(), tensors[0].numpy() + 1.0)


def test_a_launch_takes_arguments_in_every_form() -> None:
    """*args, **kwargs and tensors in lists, tuples and dicts; the host's own containers stay as they are."""

    def add(out_ptr: Any, *in_ptrs: Any, tl: Any, n: int, **more: Any) -> None:
        offsets = tl.program_id(0) * n + tl.arange(0, n)
        total = tl.load(more["base"][0]["first"] + offsets)
        more["base"].append("mine")
        assert more["base"][1:] == ["kept", "mine"]
        for ptr in in_ptrs:
            total = total + tl.load(ptr + offsets)
        tl.store(out_ptr + offsets, total)

    def bench(rt: Any) -> None:
        inputs = [rt.tensor(np.full(64, 10.0**i, np.float32)) for i in range(3)]
        out = rt.empty((64,), "f32")
        base = [{"first": inputs[0]}, "kept"]
        handle = rt.launch(add, out, *inputs[1:], n=16, base=base, wait=False)
        assert set(handle.tensors) == {out, *inputs}
        assert base == [{"first": inputs[0]}, "kept"]
        rt.wait_for(inputs[0])
        assert handle.request.done.fired
        rt.check(out, np.full(64, 111.0, np.float32))

    assert run(bench, verify_data=True).verified is True


@pytest.mark.parametrize("device", [0, "sip:0", "all", [0], (n for n in [0])])
def test_a_launch_takes_a_device_in_every_spelling(device: Any) -> None:
    """All of them mean the only SIP of this machine."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.zeros(64, np.float32))
        handle = rt.launch(copy_kernel, x, x, 16, device=device)
        assert list(handle.launch.programs) == [site.index for site in rt.pes]

    run(bench)


def test_arrays_are_rounded_as_a_kernel_casts() -> None:
    """Above the greatest 8-bit float is that float, not the NaN of numpy's cast."""

    def bench(rt: Any) -> None:
        seen.append(rt.tensor(np.array([1000.0, -1000.0, 17.0]), "f8e4m3").numpy().astype(np.float32).tolist())

    seen: list[Any] = []
    kb.run(bench, "tiny")
    assert seen == [[448.0, -448.0, 16.0]]


def test_a_float64_array_needs_a_dtype() -> None:
    """float64 is rounded where a dtype says to what, and refused in a sentence else; Python floats are f32."""
    seen: dict[str, str] = {}

    def bench(rt: Any) -> None:
        wide = np.linspace(0, 1, 4)
        for name, given in (("x", wide), (None, wide[0])):
            with pytest.raises(StoreError) as caught:
                rt.tensor(given, name=name)
            which = "a tensor" if name is None else "tensor 'x'"
            assert str(caught.value) == (
                f'the array of {which} must have a dtype that the units have, not float64; pass dtype="f32", or '
                "another, to round it."
            )
        for dtype in ("f16", "f32"):
            x = rt.tensor(wide, dtype)
            seen[dtype] = x.dtype
            rt.check(x, wide.astype(numpy_dtype(dtype)), rtol=0, atol=0)
        for given in ([0.5, 1.5], [[1, 2.5]], [1, 2], np.arange(3), [True]):
            seen[str(given)] = rt.tensor(given).dtype
        rt.launch(copy_kernel, x, x, 1)

    result = run(bench, verify_data=True)
    assert not result.verification.failures
    assert seen == {
        "f16": "f16", "f32": "f32", "[0.5, 1.5]": "f32", "[[1, 2.5]]": "f32", "[1, 2]": "int64", "[0 1 2]": "int64",
        "[True]": "bool",
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "int32"])
def test_what_is_expected_may_have_any_dtype(dtype: str) -> None:
    """numpy computes in float64 and int64 by itself: such references are compared as they are."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.arange(8), dtype, name="x")
        rt.check(x, np.arange(8, dtype=np.float64))
        rt.check(x, np.arange(8))
        rt.check(x, list(range(8)))
        rt.check(x, np.arange(8) + 1.0)

    result = run(bench, verify_data=True)
    assert [text.partition(", checked")[0] for text in result.verification.failures] == ["tensor 'x' (check 4)"]
