"""`tools/try_triton.py`: what it says of files that are known to run, to fail, to hang and to be at fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import try_triton
from tools.try_triton import KernelOutcome

HEAD = """
import numpy as np, triton, triton.language as tl
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at), mask=at < n)
x, y = np.arange(8, dtype="f4"), np.zeros(8, "f4")
"""
FILES = {
    "good/checked.py": HEAD + "copy_kernel[(1,)](x, y, 8, BLOCK=8)\nassert np.allclose(x, y)",
    "good/plain.py": HEAD + "copy_kernel[(1,)](x, y, 8, BLOCK=8)",
    "good/library.py": HEAD,
    "good/other.txt": "no Python",
    "bad/wrong.py": HEAD + "copy_kernel[(1,)](x, y, 4, BLOCK=8)\nassert np.allclose(x, y)",
    "bad/outside.py": HEAD + "copy_kernel[(2,)](x, y, 8, BLOCK=8)",
    "bad/missing.py": HEAD + "import no_such_module_of_anybody",
    "bad/raises.py": HEAD + "{}['here']",
    "bad/endless.py": HEAD + "copy_kernel[(1,)](x, y, 8, BLOCK=8)\nwhile True: pass",
    "bad/gone.py": HEAD + "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "bad/assembly.py": HEAD.replace("tl.load(x_ptr + at)", "tl.inline_asm_elementwise('', '', [at], tl.int32, True, 1)")
    + "copy_kernel[(1,)](x, y, 8, BLOCK=8)",
}


def test_each_file_is_told_what_came_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of files in a folder those with a kernel, each in a process of its own, within the time it is given."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    code = try_triton.main([str(tmp_path), "--timeout", "6", "-j", "2", "--json"])
    found = {each["file"]: each for each in json.loads(capsys.readouterr().out)}
    assert {name: each["outcome"] for name, each in found.items()} == {
        "good/checked.py": "ran, own checks passed", "good/plain.py": "ran", "good/library.py": "launched no kernel",
        "bad/wrong.py": "own check failed", "bad/outside.py": "access outside a tensor",
        "bad/missing.py": "module missing", "bad/raises.py": "own error", "bad/endless.py": "timeout",
        "bad/gone.py": "crash", "bad/assembly.py": "inline assembly",
    }  # fmt: skip
    assert found["bad/raises.py"]["sentence"] == "KeyError: 'here'"
    assert found["bad/outside.py"]["sentence"].startswith("tl.load at ")
    kernels = {name: [kernel["outcome"] for kernel in each["kernels"]] for name, each in found.items()}
    assert kernels["bad/outside.py"] == ["access outside a tensor"]
    assert kernels["bad/endless.py"] == kernels["bad/wrong.py"] == kernels["good/plain.py"] == ["ran"]
    assert code == 1, "one crashed Python"
    assert try_triton.main([str(tmp_path / "bad/outside.py"), "--oob", "poison"]) == 0
    words = ["files", "ran", "all", "bad", "1", "1", "kernels", "ran", "all", "bad", "1", "1"]
    assert capsys.readouterr().out.split() == words


def test_a_kernel_has_run_where_all_launches_have_that_are_no_trials() -> None:
    """A trial that fails is not told where a launch ran; a launch that fails is, whatever ran; none ends: time."""
    ran, stopped = {"state": "ran"}, {"state": "stopped", "kind": "ShapeError", "sentence": "Operands must fit."}

    def outcome(*lines: dict[str, str], trials: int = 0) -> KernelOutcome:
        named = {"kernel": "k", "of": "file.py:3"}
        given = [{**named, "state": "begun", "trial": False}]
        given += [{**named, **line, "trial": at < trials} for at, line in enumerate(lines)]
        (found,) = try_triton.kernels_of(given)
        return found

    failed = KernelOutcome("k", "shapes", "Operands must fit.")
    assert outcome() == KernelOutcome("k", "timeout")
    assert outcome(ran) == KernelOutcome("k", "ran")
    assert outcome(stopped, ran, trials=1) == KernelOutcome("k", "ran")
    assert outcome(stopped, ran, trials=2) == failed
    assert outcome(ran, stopped) == failed
    assert outcome(stopped, ran) == failed
