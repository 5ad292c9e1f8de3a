"""The host API on a machine of toys: what a host program may rely on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.errors import StoreError, UninitializedReadError, UsageError
from kernbench_core.host.launch_arguments import deal_programs
from kernbench_core.values.dtypes import numpy_dtype
from tests.core.host.host_programs import copy_kernel, run
from tests.core.working_machine import on_machine


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


def test_resident_data_takes_no_copy() -> None:
    """What is there already costs what an empty tensor costs, and holds the data."""

    def bench(rt: Any) -> None:
        begin = rt.now
        rt.empty((1024,), "f32")
        empty = rt.now - begin
        begin = rt.now
        x = rt.tensor(np.arange(1024, dtype=np.float32), resident=True)
        assert rt.now - begin == empty
        assert x.numpy().sum() == 1023 * 512
        begin = rt.now
        rt.tensor(np.arange(1024, dtype=np.float32))
        assert rt.now - begin > empty
        begin = rt.now
        zeros = rt.zeros((1024,), resident=True)
        assert rt.now - begin == empty and not zeros.numpy().any()

    run(bench)


def test_a_run_says_which_tensors_are_there_before_it() -> None:
    """By their names, or all: the program and its data are the same, and the result says so."""

    def bench(rt: Any) -> None:
        rt.empty((4,), name="never copied")
        x, y = (rt.tensor(np.full(1024, at, np.float32), name=name) for at, name in enumerate("xy"))
        rt.launch(copy_kernel, y, x, 16)
        assert (x.numpy().sum(), y.numpy().sum()) == (2 * 16 * rt.n_pes, 1024)

    plain, one, both = (run(bench, resident=names) for names in ("", "y", "all"))
    assert plain.phases["host_to_device"] > one.phases["host_to_device"] > both.phases["host_to_device"]
    told = [[each for each in done.timing.warnings if "before the run" in each] for done in (plain, one, both)]
    sentence = "On the device before the run, without a simulated copy: "
    assert told == [[], [f"{sentence}y (4 KiB)."], [f"{sentence}x, y (8 KiB)."]]
    with pytest.raises(UsageError) as caught:
        run(bench, resident="y,z")
    assert str(caught.value) == (
        "--resident must name tensors that the run copies to the device before its launches, not 'z'; these are x, y."
    )


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
        with pytest.raises(UninitializedReadError, match=r"^tensor 'new' must be written before the host reads it"):
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


@pytest.mark.parametrize("read", ["numpy", "rows", "snapshot", "tolerance"])
def test_a_reference_must_not_read_what_was_written_after_its_check(read: str) -> None:
    """It is computed at the end, when the tensor holds something else than it did; other tensors may be read."""
    calls: dict[str, Any] = {
        "numpy": lambda t: t.numpy(), "rows": lambda t: t[0:64].numpy(), "snapshot": lambda t: t.snapshot()(),
        "tolerance": lambda t: np.zeros(64, np.float32),
    }  # fmt: skip

    def bench(rt: Any, overwritten: bool) -> None:
        x = rt.tensor(np.zeros(64, np.float32), name="x")
        y = rt.empty((64,), "f32", name="y")
        rt.launch(copy_kernel, x, y, 16)
        rt.check(y, lambda: calls[read](x) + 1.0, atol=(lambda: abs(x.numpy()).max()) if read == "tolerance" else None)
        rt.launch(copy_kernel, y, x if overwritten else y, 16)

    assert run(bench, params={"overwritten": False}, verify_data=True).verified is True
    with pytest.raises(UsageError) as caught:
        run(bench, params={"overwritten": True}, verify_data=True)
    line = bench.__code__.co_firstlineno + 4
    assert str(caught.value) == (
        f"the reference of tensor 'y', checked at {__file__}:{line}, must not read tensor 'x', which was written after "
        "the check; give rt.check an array, or call x.snapshot() before the check, and what it returns in the "
        "reference."
    )


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
    kb.run(bench, **on_machine())
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
                f"the array of {which} must be given a dtype, as it is of float64, numpy's default; pass "
                'dtype="f32", or another, to round it, or dtype="f64".'
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
