"""Placed tensors on the built-in machine: right data for every placement, and time and wires as the placement says."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core import Interleave, Replicate, Shard
from kernbench_core.errors import KernelError, PageFaultError, ShapeError, UsageError
from kernbench_core.graph import EdgeKind
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology

TWO_SIPS = ("system.sips=2", "sip.mesh.width=2", "cube.pes=4")
A = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)

#: The same, smaller, for kernels that have every PE read all of it.
SQUARE = A[:32]

PLACEMENTS = [
    None,
    Replicate(),
    Shard(0),
    Shard(1),
    Interleave(256),
    Interleave(200),
    (Replicate(), Shard(0), Shard(1)),
    (Shard(1), Replicate(), Shard(0)),
    (Shard(0), Replicate(), Interleave(128)),
    {"cube": Shard(-1)},
]


def run(bench: Callable[..., None], **options: Any) -> kb.RunResult:
    """Run a host program on two SIPs of two cubes of four PEs."""
    return kb.run(bench, topology="tiny", set=TWO_SIPS, **options)


def doubled(x: Any, y: Any, rows: int, cols: int, tl: Any) -> None:
    """Double a whole tile that starts at the pointers."""
    tl.store(y, tl.load(x, shape=(rows, cols)) * 2.0)


def own_rows(x: Any, y: Any, rows: int, cols: int, tl: Any) -> None:
    """Double this program's block of rows, and the same bytes of a tensor that is dealt by rows."""
    at = tl.program_id(0) * rows * cols
    tl.store(y + at, tl.load(x + at, shape=(rows, cols)) * 2.0)


def own_columns(x: Any, y: Any, rows: int, cols: int, tl: Any) -> None:
    """Double this program's two columns, through tensors of pointers."""
    offsets = tl.arange(0, rows)[:, None] * cols + tl.program_id(0) * 2 + tl.arange(0, 2)[None, :]
    tl.store(y + offsets, tl.load(x + offsets) * 2.0)


@pytest.mark.parametrize(
    "placement",
    PLACEMENTS,
    ids=str,
)
def test_whole_tensors_survive_every_placement(placement: Any) -> None:
    """What the host writes is what it reads; rows, columns and the whole tensor are the same through the MMU."""

    def bench(rt: Any) -> None:
        x = rt.tensor(SQUARE, placement=placement)
        assert np.array_equal(x.numpy(), SQUARE)
        rows, columns, whole = (rt.empty(SQUARE.shape) for _ in range(3))
        rt.launch(own_rows, x, rows, 2, 32)
        rt.launch(own_columns, x, columns, 32, 32)
        rt.launch(doubled, x, whole, 32, 32, grid=(1,))
        for result in (rows, columns, whole):
            rt.check(result, SQUARE * 2)
        placed = rt.empty(SQUARE.shape, placement=placement)
        rt.launch(doubled, x, placed, 32, 32)
        rt.check(placed, SQUARE * 2)

    assert run(bench, verify_data=True).verified is True


@pytest.mark.parametrize("placement", PLACEMENTS, ids=str)
def test_every_pe_works_on_its_own_shard(placement: Any) -> None:
    """A kernel that doubles the shard it is given doubles the tensor, every copy of it."""

    def shard(x: Any, y: Any, tl: Any) -> None:
        assert x.tensor.shape == y.tensor.shape
        tl.store(y, tl.load(x, shape=x.tensor.shape) * 2.0)

    def bench(rt: Any) -> None:
        x, y = rt.tensor(A, placement=placement), rt.empty(A.shape, placement=placement)
        rt.launch(shard, x.to_local(), y.to_local())
        rt.check(y, A * 2)
        for replica in range(y.replicas):
            assert np.array_equal(y.numpy(replica), A * 2)
        assert [held.shape for held in y.shards] == [y.local_shape(held.pe) for held in y.shards]
        assert sum(held.nbytes for held in y.shards) == A.nbytes * y.replicas

    assert run(bench, verify_data=True).verified is True


def test_composites_read_their_own_copies() -> None:
    """Operands of a composite may be sharded by columns or replicated; so may its output."""

    def product(a: Any, b: Any, c: Any, tl: Any) -> None:
        m, k = a.tensor.shape
        n = b.tensor.shape[1]
        tl.wait(tl.composite("gemm", tl.ref(a, (m, k)), tl.ref(b, (k, n)), c, tile_m=16, tile_k=16, tile_n=8))

    def bench(rt: Any) -> None:
        rng = np.random.default_rng(1)
        left, right = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, 32), (32, 32)))
        rows, columns = (Replicate(), Shard(0), Replicate()), (Shard(1), Replicate(), Shard(1))
        a, b = rt.tensor(left, placement=rows), rt.tensor(right, placement=columns)
        c = rt.empty((64, 32), placement=(Shard(1), Shard(0), Shard(1)))
        rt.launch(product, a.to_local(), b.to_local(), c.to_local())
        rt.check(c, left @ right)

    assert run(bench, verify_data=True).verified is True


def test_copies_that_differ_are_told() -> None:
    """A store changes the copy of the PE that stores, and no other; the check compares each, and names what differs."""

    def one(x: Any, tl: Any) -> None:
        if tl.program_id(0) == 5:
            tl.store(x + tl.arange(0, 4), tl.zeros((4,), tl.float32))

    def bench(rt: Any) -> None:
        x = rt.tensor(A + 1, placement=Replicate(), name="x")
        rt.launch(one, x)
        assert [bool((x.numpy(copy) == A + 1).all()) for copy in range(16)] == [copy != 5 for copy in range(16)]
        rt.check(x, A + 1)

    result = run(bench, verify_data=True)
    assert result.verified is False
    assert result.verification.checked == 2
    (failure,) = result.verification.failures
    assert failure.startswith(f"tensor 'x, replica 5', checked at {__file__}:")
    assert " must equal what is expected within rtol=1e-05, atol=1e-05, but 4 of " in failure


def test_hazards_are_found_between_a_shard_and_the_whole() -> None:
    """Stores through `to_local()` and through the tensor meet in physical memory, and are watched together."""

    def race(whole: Any, own: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.store(whole + 4, tl.zeros((4,), tl.float32))
        else:
            tl.store(own, tl.zeros((4,), tl.float32))

    def bench(rt: Any) -> None:
        x = rt.zeros((64,), placement=Shard(0), name="x")
        rt.launch(race, x, x.to_local())

    (hazard,) = run(bench).hazards
    assert (hazard.kind, hazard.name, hazard.index, hazard.nbytes) == (
        "unordered_writes", "x on sip0.cube0.pe1", (0,), 16,
    )  # fmt: skip


def test_a_host_writes_every_copy() -> None:
    """Sixteen copies take the wire to each SIP at least eight times as long as one."""
    times = {}

    def bench(rt: Any) -> None:
        for name, placement in (("shards", Shard(0)), ("copies", Replicate())):
            before = rt.now
            rt.tensor((256, 256), "f32", placement=placement)
            times[name] = rt.now - before

    run(bench)
    assert times["copies"] > 8 * times["shards"]


def carried(plugins: Plugins, placement: Any, device: Any = None) -> dict[EdgeKind, int]:
    """Give the payload that wires of each kind carried while each PE loaded the whole tensor."""
    graph = compile_topology(configure(plugins, "tiny", sets=TWO_SIPS), plugins)
    engine = kb.GraphEngine(graph, components=plugins.components)

    def load(x: Any, tl: Any) -> None:
        tl.load(x, shape=(64, 32))

    before: dict[str, int] = {}

    def bench(rt: Any) -> None:
        x = rt.tensor(A, placement=placement, device=device)
        before.update({wire.name: wire.bytes_carried for wire in engine.hardware.wires})
        rt.launch(load, x)

    engine.run(bench)
    kinds = {f"{edge.src}->{edge.dst}": edge.kind for edge in graph.edges.values()}
    found = dict.fromkeys(EdgeKind, 0)
    for wire in engine.hardware.wires:
        if wire.name in kinds:
            found[kinds[wire.name]] += wire.bytes_carried - before[wire.name]
    return found


def test_a_replicated_operand_stays_off_the_wires(plugins: Plugins) -> None:
    """With a copy in each SIP nothing crosses the scale-up links; one in each cube spares UCIe, in each PE the mesh."""
    shards = carried(plugins, Shard(0))
    per_sip = carried(plugins, {"cube": Shard(0), "pe": Shard(0)})
    per_cube = carried(plugins, {"pe": Shard(0)})
    per_pe = carried(plugins, Replicate())
    # of 16 PEs each loads, from the other SIP, the half of the tensor that lies there
    assert shards[EdgeKind.SCALE_UP] >= 16 * A.nbytes // 2
    assert per_sip[EdgeKind.SCALE_UP] == per_cube[EdgeKind.SCALE_UP] == per_pe[EdgeKind.SCALE_UP] == 0
    # what is left on UCIe and the mesh are launches, of 200 B at most for each cube and step
    assert per_sip[EdgeKind.UCIE] >= 16 * A.nbytes // 2
    assert per_cube[EdgeKind.UCIE] == per_pe[EdgeKind.UCIE] < 4096
    assert per_cube[EdgeKind.NOC] > 16 * A.nbytes // 2
    assert per_pe[EdgeKind.NOC] < 4096
    one_sip = carried(plugins, Shard(0), device="sip:1")
    assert one_sip[EdgeKind.SCALE_UP] >= 8 * A.nbytes


def test_farther_is_never_faster() -> None:
    """The time of a load grows, step by step, with the distance of the only copy: own PE, cube, SIP, other SIP."""
    times: list[float] = []

    def load(x: Any, block: int, tl: Any) -> None:
        tl.load(x + block * 4 * 32, shape=(4, 32))

    def bench(rt: Any) -> None:
        x = rt.tensor(A, placement=Shard(0))
        for pe in (0, 1, 4, 8):
            launch = rt.launch(load, x, pe, grid=(1,)).launch
            times.append(launch.ended_ns[0] - launch.started_ns[0])

    run(bench)
    assert times == sorted(times)
    assert len(set(times)) == 4


def test_a_device_narrows_the_mesh() -> None:
    """A tensor on one SIP is cut over the PEs of that SIP alone."""

    def bench(rt: Any) -> None:
        x = rt.tensor(A, placement=Shard(0), device="sip:1")
        assert [held.pe for held in x.shards] == list(range(8, 16))
        assert x.shards[1].index == (slice(8, 16), slice(0, 32))
        assert repr(x) == (
            "<DeviceTensor tensor1 f32[64, 32] placed (Shard(dim=0), Shard(dim=0), Shard(dim=0)) over 8 PEs>"
        )
        with pytest.raises(UsageError) as caught:
            x.local_shape(3)
        assert str(caught.value) == "tensor 'tensor1' has shards on PEs 8 to 15, not on PE 3; ask for one of these."
        with pytest.raises(UsageError) as caught:
            rt.launch(doubled, x.to_local(), x, 1, 1)
        assert str(caught.value) == (
            "rt.launch: tensor 'tensor1' must have a shard on each PE of the launch for to_local(), and has none on "
            "sip0.cube0.pe0; launch on the tensor's device, or give the whole tensor."
        )
        with pytest.raises(UsageError) as caught:
            rt.empty((4,), device=7)
        assert str(caught.value) == "rt.empty: device must name SIPs of this run, not [7]; this run has [0, 1]."
        with pytest.raises(UsageError) as caught:
            x.numpy(1)
        assert str(caught.value) == "tensor 'tensor1' has 1 copies, and no copy 1; count from 0."
        rt.launch(doubled, x.to_local(), x.to_local(), 8, 32, device=1)
        rt.check(x, A * 2)

    assert run(bench, verify_data=True).verified is True


def test_a_freed_shard_faults_with_the_kernel_line() -> None:
    """Its addresses are never used again: the fault names the line, the program, the PE and the tensor below."""
    kept: list[Any] = []

    def keep(x: Any, tl: Any) -> None:
        kept.append(x)

    def use(tl: Any) -> None:
        tl.load(kept[0], shape=(4,))

    def bench(rt: Any) -> None:
        rt.tensor(A, name="below")
        x = rt.tensor(A, placement=Shard(0), name="x")
        rt.launch(keep, x.to_local(), grid=(1,))
        rt.free(x)
        rt.launch(use, grid=(1,))

    with pytest.raises(PageFaultError) as caught:
        run(bench)
    first, second = str(caught.value).split("\n")
    # x took 2 pages behind the 2 of "below", and its shard the next
    line = use.__code__.co_firstlineno + 1
    assert first == (
        f"tl.load at {__file__}:{line} must reach memory that is mapped, and element [0, 0] of tensor "
        f"'x on sip0.cube0.pe0' is not: virtual address {kept[0].tensor.va:#x} must be mapped, and is 8192 B past the "
        "end of tensor 'below'; was the tensor that lived there freed? Free a tensor after its last use."
    )
    assert second.startswith("  in kernel 'use', program (0, 0, 0), on sip0.cube0.pe0 at ")


def test_misaligned_and_outside_accesses_name_the_tensor_and_the_line() -> None:
    """A tile that starts inside an element of its dtype is refused; so is one that leaves its shard."""

    def misaligned(x: Any, tl: Any) -> None:
        tl.load(x + 1, shape=(4,), dtype=tl.float32)

    def outside(x: Any, tl: Any) -> None:
        tl.load(x + 1, shape=(4, 32))

    def bench_misaligned(rt: Any) -> None:
        rt.launch(misaligned, rt.tensor(A.astype(np.float16), name="x"), grid=(1,))

    def bench_outside(rt: Any) -> None:
        rt.launch(outside, rt.tensor(A, name="x", placement=Shard(0)).to_local(), grid=(1,))

    with pytest.raises(ShapeError) as caught:
        run(bench_misaligned)
    line = misaligned.__code__.co_firstlineno + 1
    assert str(caught.value).split("\n")[0] == (
        f"tl.load at {__file__}:{line} must start at a multiple of 4 B in tensor 'x' to read f32, not 2 B after one; "
        "align the pointer."
    )
    with pytest.raises(KernelError) as outside_error:
        run(bench_outside)
    line = outside.__code__.co_firstlineno + 1
    assert str(outside_error.value).split("\n")[0] == (
        f"tl.load at {__file__}:{line} must stay inside tensor 'x on sip0.cube0.pe0' of shape (4, 32), and reaches "
        "element [4, 0]; correct the index arithmetic, or mask it off."
    )


def test_a_full_memory_says_what_is_there_and_who_made_it() -> None:
    """The sentence names the slice, what is free, and each tensor there with the line of the host program."""

    def bench(rt: Any) -> None:
        lines.append(sys._getframe().f_lineno + 1)
        rt.empty((1024, 1024), placement=Replicate(), name="weights")
        rt.empty((1024, 1024), placement=Replicate(), name="more")

    lines: list[int] = []
    with pytest.raises(KernelError) as caught:
        kb.run(bench, topology="tiny", set=("cube.hbm.capacity=24 MiB",))
    first, second = str(caught.value).split("\n")[:2]
    assert first == (
        "the HBM slice of sip0.cube0.pe0 must have 4 MiB free for tensor 'more', and has 2 MiB of 6 MiB (largest hole "
        "2 MiB); free a tensor or place it on more PEs. Allocated there:"
    )
    assert second.endswith(f"      4 MiB  weights in 4 copies, made at {__file__}:{lines[0]}")


@pytest.mark.parametrize("call", ["tl.load", "tl.composite"])
def test_an_element_that_a_placement_cuts_apart_is_refused_with_its_line(call: str) -> None:
    """Bytes that are dealt one by one hold no int32 in one place; the same bytes in one piece do."""
    bits = np.arange(64, dtype=np.int8).reshape(8, 8)

    def loaded(x: Any, y: Any, tl: Any) -> None:
        tl.store(y, tl.load(x + 8, shape=(2, 2), dtype="int32"))

    def composed(x: Any, y: Any, tl: Any) -> None:
        tl.wait(tl.composite("math", tl.ref(x + 8, (2, 2), dtype="int32"), None, y, math_op="abs"))

    kernel = {"tl.load": loaded, "tl.composite": composed}[call]

    def placed(placement: Any) -> Callable[..., None]:
        def bench(rt: Any) -> None:
            x, y = rt.tensor(bits, name="x", placement=placement), rt.zeros((2, 2), "int32", name="y")
            rt.launch(kernel, x, y, grid=(1,))
            rt.check(y, bits.reshape(-1)[8:24].view(np.int32).reshape(2, 2))

        return bench

    for placement in (None, {"pe": Shard(0)}, Interleave(64)):
        assert run(placed(placement), verify_data=True).verified
    for placement in ({"pe": Shard(1)}, Interleave(2)):
        with pytest.raises(ShapeError) as caught:
            run(placed(placement))
        assert str(caught.value).partition("\n")[0] == (
            f"{call} at {__file__}:{kernel.__code__.co_firstlineno + 1} must find each element of int32 in one piece, "
            "but the placement of tensor 'x' splits its 4 bytes; give int8, or place whole elements."
        )
