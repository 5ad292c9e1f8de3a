"""Made-up kernels give on kernbench what they give on the reference interpreter; the same 400 every time."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import loaded_tool
from tests.reference.generator import FURTHER, STREAMED, TRITON, Maker
from tests.reference.harness import compare, run_reference
from tests.reference.programs import NAMED, Launch, Node, Program, Tensor
from tests.reference.tiles import UndeterminedError

GROUP = 10
GROUPS = [
    first
    for begin, number in ((0, 150), (FURTHER, 50), (STREAMED, 40), (TRITON, 100), (NAMED, 60))
    for first in range(begin, begin + number, GROUP)
]


@pytest.mark.parametrize("first", GROUPS)
def test_kernels_compute_what_the_interpreter_does(first: int) -> None:
    compare_all(range(first, first + GROUP))


def test_kernels_in_triton_compute_what_the_interpreter_does() -> None:
    """Four files of Triton's; the groups have 160."""
    compare_all(range(TRITON, TRITON + 2), "tiny")
    compare_all(range(NAMED, NAMED + 2), "tiny")


def compare_all(seeds: range, topology: str | None = None) -> None:
    """Compare programs; those of which nothing can be said are left out."""
    told = []
    for seed in seeds:
        try:
            mismatch = compare(Maker(seed, topology=topology).program())
        except UndeterminedError:
            continue
        if mismatch is not None:
            told.append(f"seed {seed}: {mismatch.sentence}")
    assert not told, "\n".join([*told, "tools/fuzz_kernels.py --seeds N makes them small."])


def test_pointers_compare_as_on_the_interpreter() -> None:
    """Made-up programs compare none: of one tensor and of two, single and in blocks."""
    nodes = (
        Node("x0 + tl.arange(0, 8) == x0 + tl.arange(0, 8) * tl.arange(0, 8) - 2", target="block"),
        Node('tl.store(y1 + tl.arange(0, 8), tl.where(block, tl.full((8,), 3.0, "f32"), 5.0))'),
        Node("tl.store(y1 + 8, 1.0 if x0 + 2 == 2 + x0 else 2.0)"),
        Node("tl.store(y1 + 9, 1.0 if x0 != y1 else 2.0)"),
        Node("x0 + tl.arange(0, 6) != x0 + 4", target="others"),
        Node('tl.store(y1 + 10 + tl.arange(0, 6), tl.where(others, tl.full((6,), 7.0, "f32"), 8.0))'),
    )
    tensors = (Tensor("x0", 'rt.zeros((16,), "f32")'), Tensor("y1", 'rt.zeros((16,), "f32")', output=True))
    program = Program(1, "tiny", tensors, (Launch("first", nodes, (1,)),))
    assert run_reference(program).tensors["y1"].data.tolist() == [5, 5, 3, 5, 5, 5, 5, 5, 1, 1, 7, 7, 7, 7, 8, 7]
    assert compare(program) is None


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    with loaded_tool("fuzz_kernels") as module:
        return module


def test_seeds_make_the_same_programs_every_time() -> None:
    assert [Maker(seed).program().source() for seed in range(5)] == [
        Maker(seed).program().source() for seed in range(5)
    ]


def test_the_tool_counts_programs(tool: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--seeds", "3-4", "--topology", "tiny"]) == 0
    assert capfd.readouterr().out.endswith("2 alike\n")


def test_a_printed_program_runs_by_itself(tool: ModuleType, tmp_path: Path) -> None:
    import kernbench_core as kb
    from tests.reference.harness import Mismatch

    program = Maker(3, topology="tiny").program()
    file = tmp_path / "made_up.py"
    text = tool.report(program, Mismatch("value", "y[0] is 1, and 2 on the interpreter"))
    assert text.startswith("y[0] is 1, and 2 on the interpreter\n# kernbench run FILE --topology tiny --verify-data\n")
    file.write_text(text.split("\n", 1)[1], encoding="utf-8")
    assert kb.run(str(file), "tiny", verify_data=True).verified
