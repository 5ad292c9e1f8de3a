"""What later seeds are made of: worked out by hand from the language's page, and found when it is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench_core.kernel.arguments import PerPe
from kernbench_core.kernel.tl.language import TLContext
from tests.reference.generator import FURTHER, Maker
from tests.reference.harness import compare
from tests.reference.messages import next_in
from tests.reference.posts import Runtime
from tests.reference.tiles import (
    OutOfBoundsError,
    PendingDataError,
    ShapeError,
    UninitializedReadError,
    WrongProgramError,
)

READS: list[tuple[str, bool]] = [
    ("f[0]", True),
    ("f[None, :][0, 1]", True),
    ("i[0]", True),
    ("(i + 1)[0]", True),
    ("(i * i > 2)[1]", True),
    ("tl.sum(i).item()", True),
    ("i.to('int8')[0]", True),
    ("tl.where(i > 1, i, 0)[0]", True),
    ("tl.trans(tl.reshape(i, (2, 2)))[0, 1]", True),
    ("tl.full((2,), 3, 'int32')[0]", True),
    ("(tl.store(y, f), tl.load(y))[1].item()", True),
    ("tl.load(x + i).numpy()", True),
    ("(f * 2.0)[0]", False),
    ("(f > 0.5)[0]", False),
    ("tl.trans(tl.reshape(f, (2, 2)))[0, 1]", False),
    ("tl.sum(f).item()", False),
    ("f.to('int32')[0]", False),
    ("(i / 2)[0]", False),
    ("i.to('f32')[0]", False),
    ("tl.exp(f)[None, :][0, 0]", False),
    ("tl.full((2,), 3.0, 'f32')[0]", False),
    ("tl.dot(tl.reshape(i, (2, 2)).to('int8'), tl.reshape(i, (2, 2)).to('int8'))[0, 0]", False),
    ("(tl.store(y, f + 1.0), tl.load(y))[1].item()", False),
    ("tl.load(x + tl.argmax(f, 0))", False),
    ("tl.load(x + tl.arange(0, 4), mask=f > 0.5)", False),
]


@pytest.mark.parametrize(("text", "ready"), READS)
def test_what_may_be_read_is_what_both_sides_take_for_ready(text: str, ready: bool) -> None:
    """Loaded data, and integers made of ready integers; not what is a float that an op made, or comes of one."""
    import kernbench_core as kb
    from kernbench_core.errors import PendingDataError as Refused

    def kernel(x: Any, n: Any, y: Any, tl: Any) -> None:
        f, i = tl.load(x, shape=(4,)), tl.load(n, shape=(4,))
        eval(text, {"tl": tl, "f": f, "i": i, "x": x, "y": y})

    def bench(rt: Any) -> None:
        x, n = np.array([0.0, 1.0, 2.0, 3.0], np.float32), np.array([0, 1, 2, 3], np.int32)
        rt.launch(kernel, rt.tensor(x, name="x"), rt.tensor(n, name="n"), rt.zeros((4,), name="y"), grid=(1,))

    if ready:
        bench(Runtime(4))
        kb.run(bench, "tiny")
        return
    with pytest.raises(PendingDataError):
        bench(Runtime(4))
    with pytest.raises(Refused):
        kb.run(bench, "tiny")


def launched(kernel: Callable[..., None], *arrays: Any, out: tuple[Any, ...], pes: int = 4) -> Any:
    """Run a kernel on arrays and one output; give the output."""
    runtime = Runtime(pes)
    tensors = [runtime.tensor(np.asarray(array), name=f"x{i}") for i, array in enumerate(arrays)]
    target = runtime.zeros(*out, name="y")
    runtime.launch(kernel, *tensors, target)
    return target.numpy()


def test_a_new_launch_may_read_what_an_older_one_computed() -> None:
    def kernel(y: Any, tl: Any) -> None:
        seen.append(tl.load(y).item())
        tl.store(y, tl.load(y) + 1.0)

    seen: list[float] = []
    runtime = Runtime(1)
    y = runtime.zeros((1,), name="y")
    runtime.launch(kernel, y)
    runtime.launch(kernel, y)
    assert seen == [0.0, 1.0]


def test_the_first_of_several_senders_is_told() -> None:
    def kernel(y: Any, tl: Any) -> None:
        me = tl.program_id(0)
        if me:
            tl.send(tl.full((1,), 10 * me, "int32"), 0)
            return
        found = [tl.recv_any((1,), "int32", [3, 2, 1]) for _ in range(3)]
        tl.store(y, sum(int(tile) - 10 * source for tile, source in found))
        tl.store(y + 1, len({source for _, source in found}))

    assert launched(kernel, out=((2,), "int32")).tolist() == [0, 3]


@pytest.mark.parametrize(
    ("direction", "pe", "pes", "found"),
    [("e", 0, 4, 1), ("s", 0, 4, 2), ("w", 3, 4, 2), ("n", 3, 4, 1),
     ("e", 3, 64, 8), ("s", 4, 64, 16), ("n", 22, 64, 18), ("n", 18, 64, 6), ("w", 40, 64, 35), ("e", 7, 64, 12)],
)  # fmt: skip
def test_directions_lead_across_cubes(direction: str, pe: int, pes: int, found: int) -> None:
    """Cubes of 4 x 2 PEs, 2 x 2 of them in a package: PE 22 is the third of the second row of the third cube."""
    assert next_in(direction, pe, pes) == found


def test_a_program_gets_the_part_of_its_own_pe() -> None:
    def kernel(x: Any, y: Any, tl: Any) -> None:
        tl.store(y, tl.load(x + 1, shape=(1,)))

    runtime = Runtime(4)
    x, y = runtime.tensor(np.arange(8), name="x"), runtime.zeros((4, 1), "int64", name="y")
    runtime.launch(kernel, x.to_local(), y.to_local())
    assert y.numpy().tolist() == [[1], [3], [5], [7]]


def test_bits_and_fillers() -> None:
    def kernel(x: Any, y: Any, tl: Any) -> None:
        bits = tl.load(x, shape=(2,), dtype="int32")
        tl.store(y, tl.load(x + 2 * tl.arange(0, 2), mask=tl.arange(0, 2) < 1, other=bits.to("int16")))

    assert launched(kernel, np.array([5, 1, 7, 0], np.int16), out=((2,), "int32"), pes=1).tolist() == [5, 7]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("tl.load(x + 3, shape=(2,))", OutOfBoundsError),
        ("tl.load(x - 1)", OutOfBoundsError),
        ("tl.store(x + 4, 1)", OutOfBoundsError),
        ('tl.load(x + 3, shape=(1,), dtype="int32")', ShapeError),
        ('tl.load(x + 2, shape=(2,), dtype="int32")', OutOfBoundsError),
        ("tl.load(nothing)", UninitializedReadError),
    ],
)
def test_wrong_programs_raise(text: str, error: type[WrongProgramError]) -> None:
    def kernel(x: Any, nothing: Any, tl: Any) -> None:
        eval(text, {"tl": tl, "x": x, "nothing": nothing})

    runtime = Runtime(1)
    x, nothing = runtime.tensor(np.arange(4, dtype=np.int16), name="x"), runtime.empty((4,), name="nothing")
    with pytest.raises(error):
        runtime.launch(kernel, x, nothing)


# Faults planted by hand ---------------------------------------------------------------------------------


def _another_sender(patch: pytest.MonkeyPatch) -> None:
    recv_any = TLContext.recv_any

    def mutant(self: Any, shape: Any, dtype: Any, sources: Any = None) -> Any:
        tile, source = recv_any(self, shape, dtype, sources)
        return tile, source if sources is None or len(sources) < 2 else next(s for s in sources if s != source)

    patch.setattr(TLContext, "recv_any", mutant)


def _shard_of_a_neighbour(patch: pytest.MonkeyPatch) -> None:
    of = PerPe.of
    patch.setattr(PerPe, "of", lambda self, pe: of(self, pe ^ 1))


def _pending_data_taken_for_zero(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("kernbench_core.kernel.tl.tensor.Tensor.item", lambda self: 0.0)
    patch.setattr("kernbench_core.kernel.tl.tensor.Tensor.__getitem__", lambda self, key: 0.0)


@pytest.mark.parametrize(
    ("fault", "seed"),
    [(_another_sender, 10009), (_shard_of_a_neighbour, 10034), (_pending_data_taken_for_zero, 10012)],
)
def test_a_planted_fault_is_found(fault: Callable[[pytest.MonkeyPatch], None], seed: int) -> None:
    program = Maker(seed, topology="tiny").program()
    assert compare(program) is None
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        assert compare(program) is not None


def test_earlier_seeds_have_none_of_it() -> None:
    """They make the programs that they always made."""
    new = ("recv_any", "to_local", 'dtype="', "rt.empty", "other=v", "dequant")
    earlier = [Maker(seed).program().source() for seed in range(FURTHER - 10, FURTHER)]
    assert not any(word in source for word in new for source in earlier)
    later = "".join(Maker(seed, topology="tiny").program().source() for seed in range(FURTHER, FURTHER + 40))
    assert all(word in later for word in new)
