"""Reading elements into Python takes time of the PE's CPU, and is counted by line; what else reads tiles is free."""

from __future__ import annotations

import io
import pdb
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import KernelError
from kernbench_core.runs.verdicts import PythonReads, ReadLine, python_reads
from tests.core.kernel_rig import UNIT_NS, Rig

X = np.arange(16, dtype=np.int32).reshape(4, 4)
READ_NS = 0.75
LOAD_NS = UNIT_NS["pe_dma"]


def rig_of(element_read: float | None, pes: int = 1, overhead: float = 1.0) -> Rig:
    """Return a rig whose CPUs take so long to read an element; None: they say nothing of it."""
    rig = Rig(pes, overhead=overhead)
    for cpu in rig.cpus:
        if element_read is not None:
            cpu.element_read_ns = element_read  # type: ignore[attr-defined]
    return rig


def reads_of(kernel: Callable[..., None], element_read: float | None = READ_NS, **named: Any) -> PythonReads | None:
    """Run a kernel on `X`, and return what it read."""
    rig = rig_of(element_read)
    rig.run(kernel, rig.tensor(X), **named)
    return python_reads(rig.kernels)


@pytest.mark.parametrize("overhead", [0.0, 1.0])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_the_next_command_leaves_later_by_what_was_read_before_it(overhead: float, count: int) -> None:
    """The command behind the reads, and none after that."""
    sent: list[float] = []

    def kernel(x: Any, tl: Any) -> None:
        loaded = tl.load(x, shape=(4, 4))
        for _ in range(count):
            loaded[0, 0]
        tl.load(x, shape=(4, 4))
        tl.load(x, shape=(4, 4))

    rig = rig_of(READ_NS, overhead=overhead)
    send = rig.cpus[0].send_command
    rig.cpus[0].send_command = lambda cmd: (sent.append(rig.env.now), send(cmd))  # type: ignore[method-assign]
    total = rig.run(kernel, rig.tensor(X))
    step = overhead + LOAD_NS
    assert sent == [overhead, overhead + step + count * READ_NS, overhead + 2 * step + count * READ_NS]
    assert total == 3 * step + count * READ_NS


def test_what_is_read_last_is_paid_at_the_end_beside_what_is_in_flight() -> None:
    """The program is over when the later of both is; the next program of the PE begins then."""

    def kernel(x: Any, count: int, tl: Any) -> None:
        loaded = tl.load(x, shape=(4, 4))
        tl.load(x, shape=(4, 4), wait=False)
        for _ in range(count):
            loaded[1, 1]

    def took(count: int, grid: int = 1) -> float:
        rig = rig_of(1.0, overhead=0.0)
        return rig.run(kernel, rig.tensor(X), count, grid=grid)

    assert took(0) == took(100) == 2 * LOAD_NS
    assert took(101) == 2 * LOAD_NS + 1
    assert took(101, grid=2) == 2 * (2 * LOAD_NS + 1)


def test_reads_wait_for_the_tile() -> None:
    """Of one that is on its way, reading begins when it is there."""

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x, shape=(4, 4), wait=False)[3, 3]

    rig = rig_of(READ_NS)
    assert rig.run(kernel, rig.tensor(X)) == 1 + LOAD_NS + READ_NS


@pytest.mark.parametrize("overhead", [0.0, 1.0])
@pytest.mark.parametrize("element_read", [None, 0.0])
def test_reads_may_be_free_and_take_no_event_then(element_read: float | None, overhead: float) -> None:
    """Of a CPU that says nothing of them, too; the result says why."""

    def kernel(x: Any, count: int, tl: Any) -> None:
        loaded = tl.load(x, shape=(4, 4))
        for _ in range(count):
            loaded[0, 0]
        tl.load(x, shape=(4, 4))
        for _ in range(count):
            loaded[0, 0]

    def ran(count: int) -> tuple[float, int, PythonReads | None]:
        rig = rig_of(element_read, overhead=overhead)
        for cpu in rig.cpus:
            cpu.node = type(cpu.node)(cpu.node.id, "pe_cpu", "acme.cpu")
        return rig.run(kernel, rig.tensor(X), count), rig.env.events, python_reads(rig.kernels)

    (time, events, none), (other_time, other_events, found) = ran(0), ran(3)
    assert (time, events, none) == (other_time, other_events, None)
    assert found is not None
    why = "acme.cpu has no element_read" if element_read is None else "element_read of acme.cpu is 0"
    assert (found.elements, found.cost_ns, found.free) == (6, 0.0, (why,))
    assert found.sentence == (
        f"6 elements read into Python, of 32 loaded, at no time, as {why}; arithmetic on them is not timed"
    )


@pytest.mark.parametrize("element_read", [-1.0, float("inf"), float("nan")])
def test_a_read_takes_a_finite_time(element_read: float) -> None:
    """A control processor of a plug-in may say anything."""
    told = f"element_read_ns must be a finite time in ns, at least 0, not {element_read!r}"
    with pytest.raises(KernelError, match=told):
        rig_of(element_read).run(lambda tl: None)


DOORS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "float()": (lambda one, _: float(one), 1),
    "int()": (lambda one, _: int(one), 1),
    "bool()": (lambda one, _: bool(one), 1),
    "item()": (lambda one, _: one.item(), 1),
    "a condition": (lambda one, _: 1 if one else 2, 1),
    "an index": (lambda one, _: "0123456789abcdef"[one], 1),
    "range": (lambda one, _: [*range(one)], 1),
    "an element": (lambda _, tile: tile[2, 1], 1),
    "an element at a tile": (lambda one, tile: tile.view(16)[one], 2),
    "numpy()": (lambda _, tile: tile.numpy(), 16),
    "data": (lambda _, tile: tile.data, 16),
    "np.asarray": (lambda _, tile: np.asarray(tile), 16),
    "np.array of one": (lambda one, _: np.array(one, np.float64), 1),
    "iteration": (lambda _, tile: [*tile.view(16)], 16),
    "iteration that stops": (lambda _, tile: next(iter(tile.view(16))), 1),
    "sum": (lambda _, tile: sum(tile.view(16)), 16),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_way_into_python_counts_its_elements(door: str) -> None:
    """As many times as it is gone."""
    read, elements = DOORS[door]

    def kernel(x: Any, tl: Any) -> None:
        one, tile = tl.load(x + 9), tl.load(x, shape=(4, 4))
        read(one, tile)
        read(one, tile)

    found = reads_of(kernel)
    assert found is not None
    assert (found.elements, found.loaded, found.cost_ns) == (2 * elements, 17, 2 * elements * READ_NS)


def test_an_array_of_a_tile_has_its_dtype_and_cannot_be_written() -> None:
    """It is what `numpy()` gives; a copy is the kernel's own."""
    seen: list[Any] = []

    def kernel(x: Any, tl: Any) -> None:
        tile = tl.load(x, shape=(4, 4))
        seen.extend([np.asarray(tile), np.array(tile), np.asarray(tile, np.float64)])

    reads_of(kernel)
    same, copied, cast = seen
    assert [each.dtype for each in seen] == [np.int32, np.int32, np.float64]
    assert all(np.array_equal(each, X) for each in seen)
    assert not same.flags.writeable
    assert copied.flags.writeable
    assert cast.flags.writeable


def _debugged(one: Any, tile: Any) -> None:
    told = io.StringIO()
    asked = io.StringIO("p tile.numpy()\np float(one)\np [*tile.view(16)]\nc\n")
    debugger = pdb.Pdb(stdin=asked, stdout=told, nosigint=True)  # `c` would leave its handler to later tests
    debugger.use_rawinput = False
    debugger.set_trace()
    one, tile = one, tile  # the line at which it stops
    assert "9.0" in told.getvalue()
    assert "15" in told.getvalue()


FREE: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "an address": lambda tl, x, one, tile: tl.load(x + one),
    "addresses": lambda tl, x, one, tile: tl.load(x + tile),
    "arithmetic of addresses": lambda tl, x, one, tile: tl.load(x + (tile * 2) % 8),
    "a mask": lambda tl, x, one, tile: tl.load(x + tl.arange(0, 16).reshape(4, 4), mask=tile > 3),
    "a mask of a store": lambda tl, x, one, tile: tl.store(x + tile, tile, mask=tile > 3),
    "a check": lambda tl, x, one, tile: tl.device_assert(tile < 16, mask=tile > 3),
    "print": lambda tl, x, one, tile: print(one, tile, f"{tile}"),
    "repr": lambda tl, x, one, tile: repr(tile),
    "device_print": lambda tl, x, one, tile: tl.device_print("tile", one, tile),
    "a breakpoint": lambda tl, x, one, tile: _debugged(one, tile),
    "shapes": lambda tl, x, one, tile: (len(tile), tile.shape, tile.numel, tile[:, None], tile.view(16), tile.dtype),
    "arithmetic of units": lambda tl, x, one, tile: (tile + one, tl.sum(tile), tl.where(tile > one, tile, 3)),
    "index arithmetic": lambda tl, x, one, tile: [int(each) for each in tl.arange(0, 8).numpy() + tl.program_id(0)],
}


@pytest.mark.parametrize("use", FREE)
def test_what_is_no_read_of_the_kernels_python_is_free(use: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Addresses, masks, prints, what a debugger shows, and numbers that are the kernel's own."""

    def kernel(x: Any, tl: Any) -> None:
        FREE[use](tl, x, tl.load(x + 9), tl.load(x, shape=(4, 4)))

    assert reads_of(kernel) is None


def test_elements_loaded_are_those_that_a_mask_leaves() -> None:
    """And not what else a program brings into its scratchpad."""

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x + tl.arange(0, 16), mask=tl.arange(0, 16) < 5, other=0)
        tl.store(x, tl.load(x, shape=(2, 4)))
        tl.full((8, 8), 1, tl.int32)[0, 0]

    found = reads_of(kernel)
    assert found is not None
    assert (found.elements, found.loaded) == (1, 5 + 8)


def test_lines_are_named_most_first() -> None:
    """Over all programs and PEs; of calls on one line the sum."""

    def kernel(x: Any, tl: Any) -> None:
        tile = tl.load(x, shape=(4, 4))
        tile[0, 0] + tile[1, 1]
        for i in range(4):
            tile[i, i]

    rig = rig_of(READ_NS, pes=2)
    rig.run(kernel, rig.tensor(X), grid=3)
    found = python_reads(rig.kernels)
    first = kernel.__code__.co_firstlineno
    assert found is not None
    assert found.lines == (ReadLine(f"{__file__}:{first + 4}", 12), ReadLine(f"{__file__}:{first + 2}", 6))
    assert (found.elements, found.loaded, found.cost_ns) == (18, 48, 18 * READ_NS)
    assert found.sentence == (
        "18 elements read into Python, of 48 loaded, in 13.5 ns of the PEs' CPUs; arithmetic on them is not timed"
    )


@pytest.mark.parametrize(
    ("elements", "loaded", "many"),
    [(256, 0, False), (257, 0, True), (257, 25_699, True), (257, 25_700, False), (1000, 99_999, True)],
)
def test_more_than_one_of_a_hundred_and_than_256_are_many(elements: int, loaded: int, many: bool) -> None:
    """At both sides of both bounds."""
    assert PythonReads(elements, loaded, 0.0, ()).many == many


def test_a_few_lines_are_told() -> None:
    """Those that read most, and how many more there are."""
    found = PythonReads(10, 0, 0.0, tuple(ReadLine(f"k.py:{n}", 5000 - n) for n in range(5)))
    assert [*found.list_lines()] == [
        "  5,000 at k.py:0", "  4,999 at k.py:1", "  4,998 at k.py:2", "  and at 2 more lines; --json lists them",
    ]  # fmt: skip
    assert len([*found.list_lines(5)]) == 5
    assert [*found.list_lines(4)][-1] == "  and at 1 more line; --json lists them"
