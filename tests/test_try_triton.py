"""`tools/try_triton.py`: what it says of files that are known to run, to fail, to hang and to be at fault."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernbench_builtin.triton.session import TritonRun
from tools import triton_suite, try_triton
from tools.triton_suite_cases import confirmed
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


SUITE = {
    "conftest.py": """
import pytest
def pytest_addoption(parser):
    parser.addoption("--device", default="cuda")
@pytest.fixture
def device(request):
    return request.config.getoption("--device")
""",
    "unit/language/test_core.py": """
import os, signal, numpy as np, pytest, triton, triton.language as tl
def run(kernel, out):
    triton.jit(kernel)[(1,)](out)
    return out
def ones(out_ptr):
    tl.store(out_ptr + tl.arange(0, 4), tl.full((4,), 1.0, tl.float32))
def false(out_ptr):
    tl.static_assert(out_ptr is None)
def unknown(out_ptr):
    tl.no_such_name_of_anybody(out_ptr)
def refused(out_ptr):
    tl.inline_asm_elementwise()
def nameless(out_ptr):
    tl.arange(0, 4).no_such_name_of_anybody
def endless(out_ptr):
    while True:
        pass
@pytest.fixture
def out():
    return np.zeros(4, np.float32)
interpreter = pytest.mark.interpreter
@interpreter
@pytest.mark.parametrize("value", [1, 2])
def test_numbers(value, out, device):
    from triton._internal_testing import numpy_random
    assert (numpy_random((64, 64), "uint8") == numpy_random((64, 64), "uint8")).all()
    assert device == "cpu" and os.environ["TRITON_INTERPRET"] == "1"
    np.testing.assert_allclose(run(ones, out), [value] * 4)
@interpreter
def test_words(out):
    with pytest.raises(triton.CompilationError, match="as Triton says it"):
        run(false, out)
@interpreter
def test_text(out):
    assert type(run(ones, out)).__module__ == "torch"
@interpreter
def test_search(out):
    import re
    assert re.search("torch", str(run(ones, out)))
@interpreter
def test_accepted(out):
    with pytest.raises(triton.CompilationError):
        run(ones, out)
@interpreter
def test_own_assertion(out):
    run(false, out)
@interpreter
def test_refused(out):
    run(refused, out)
@interpreter
def test_refused_as_python_does(out):
    run(unknown, out)
@interpreter
def test_internal(out):
    run(nameless, out)
@interpreter
def test_skipped():
    pytest.skip("not here")
def test_unmarked():
    assert False
@interpreter
@pytest.mark.parametrize("how", ["in the kernel", "at the end"])
def test_gone(how, out):
    if how == "in the kernel":
        run(endless, out)
    os.kill(os.getpid(), signal.SIGSEGV)
""",
    "unit/language/test_tuple.py": "from triton import no_such_name_of_anybody",
    "unit/language/test_other.py": "import no_such_module_of_anybody",
}  # fmt: skip

REASONS = {
    "test_numbers[1]": ("passed", ""),
    "test_numbers[2]": ("silently wrong", "Not equal to tolerance rtol=1e-07, atol=0 Mismatched elements: 4 / 4"),
    "test_words": ("other words than Triton's", "Regex pattern did not match. Expected regex: 'as Triton says it'"),
    "test_text": ("other words than Triton's", "assert 'numpy' == 'torch'"),
    "test_search": ("other words than Triton's", "assert None"),
    "test_accepted": ("accepted, though Triton refuses it", "DID NOT RAISE KernelError"),
    "test_own_assertion": ("the kernel's own assertion", "tl.static_assert at "),
    "test_refused": ("refused in a sentence", "tl.inline_asm_elementwise at "),
    "test_refused_as_python_does": (
        "refused in a sentence",
        "AttributeError: tl has no name 'no_such_name_of_anybody'",
    ),
    "test_internal": ("internal error", "AttributeError: "),
    "test_skipped": ("skipped", "not here"),
    "test_gone[in the kernel]": ("timeout", ""),
    "test_gone[at the end]": ("Python crashed", "signal or code -11"),
}
PAGE = "# A page\n<!-- suite begin -->\nwhat was there\n<!-- suite end -->\nand more\n"


def test_each_case_of_a_suite_is_told_what_came_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the error that it ends in; the table is written between the marks of a page."""
    for name, text in SUITE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    page, results = tmp_path / "page.md", tmp_path / "results"
    page.write_text(PAGE)
    told = ["--triton-suite", str(tmp_path / "unit/language"), "--page", str(page), "--results", str(results)]
    assert try_triton.main([*told, "--timeout", "1"]) == 1
    found = {each["case"]: each for each in map(json.loads, results.read_text().splitlines())}
    assert {case: each["outcome"] for case, each in found.items()} == {
        f"test_core.py::{case}": outcome for case, (outcome, _) in REASONS.items()
    }
    for case, (_, line) in REASONS.items():
        assert found[f"test_core.py::{case}"]["line"].startswith(line)
    assert found["test_core.py::test_internal"]["where"] == "test_core.py:15"
    text = page.read_text()
    head = "All 13 cases, each within 1 s of processor time; 1 of them skipped by the suite itself.\n"
    assert text.startswith(f"# A page\n<!-- suite begin -->\n{head}")
    assert text.endswith("\n<!-- suite end -->\nand more\n") and "what was there" not in text
    assert "`test_tuple.py` is not imported: ImportError: cannot import name" in text
    assert "| cases | 12 | 1 | 8.3 % |\n| functions, whole | 10 | 0 | 0.0 % |\n\nSilently wrong: 1. " in text
    assert "| `test_core.py::test_gone` | 2 | 1 | timeout |" in text
    assert text.startswith(f"# A page\n<!-- suite begin -->\n{capsys.readouterr().out}".rstrip())


@pytest.mark.parametrize(("right", "outcome"), [(True, "passed"), (False, "not confirmed by phase 2")])
def test_a_case_that_passes_by_numbers_which_phase_2_finds_wrong_has_not_passed(
    right: bool, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came of a case is known when its run has ended."""
    run = TritonRun("tiny", {})
    monkeypatch.setattr(run, "result", SimpleNamespace(right=right))
    assert confirmed(run) == {"outcome": outcome, "line": "", "where": ""}


def test_a_listed_case_counts_where_it_is_skipped_and_where_its_file_is_not_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list says what passes in Triton; a part of the cases leaves the page as it is."""

    def run(self: object, cases: list[str] | None, files: list[str]) -> tuple[list[dict[str, str]], int, str]:
        if cases is None:
            return [{"case": "test_core.py::test_skipped"}, {"file": "test_tuple.py", "error": "ImportError"}], 0, ""
        assert cases == ["test_core.py::test_skipped"] and files == ["test_core.py"]
        return [{"begun": cases[0]}, {"outcome": "skipped"}], 0, ""

    monkeypatch.setattr(triton_suite.Suite, "_run", run)
    (tmp_path / "test_core.py").touch()
    (tmp_path / "list").write_text("test_core.py::test_skipped\ntest_core.py::test_gone\ntest_tuple.py::test_skipped\n")
    told = ["--triton-suite", str(tmp_path), "--cases", str(tmp_path / "list"), "--only", "skipped"]
    assert try_triton.main([*told, "--page", str(tmp_path / "no page")]) == 1
    out, errors = capsys.readouterr()
    assert "| cases | 2 | 0 | 0.0 % |" in out and "skipped: 1" in out and "file not imported: 1" in out
    assert "| `test_tuple.py::test_skipped` | 1 | 1 | file not imported: ImportError |" in out
    assert errors.startswith("1 cases of the list are not in the suite\n")


def test_a_sample_has_cases_of_every_function() -> None:
    """In the order of the suite, others by another seed, and as many of each function as fit."""
    cases = [f"a.py::test_many[{number}]" for number in range(90)] + ["a.py::test_one", "a.py::test_few[1]"]
    few = triton_suite.sampled(cases, 6, seed=0)
    assert few[4:] == ["a.py::test_one", "a.py::test_few[1]"] and few == [case for case in cases if case in few]
    assert triton_suite.sampled(cases, 6, seed=0) == few != triton_suite.sampled(cases, 6, seed=1)
    assert triton_suite.sampled(cases, 100, seed=0) == cases


def test_a_folder_or_a_page_that_is_none_is_told(tmp_path: Path) -> None:
    """In a sentence, instead of an empty table."""
    with pytest.raises(SystemExit, match=r"must be a checkout of Triton or a folder with test_core\.py"):
        triton_suite.folder_of(tmp_path)
    (tmp_path / "page.md").write_text("# A page")
    with pytest.raises(SystemExit, match="must have the lines <!-- suite begin --> and <!-- suite end -->"):
        triton_suite.written_to(tmp_path / "page.md", "text")
    below = tmp_path / "python/test/unit/language"
    below.mkdir(parents=True)
    (below / "test_tuple.py").touch()
    assert triton_suite.folder_of(tmp_path) == below
