"""Where arrays of kernels in Triton lie: by a rule of the launch alone, with the same data wherever that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench as kb
from kernbench_builtin.triton.placement import ArrayPlace, LaunchShape
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins
from tests.builtin.triton.kernels import walking

# mypy: disable-error-code="import-not-found"

HOW = ("near", "blocks", "interleaved")


def moving() -> Any:
    """Give a kernel that moves blocks of a vector and adds a row to each."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, row_ptr, out_ptr, n, by, BLOCK: tl.constexpr):  # noqa: N803
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + (at + by) % n, mask=at < n, other=0)
        tl.store(out_ptr + at, x + tl.load(row_ptr + at % 7), mask=at < n)

    return kernel


@settings(max_examples=6)
@given(st.integers(1, 3000), st.integers(0, 50), st.sampled_from([16, 64, 256]), st.integers(1, 3), st.booleans())
def test_data_is_the_same_wherever_arrays_lie(n: int, by: int, block: int, launches: int, half: bool) -> None:
    """What the host reads and writes between launches too, of views and of arrays that are given again."""
    rng = np.random.default_rng(n)
    whole = rng.standard_normal(2 * n).astype(np.float16 if half else np.float32)
    row = rng.standard_normal(7).astype(whole.dtype)
    right, at = whole[n:].copy(), np.arange(n)
    for each in range(launches):
        right = right[(at + by) % n] + row[at % 7]
        right[0] = each
    for how in HOW:
        x, out = whole.copy()[n:], np.zeros((n,), whole.dtype)
        with kb.triton("tiny", placement=how) as sim:
            for each in range(launches):
                moving()[((n + block - 1) // block,)](x, row, out, n, by, BLOCK=block)
                x, out = out, x
                x[0] = each
        assert x.tolist() == right.tolist() and sim.verified
        assert sim.result is not None and not sim.result.hazards


@pytest.mark.parametrize(
    ("programs", "axes", "constants", "elements", "row", "piece"),
    [
        (97, 1, (1024,), 98_432, 1, 1024),  # one block a program, the last one short
        (96, 1, (1024,), 96_000, 100, 1500),  # not so many blocks: rows
        (94, 1, (1024,), 96_000, 100, 1024),  # blocks of a matrix, whatever its rows
        (64, 1, (1024,), 1823 * 781, 781, 781),  # a block holds a row
        (64, 1, (64,), 4096 * 64, 64, 64 * 64),  # 64 rows a program: its tile
        (64, 1, (16, 64), 1000 * 64, 64, 16 * 64),  # 16 rows a program, the last one fewer
        (64, 1, (64,), 64 * 64, 64, 64),  # a row a program, though short
        (32, 1, (64,), 4096 * 64, 64, 1024),  # several short rows, nobody knows which: 4 KiB
        (160, 1, (128, 1024), 256 * 1024, 1024, 4 * 1024),  # of blocks of two sizes, neither a program's: equal blocks
        (151, 1, (1024,), 1024, 1, 256),  # a vector that all read: at least 1 KiB
        (64, 1, (16, 64), 4096, 1, 64),  # a block of one of two sizes for each program
        (4, 1, (64, 128), 4096, 1, 1024),  # 4096 / 4, of blocks of two sizes
        (5, 1, (64, 128), 4096, 1, 1024),  # the next power of two
        (64, 1, (1024,), 64, 1, 1),  # a number a program
        (64, 1, (1024,), 63, 1, 256),
        (64, 1, (1024,), 64 * 4096, 4096, 4096),  # a row a program, though in several blocks
        (16, 1, (64, 128), 1024 * 1024, 1024, 64 * 1024),  # 64 rows a program, in several blocks
        (128, 1, (32, 64), 512 * 512, 512, 8 * 512),  # tiles: equal blocks of rows
        (8, 2, (64,), 2048 * 64, 64, 64 * 64),  # two axes: on the package with programs
        (33, 2, (64,), 4096 * 64, 64, 64 * 64),  # on both
        (33, 2, (64,), 64 * 64, 64, 1024),  # of at least 4 KiB
        (128, 1, (32, 64), 512 * 512, 0, 4096),  # a part of a larger array, not in order: equal blocks
        (256, 1, (4, 1024), 1024 * 1024, 1024, 4 * 1024),  # four rows a program: fewer than a block may have
        (64, 1, (33_280,), 64 * 33_280 - 5, 1, 33_280),  # a block that is no power of two, where none is
        (64, 1, (4,), 256, 1, 4),  # four elements a program
        (64, 1, (2,), 128 * 4, 4, 8),  # two short rows
        (64, 1, (4,), 257, 1, 256),  # not so many blocks of four: at least 1 KiB
    ],
)
def test_near_is_a_rule_of_the_launch(
    programs: int, axes: int, constants: tuple[int, ...], elements: int, row: int, piece: int
) -> None:
    """On two packages of 32 PEs, of elements of 4 B."""
    given = {f"C{number}": each for number, each in enumerate(constants)}
    grid = (programs,) if axes == 1 else (programs // 3, 3) if programs % 3 == 0 else (programs // 2, 2)
    assert LaunchShape.of(grid, [0] * 32 + [1] * 32, given).piece(elements, row, 4) == piece


def test_a_launch_says_its_programs_axes_and_blocks() -> None:
    """Powers of two from 16 on, each once, are blocks, where there are any; True is no number, 1 no number of rows."""
    constants = {"A": 64, "B": 64, "C": 781, "D": 8, "E": True, "F": "x", "G": 1}
    assert LaunchShape.of((4, 1, 3), [0] * 8, constants) == LaunchShape(12, 2, 8, 8, (64,), (8, 64, 781))
    assert LaunchShape.of((12,), [0] * 8, {"C": 781, "D": 8}) == LaunchShape(12, 1, 8, 8, (781,), (8, 781))
    assert LaunchShape.of((3,), [0] * 4 + [1] * 4, {}) == LaunchShape(3, 1, 8, 4)
    assert LaunchShape.of((5,), [0] * 4 + [1] * 4, {}) == LaunchShape(5, 1, 8, 8)


def test_a_program_finds_its_piece_in_its_own_memory() -> None:
    """Near, no byte leaves its PE's slice, in several rounds; in equal blocks most do."""
    crossing = {}
    for how in HOW:
        x, out = np.ones(16 * 1024, np.float32), np.zeros(16 * 1024, np.float32)
        with kb.triton("tiny", placement=how) as sim:
            moving()[(16,)](x, np.zeros(7, np.float32), out, x.size, 0, BLOCK=1024)
        assert out.tolist() == [1.0] * x.size
        crossing[how] = sim.launches[0].time_ns
        place = {each.name: each.piece for each in sim.places}
        assert place["x_ptr"] == {"near": 4096, "blocks": 0, "interleaved": 4096}[how]
    assert crossing["near"] == crossing["interleaved"] < crossing["blocks"]


def test_an_array_stays_where_its_first_launch_put_it() -> None:
    """And one of its name and size is put where its own launch wants it."""
    x, out = np.ones(4096, np.float32), np.zeros(4096, np.float32)
    row = np.zeros(7, np.float32)
    with kb.triton("tiny") as sim:
        for block in (1024, 512):
            moving()[(4096 // block,)](x, row, out, 4096, 0, BLOCK=block)
        del out
        out = np.zeros(4096, np.float32)
        moving()[(8,)](x, row, out, 4096, 0, BLOCK=512)
    found = [(each.name, each.piece) for each in sim.places if each.name != "row_ptr"]
    assert found == [("x_ptr", 4096), ("out_ptr", 4096), ("out_ptr", 2048)]


def test_a_part_in_order_lies_as_it_would_alone() -> None:
    """Of a part with holes nobody knows the rows: its storage lies in equal blocks."""
    both, wide = np.ones((2, 4096), np.float32), np.ones((4096, 2), np.float32)
    for x, piece in ((both[0], 1024 * 4), (wide[:, 0], 2048 * 4)):
        with kb.triton("tiny") as sim:
            moving()[(4,)](x, np.zeros(7, np.float32), np.zeros(4096, np.float32), 4096, 0, BLOCK=1024)
        assert next(each.piece for each in sim.places if each.name == "x_ptr") == piece


SCRIPT = '''\
import numpy as np
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


if __name__ == "__main__":
    double[(5,)](np.ones(5000, np.float32), 5000, BLOCK=1024)
'''


def test_the_command_says_and_keeps_where_arrays_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a line, of each with -v, as JSON and in the manifest; a kernel alone lies as in a script."""
    monkeypatch.chdir(tmp_path)
    Path("s.py").write_text(SCRIPT)

    def ran(*words: str) -> str:
        assert main([*words, "--topology", "tiny"]) == 0
        return capsys.readouterr().out

    told = ran("triton", "s.py")
    assert "arrays lie in pieces, dealt to PEs as the programs of their first launch are (--placement)\n" in told
    told = ran("triton", "s.py", "-v", "--placement", "blocks")
    assert "arrays lie in equal blocks on all PEs (--placement):" in told
    assert "  x_ptr (19.53 KiB) lies in equal blocks on 4 PEs" in told
    times = {}
    for how in HOW:
        found = json.loads(ran("triton", "s.py", "--json", "--placement", how))
        assert found["result"]["manifest"]["placement"] == how
        times[how] = found["result"]["launches"][0]["time_ns"]
        alone = ("run", "s.py:double", "-p", "x_ptr=zeros:f32:5000", "-p", "n=5000", "-p", "BLOCK=1024", "--grid", "5")
        single = json.loads(ran(*alone, "--json", "--placement", how))
        assert single["launches"][0]["time_ns"] == times[how]
    assert times["near"] < times["blocks"]


def test_a_place_must_be_one_of_three() -> None:
    """In a sentence."""
    with pytest.raises(kb.KernbenchError) as error, kb.triton("tiny", placement="far") as sim:
        assert sim.machine.pes
    assert str(error.value) == "placement must be 'near' or 'blocks' or 'interleaved', not 'far'."


def test_a_place_is_said_in_words() -> None:
    """What is whole on one PE is in no pieces."""
    assert str(ArrayPlace("out", 4, 1024, 1)) == "out (4 B) lies on 1 PE"
    assert str(ArrayPlace("x", 4096, 1024, 4)) == "x (4 KiB) lies in pieces of 1 KiB on 4 PEs"
    assert str(ArrayPlace("y", 4096, 0, 4)) == "y (4 KiB) lies in equal blocks on 4 PEs"


def test_a_placement_that_places_nothing_is_said(plugins: Plugins) -> None:
    """A bench whose kernels are not in Triton says itself where its tensors lie."""
    told = "--placement places the arrays of kernels in Triton, and changed nothing here: this run has none of them"
    for placement in ("blocks", "near"):
        result = kb.run("vector-add", "tiny", {"n": 4096}, placement=placement, data=False, plugins=plugins)
        assert (told in result.warnings) is (placement == "blocks")


def test_loops_that_are_not_there_cannot_be_kept_from_loading_ahead(plugins: Plugins) -> None:
    """That is said, too, and not of kernels in Triton, by whatever they are launched."""
    told = "--no-pipeline-loops is of loops of kernels in Triton, and changed nothing here: this run has no such kernel"
    for on in (False, True):
        result = kb.run("vector-add", "tiny", {"n": 64}, pipeline_loops=on, data=False, plugins=plugins)
        assert (told in result.warnings) is not on
    x, out = np.ones(512, np.float32), np.zeros(512, np.float32)
    with kb.triton("tiny", pipeline_loops=False) as sim:
        walking()[(1,)](x, out, 1, WORK=1, LOADS=True, BLOCK=512, num_stages=2)
    assert sim.result is not None and told not in sim.result.warnings


def test_an_array_where_one_was_lies_where_its_own_launch_puts_it() -> None:
    """Memory of the host that is used again: later launches take no longer than in a run that keeps all arrays."""

    def times(keep: list[Any]) -> list[float]:
        def launch(block: int) -> float:
            x, row, out = np.ones(1 << 16, np.float32), np.zeros(7, np.float32), np.empty(1 << 16, np.float32)
            kernel[(len(x) // block,)](x, row, out, len(x), 0, BLOCK=block)
            if keep:
                keep.append((x, row, out))
            return sim.launches[-1].time_ns

        with kb.triton("default") as sim:
            kernel = moving()
            return [launch(block) for block in (16384, 16384, 16384, 256, 256, 256, 256)]

    kept, dropped = times([None]), times([])
    assert all(after < 1.01 * before for after, before in zip(dropped, kept, strict=True))
