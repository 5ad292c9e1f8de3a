"""Cells of a notebook: an edited one is the same thing, though IPython compiles it as another file."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.compare import figures_of

_K = """\
def k(x, y, n, tl):
    p = tl.program_id(0) * n
    t = tl.load(x + p, shape=(n,))
    tl.store(y + p, t * 2.0)
"""


def cell(text: str, file: str) -> Callable[..., Any]:
    """Run a cell as IPython does, under a file that is only in its memory; return the kernel."""
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names: dict[str, Any] = {}
    exec(compile(text, file, "exec"), names)
    return names["k"]


def run(*kernels: Any) -> kb.RunResult:
    """Launch each kernel once."""

    def bench(rt: Any) -> None:
        x, y = rt.tensor(np.arange(256, dtype="f4"), name="x"), rt.empty((256,), "f32", name="y")
        for kernel in kernels:
            rt.launch(kernel, x, y, 64)

    return kb.run(bench, "tiny")


@pytest.mark.parametrize("files", [("/tmp/ipykernel_9/664676743.py", "/tmp/ipykernel_9/2082289716.py"),
                                   ("<ipython-input-3-1f0c>", "<ipython-input-4-9ab2>")])  # fmt: skip
def test_an_edited_cell_is_compared_line_by_line(files: tuple[str, str]) -> None:
    """By its kernel: the line of another number is paired, and the source is one that changed."""
    before, after = (
        run(cell(_K, files[0])),
        run(cell("# faster\n" + _K.replace("t * 2.0", "tl.exp(t * 2.0)"), files[1])),
    )
    found = kb.compare(before, after)
    assert not found.notes
    assert [(each.sort, each.name) for each in found.causes if each.sort == "sources"] == [("sources", "cell of k:k")]
    lines = {row.name: row.figure for row in found.of_sort("line")}
    assert lines == {"cell of k:4→5": "ns"}
    (source,) = found.sources
    assert [line for line in source.lines if line[:4] in ("-   ", "+   ")] == [
        "-    tl.store(y + p, t * 2.0)", "+    tl.store(y + p, tl.exp(t * 2.0))",
    ]  # fmt: skip
    assert "(cell of k:" in figures_of(before).limiter or ":" not in figures_of(before).limiter


def test_two_cells_with_one_kernel_each_of_a_name_stay_two() -> None:
    """So no line of either is lost; a file on disk keeps its name."""
    both = run(cell(_K, "/tmp/ipykernel_9/1.py"), cell("\n" + _K, "/tmp/ipykernel_9/2.py"), cell(_K, "/tmp/mine.py"))
    assert [*figures_of(both).tables["line"].rows] == [
        "cell of k:3", "cell of k:4", "cell of k (2):4", "cell of k (2):5", "mine.py:3", "mine.py:4",
    ]  # fmt: skip
