"""Host programs side by side: each has its SIP, they share the run, and what they do is ordered as they know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.errors import KernelError, UsageError
from kernbench_core.host.host_program import POLL_NS, current_program
from tests.core.working_machine import on_machine


def run(bench: Callable[[Any], None], sips: int = 2, **options: Any) -> kb.RunResult:
    """Run a host program on so many small SIPs."""
    return kb.run(bench, **on_machine(set=[f"system.sips={sips}"], **options))


def add(x_ptr: Any, n: int, tl: Any) -> None:
    """Add one to this PE's share."""
    offsets = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + 1.0)


def spin(n: int, tl: Any) -> None:
    """Keep a PE busy."""
    x = tl.zeros((1024,), "f32")
    for _ in range(n):
        x = x + 1.0


def test_each_program_has_its_sip_and_its_numbers() -> None:
    """PEs, mesh, tensors and launches are those of its SIP; random numbers differ, and are the same in every run."""
    seen: list[Any] = []

    def program(i: int, rt: Any, word: str) -> tuple[Any, ...]:
        x = rt.tensor((16,), "f32")
        rt.launch(add, x, 4)
        rt.check(x, x.numpy())
        assert current_program() is rt
        return (
            i, word, rt.mesh, [site.sip for site in rt.pes], {shard.pe for shard in x.shards}, x.numpy().tolist(),
        )  # fmt: skip

    def bench(rt: Any) -> None:
        seen.append(rt.side_by_side(program, [1, 0], ("hello",)))
        assert current_program() is rt and rt.mesh == (2, 1, 4)

    result = run(bench, verify_data=True)
    run(bench)
    assert seen[0] == seen[1]
    first, second = seen[0]
    assert first[:5] == (0, "hello", (1, 1, 4), [1, 1, 1, 1], {4, 5, 6, 7})
    assert second[:5] == (1, "hello", (1, 1, 4), [0, 0, 0, 0], {0, 1, 2, 3})
    assert first[5] != second[5]
    assert result.verification is not None and result.verification.checked == 2


def test_programs_run_side_by_side_in_time() -> None:
    """Two SIPs that compute take as long as one; the bench goes on when the slower one has ended."""
    took: dict[str, float] = {}

    def program(i: int, rt: Any) -> float:
        rt.launch(spin, 200 + 100 * i)
        return float(rt.now)

    def bench(rt: Any) -> None:
        for name, sips in (("one", [1]), ("two", [0, 1])):
            begun = rt.now
            ends = rt.side_by_side(program, sips)
            took[name] = rt.now - begun
            assert rt.now == max(ends)
        begun = rt.now
        rt.launch(spin, 300, device=1)
        took["alone"] = rt.now - begun

    run(bench)
    assert took["alone"] == took["two"] > took["one"]


def test_what_a_program_left_running_is_waited_for() -> None:
    """Its end is that of its last launch."""

    def program(i: int, rt: Any) -> float:
        rt.launch(spin, 100, wait=False)
        return float(rt.now)

    def bench(rt: Any) -> None:
        begun = rt.now
        rt.launch(spin, 100, device=0)
        alone = rt.now - begun
        begun = rt.now
        (returned,) = rt.side_by_side(program, [0])
        assert returned == begun and rt.now - begun == alone

    run(bench)


def test_a_program_may_poll_until_a_launch_is_over() -> None:
    """Each poll that finds it running takes POLL_NS; the last ends with the launch, and all take what a wait takes."""
    took: dict[str, float] = {}

    def bench(rt: Any) -> None:
        begun = rt.now
        rt.launch(spin, 100, device=0)
        took["waited"] = rt.now - begun
        begun, polls = rt.now, 0
        handle = rt.launch(spin, 100, device=0, wait=False)
        assert rt.now == begun
        while not handle.done:
            polls += 1
            assert rt.now == begun + polls * POLL_NS
        took["polled"] = rt.now - begun
        assert handle.done and rt.now - begun == took["polled"]

    assert not run(bench).hazards
    assert took["polled"] == took["waited"] > 3 * POLL_NS


def test_what_was_found_over_is_ordered_before_what_comes_next() -> None:
    """A poll that finds a launch over is as good as a wait: what the next launch does to its data is no hazard."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.zeros(64, np.float32))
        for _ in range(2):
            handle = rt.launch(add, x, 8, wait=False)
            while not handle.done:
                pass
        rt.check(x, np.full(64, 2.0))

    result = run(bench, verify_data=True)
    assert result.verified and not result.hazards


def test_a_launch_is_asked_for_after_its_run_at_no_time() -> None:
    """Outside the run there is no program to take the time of."""
    handles: list[Any] = []
    run(lambda rt: handles.append(rt.launch(spin, 1, wait=False)))
    assert handles[0].done


def test_a_tensor_that_another_program_writes_is_waited_for() -> None:
    """numpy() in one program waits for a launch of another, and sees what it wrote."""

    def program(i: int, rt: Any, x: Any) -> list[float]:
        if i == 0:
            rt.launch(add, x, 16)
            return []
        rt.launch(spin, 1)
        found: list[float] = x.numpy().tolist()
        return found

    def bench(rt: Any) -> None:
        x = rt.tensor(np.zeros(64, np.float32), device=0)
        assert rt.side_by_side(program, [0, 1], (x,))[1] == [1.0] * 64

    assert not run(bench).hazards


def test_what_no_wait_orders_is_a_hazard() -> None:
    """Two programs that write one tensor without knowing of each other race; after both, the bench may."""

    def write(x_ptr: Any, tl: Any) -> None:
        tl.store(x_ptr, tl.zeros((16,), "f32"))

    def program(i: int, rt: Any, x: Any, mine: int) -> None:
        if mine in (i, 2):
            rt.launch(write, x, pes=[0])

    def bench(rt: Any, mine: int) -> None:
        x = rt.zeros((64,), name="x")
        rt.side_by_side(program, [0, 1], (x, mine))
        rt.launch(write, x, device=1, pes=[0])

    def found(mine: int) -> list[str]:
        result = run(bench, 2, params={"mine": mine})
        return [hazard.kind for hazard in result.hazards]

    assert found(0) == found(1) == []
    assert found(2) == ["unordered_writes"]


@pytest.mark.parametrize(
    ("pes", "chosen"), [([0], [0]), ([2, 1], [1, 2]), (range(1, 4), [1, 2, 3]), ((i for i in (3,)), [3])]
)
def test_a_launch_on_chosen_pes(pes: Any, chosen: list[int]) -> None:
    """Positions among the PEs of the device; program ids count the chosen ones."""
    ran: list[tuple[int, int]] = []

    def kernel(tl: Any) -> None:
        ran.append((tl.program_id(0), tl.num_programs(0)))

    def bench(rt: Any) -> None:
        handle = rt.launch(kernel, device=1, pes=pes)
        assert sorted(handle.launch.programs) == [4 + pe for pe in chosen]

    run(bench)
    assert sorted(ran) == [(i, len(chosen)) for i in range(len(chosen))]


@pytest.mark.parametrize(
    ("pes", "shown"), [([], "[]"), ([4], "[4]"), ([0, 0], "[0, 0]"), ([-1], "[-1]"), ([True], "[True]"), (1.5, "1.5"),
                       ("0", "'0'"), ((i for i in (9,)), "[9]")]
)  # fmt: skip
def test_wrong_pes_are_refused(pes: Any, shown: str) -> None:
    """One sentence, which tells how many there are."""
    with pytest.raises(UsageError) as caught:
        run(lambda rt: rt.launch(spin, 1, device=1, pes=pes))
    assert str(caught.value).splitlines()[0] == (
        f"rt.launch: pes must be different positions among the 4 PEs, from 0 to 3, not {shown}; name at least one."
    )


def test_one_pe_may_be_given_as_a_number() -> None:
    """pes=2 is pes=[2]."""

    def bench(rt: Any) -> None:
        assert list(rt.launch(spin, 1, pes=2).launch.programs) == [2]

    run(bench)


def test_an_error_names_the_program() -> None:
    """What is raised in one of them ends the run; the sentence says in which."""

    def program(i: int, rt: Any) -> None:
        if i:
            rt.launch(spin)

    with pytest.raises(UsageError) as caught:
        run(lambda rt: rt.side_by_side(program, [0, 1], name="worker"))
    assert str(caught.value).splitlines()[1].startswith("  in worker 1 at ")

    def raises(i: int, rt: Any) -> None:
        raise ValueError("mine")

    with pytest.raises(KernelError) as raised:
        run(lambda rt: rt.side_by_side(raises, [1]))
    assert str(raised.value).splitlines()[0] == "program 0 raised ValueError: mine at simulated time 0 ns."


def test_an_rt_belongs_to_its_program() -> None:
    """The bench's rt is not to be used by a program that it started."""

    def bench(rt: Any) -> None:
        rt.side_by_side(lambda i, own: rt.zeros((4,)), [0])

    with pytest.raises(UsageError) as caught:
        run(bench)
    assert str(caught.value).splitlines()[0] == (
        "rt.zeros must be called through the rt of program 0, not of bench 'bench'; use the rt that the program was "
        "given."
    )
    assert current_program() is None


def test_no_program_is_no_work() -> None:
    """An empty list comes back at once."""

    def bench(rt: Any) -> None:
        assert rt.side_by_side(spin, []) == []
        rt.zeros((4,))

    run(bench)
