"""tools/mutants.py: which mutants it makes, and what it says of them, on small trees; the real run is done by hand."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import loaded_tool
from tests.selection.records import Times

REPO = Path(__file__).parents[1]
SETTINGS: dict[str, Any] = tomllib.loads((REPO / "tools" / "mutants.toml").read_text(encoding="utf-8"))
SOURCE = """
LIMIT = 1 + 1


class _Counted:
    steps = 1 + 1

    def more(
        self, by: int = 1 + 1
    ) -> int:
        by = by + 1

        return by + 1


def less(by: int) -> int:
    return by - 1
"""
CODE = "def double(x):\n    return x * 2\n"
TESTS = """
from kernbench_core import a


def test_of_one():
    assert a.double(1) == 2


def test_of_none():
    assert a.double(0) == 0


def test_of_three():
    assert a.double(3) == 6
"""


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    """Give tools/mutants.py."""
    with loaded_tool("mutants") as module:
        yield module


@pytest.fixture(scope="module")
def choice(tool: ModuleType) -> Iterator[ModuleType]:
    """Give tools/mutants_chosen.py."""
    with loaded_tool("mutants_chosen") as module:
        yield module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a checkout with one source and its tests."""
    tree = tmp_path / "tree"
    _write(tree, "kernbench_core/__init__.py", "")
    _write(tree, "kernbench_core/a.py", CODE)
    _write(tree, "tests/test_a.py", TESTS)
    _write(tree, ".gitignore", "*.so\n")
    _git(tree, "init", "--quiet")
    _git(tree, "add", ".")
    _git(tree, "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "--message", "m")
    return tree


@pytest.fixture
def bench(tool: ModuleType, tree: Path) -> Iterator[Callable[[], Any]]:
    """Give a function that makes a bench of the checkout."""
    made = []

    def make() -> Any:
        made.append(tool.Bench(tree, 1, (), {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def _write(tree: Path, file: str, text: str) -> None:
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text(text, encoding="utf-8")


def _git(tree: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=tree, check=True)


def _chosen(choice: ModuleType, tree: Path, count: int) -> list[Any]:
    """Choose among mutants that add to a line that it is broken, in two ways."""

    def ways(source: str) -> dict[int, list[Any]]:
        lines = source.splitlines()
        return {line: [choice.Way(0, "first", 0), choice.Way(0, "second", 0)] for line in range(1, len(lines) + 1)}

    def break_(source: str, way: Any) -> str | None:
        return None if "whole" in source else "\n".join(f"{line}  # {way.operator}" for line in source.splitlines())

    return list(choice.chosen(tree, 7, count, ways, break_))


def _copy(bench: Any) -> Path:
    """Return the only copy of a bench."""
    copy: Path = bench._free.get()
    bench._free.put(copy)
    return copy


def _mutant(choice: ModuleType, code: str) -> Any:
    return choice.Mutant.of("kernbench_core/a.py", "double", "broken", CODE, code)


def test_each_planted_mutant_breaks_code_that_is_there(choice: ModuleType) -> None:
    for mutant in choice.planted(REPO, SETTINGS["planted"]):
        compile(mutant.code, mutant.file, "exec")
        assert mutant.before != mutant.after


def test_a_planted_mutant_whose_code_is_gone_ends_the_run(choice: ModuleType, tree: Path) -> None:
    entry = {"name": "twice", "file": "kernbench_core/a.py", "old": "x * 3", "new": "x"}
    with pytest.raises(SystemExit) as caught:
        list(choice.planted(tree, [entry]))
    assert caught.value.code == (
        "mutants.toml: kernbench_core/a.py must hold 'x * 3' once, not 0 times, for the planted mutant 'twice'; "
        "write down what stands there now."
    )


def test_mutants_that_change_nothing_are_few_and_say_why() -> None:
    listed = SETTINGS.get("equivalent", ())
    assert len(listed) <= 12
    assert all(len(entry["reason"].split()) > 4 for entry in listed)
    assert len({entry["mutant"] for entry in listed}) == len(listed)


def test_only_what_runs_is_broken(choice: ModuleType) -> None:
    source = "class A:\n    x: int | None = 1 + 1\n\n    def f(self, y: int | None) -> int:\n        y: int = 1\n"
    outline = choice.Outline.of(source)
    assert outline.function(5) == "A.f"
    assert outline.runs((5, 17))
    assert not outline.runs((5, 11))
    assert not outline.runs((4, 19))
    assert not outline.runs((2, 20))


def test_each_line_of_a_function_has_one_rank_and_no_other_line_has(choice: ModuleType, tree: Path) -> None:
    _write(tree, "kernbench_core/a.py", SOURCE)
    _write(tree, "kernbench_ccl/templates/b.py", CODE)
    _write(tree, "plugins_example/c.py", CODE)
    _git(tree, "add", ".")
    ranks = choice.ranked(tree, 7)
    assert sorted((file, number) for _, file, number, _, _ in ranks) == [
        ("kernbench_core/a.py", number) for number in (9, 10, 11, 13, 17)
    ]
    assert len({rank for rank, *_ in ranks}) == len(ranks)


def test_lines_of_one_text_are_told_apart(choice: ModuleType, tree: Path) -> None:
    _write(tree, "kernbench_core/a.py", "def f():\n    g()\n    g()\n\n\ndef h():\n    g()\n")
    assert sorted(name for *_, name in choice.ranked(tree, 7)) == ["f, g() #1", "f, g() #2", "h, g() #1"]


def test_a_change_elsewhere_leaves_the_mutants_chosen(choice: ModuleType, tree: Path) -> None:
    lines = "".join(f"    x += {number}\n" for number in range(40))
    _write(tree, "kernbench_core/a.py", f"def f(x):\n{lines}    return x\n")
    before = _chosen(choice, tree, 41)
    other = "def e(x):\n    return x\n\n\n"
    _write(tree, "kernbench_core/a.py", f"{other}def f(x):\n{lines}    return x\n")
    _write(tree, "kernbench_core/b.py", CODE)
    _git(tree, "add", ".")
    after = _chosen(choice, tree, 43)
    assert len({mutant.id for mutant in before}) == 41
    assert [mutant.id for mutant in after if mutant.function == "f"] == [mutant.id for mutant in before]
    assert {mutant.name.split()[-1] for mutant in before} == {"first", "second"}


def test_as_many_are_chosen_as_are_asked_for_and_whole_code_is_none(choice: ModuleType, tree: Path) -> None:
    _write(tree, "kernbench_core/a.py", f"{CODE}\n\ndef whole(x):\n    return x\n")
    _write(tree, "kernbench_core/b.py", f"{CODE}    return x\n    return 2 * x\n")
    _git(tree, "add", ".")
    assert [mutant.file for mutant in _chosen(choice, tree, 2)] == ["kernbench_core/b.py"] * 2
    assert [mutant.file for mutant in _chosen(choice, tree, 9)] == ["kernbench_core/b.py"] * 3


def test_a_line_is_broken_by_the_operators_of_cosmic_ray(choice: ModuleType) -> None:
    pytest.importorskip("cosmic_ray")
    source = "LIMIT = 1\n\n\ndef f(x):\n    try:\n        return x < LIMIT\n    except (a.B, OSError):\n        pass\n"
    ways = choice.ways_to_break(source)
    assert sorted(ways) == [6, 7]
    codes = {way.operator: choice.broken(source, way) for way in ways[6]}
    assert codes["core/ReplaceComparisonOperator_Lt_GtE"] == source.replace("<", ">=")
    assert choice.broken(source, ways[7][0]) is None  # cosmic-ray knows exceptions without a dot only


def test_tests_are_the_nearest_and_those_that_the_budget_has_time_for(tool: ModuleType) -> None:
    times = Times({"test_a.py::test": 3.0, "test_c.py::test": 2.0}, {"test_a.py": 1.0, "test_b.py": 0.5})
    files = ["tests/core/test_a.py", "tests/test_b.py", "tests/test_c.py", "tests/test_new.py"]
    assert tool.within(1.0, files, times) == ([files[0]], 4.0)
    assert tool.within(5.0, files, times) == ([files[0], files[1], files[3]], 4.5)
    assert tool.within(6.5, files, times) == (files, 6.5)


def test_a_mutant_is_killed_by_the_tests_that_fail_and_leaves_whole_code(
    choice: ModuleType, bench: Callable[[], Any]
) -> None:
    tried = bench()
    mutant = _mutant(choice, CODE.replace("2", "3"))
    failed = ["tests/test_a.py::test_of_one", "tests/test_a.py::test_of_three"]
    assert tried.judge(["tests"], 60, mutant) == ("killed", failed)
    assert (_copy(tried) / mutant.file).read_text(encoding="utf-8") == CODE


def test_what_whole_code_was_compiled_to_is_forgotten(tool: ModuleType, tree: Path) -> None:
    for name in ("a.cpython-311.pyc", "ab.cpython-311.pyc"):
        _write(tree, f"kernbench_core/__pycache__/{name}", "compiled")
    tool._write(tree / "kernbench_core/a.py", CODE.replace("2", "3"))
    assert [path.name for path in (tree / "kernbench_core/__pycache__").iterdir()] == ["ab.cpython-311.pyc"]


def test_a_mutant_that_cannot_be_imported_is_killed_by_collection(
    tool: ModuleType, choice: ModuleType, bench: Callable[[], Any]
) -> None:
    outcome, failed = bench().judge(["tests"], 60, _mutant(choice, "import nothing\n" + CODE))
    assert (outcome, failed) == ("killed", ["tests/test_a.py"])
    assert tool.verdict(outcome, failed) == "killed by collection"


@pytest.mark.parametrize("line", ["time.sleep(60)", "while True: pass"])
def test_a_mutant_that_waits_or_computes_for_too_long_is_endless(
    tool: ModuleType, choice: ModuleType, bench: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr(tool, "_STILL", 1)
    monkeypatch.setattr(tool, "_SOME", 0.05)  # its start alone takes more
    code = f"import time\n\n\ndef double(x):\n    {line}\n    return x\n"
    outcome, _ = bench().judge(["tests"], 60 if "sleep" in line else 0.1, _mutant(choice, code))
    assert outcome == "endless"


@pytest.mark.parametrize(("given", "limit"), [(7, 7), (90, 80)])
def test_tests_may_compute_for_so_many_seconds_or_as_long_as_the_tool(tool: ModuleType, given: int, limit: int) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (80, 80))
        tool._limit(given)

    command = [sys.executable, "-c", "import resource; print(resource.getrlimit(resource.RLIMIT_CPU))"]
    done = subprocess.run(command, preexec_fn=limited, capture_output=True, text=True, check=True)
    assert done.stdout == f"({limit}, 80)\n"


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        ([("killed", ["a", "b"]), ("killed", ["b"])], ("killed", ["b"])),
        ([("killed", ["a"]), ("survived", [])], ("survived", [])),
        ([("killed", ["a", "b", "c", "d"])], ("killed", ["a", "b", "c", "d"])),
        ([("killed", [])], ("killed", [])),
        ([("endless", []), ("survived", [])], ("endless", [])),
        ([("endless", []), ("endless", [])], ("survived", [])),
        ([("endless", ["a"]), ("endless", []), ("killed", ["a"])], ("killed", ["a"])),
    ],
    ids=["one of two", "by chance", "many", "collection", "endless", "slow", "slow and killed"],
)
def test_what_fails_by_chance_or_is_slow_on_whole_code_kills_nothing(
    tool: ModuleType, runs: list[tuple[str, list[str]]], found: tuple[str, list[str]]
) -> None:
    left = iter(runs)

    class Told:
        def judge(self, *_: object) -> tuple[str, list[str]]:
            return next(left)

    assert tool.tried(None, Told(), ["tests"], 1.0) == found
    assert list(left) == []


@pytest.mark.parametrize("sent", ["SIGKILL", "SIGTERM"])
def test_tests_that_somebody_else_ended_say_nothing(choice: ModuleType, bench: Callable[[], Any], sent: str) -> None:
    code = f"import os, signal\n\n\ndef double(x):\n    os.kill(os.getpid(), signal.{sent})\n"
    with pytest.raises(SystemExit, match="Somebody else ended the tests of a mutant"):
        bench().judge(["tests"], 60, _mutant(choice, code))


def test_what_computes_is_waited_for(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = iter([1.0, 2.0, 2.75, 3.0, 9.0])
    monkeypatch.setattr(tool, "_STILL", 0.01)
    monkeypatch.setattr(tool, "_computed", lambda _: next(computed))
    assert tool._end(subprocess.Popen(["sleep", "60"], start_new_session=True)) is None
    assert list(computed) == [9.0]


def test_the_time_of_a_session_is_that_of_its_processes(tool: ModuleType) -> None:
    own = os.times()
    assert tool._computed(os.getsid(0)) > own.user + own.system - 0.1
    assert tool._computed(-1) == 0


def test_what_failed_before_the_end_of_a_process_is_known(choice: ModuleType, bench: Callable[[], Any]) -> None:
    ends = "import os\n\n\ndef double(x):\n    return os._exit(7) if x == 3 else x\n"
    assert bench().judge(["tests"], 60, _mutant(choice, ends)) == ("killed", ["tests/test_a.py::test_of_one"])


def test_copies_have_what_git_has_or_would_add_and_no_tests_notice_nothing(
    tree: Path, bench: Callable[[], Any]
) -> None:
    _write(tree, "kernbench_core/a.so", "compiled")
    _write(tree, "kernbench_core/a.py", CODE.replace("2", "4"))
    _write(tree, "tests/test_new.py", "from kernbench_core import a\n\nassert a.double(1) == 4\n")
    made = bench()
    assert not (_copy(made) / "kernbench_core/a.so").exists()
    assert made.judge(["tests/test_new.py"], 60) == ("survived", [])


def test_tests_that_fail_on_whole_code_count_for_nothing(
    tool: ModuleType, tree: Path, bench: Callable[[], Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = "def test_wrong():\n    assert a.double(1) == 3\n\n\ndef test_other():\n    open('ran', 'w').close()\n"
    _write(tree, "tests/test_a.py", f"import os\nos.chdir({str(tmp_path)!r})\n{TESTS}\n\n{others}")
    wrong, right, gone = (f"tests/test_a.py::test_{name}" for name in ("wrong", "of_one", "of_the_mutant_alone"))
    results = tool.Results(tmp_path / "results.json")
    for name, tests in (("a", [wrong]), ("b", [right, wrong]), ("c", [gone])):
        results.mutants[name] = {"outcome": "killed", "what": name, "files": ["tests/test_a.py"], "tests": tests}
    found = results.checked(bench(), ["a", "b", "c"])
    assert [(entry["outcome"], entry["tests"]) for entry in found] == [
        ("survived", []),
        ("killed", [right]),
        ("killed", [gone]),
    ]
    assert capsys.readouterr().out == f"fails on whole code, too: {wrong}\n"
    assert not (tmp_path / "ran").exists()
    known = tool.Results(tmp_path / "results.json")
    assert known.mutants == results.mutants
    assert known.fails_anyway == {wrong: True, right: False, gone: False}


@pytest.mark.parametrize(
    ("outcome", "tests", "verdict"),
    [
        ("survived", [], "survived"),
        ("killed", ["a.py::b"], "killed by 1 test, first a.py::b"),
        ("killed", ["a.py::b[c]", "a.py"], "killed by 2 tests, first a.py::b[c]"),
        ("killed", [], "killed by collection"),
        ("endless", [], "endless, and killed by 0 tests"),
    ],
)
def test_a_verdict_says_by_how_many_tests(tool: ModuleType, outcome: str, tests: list[str], verdict: str) -> None:
    assert tool.verdict(outcome, tests) == verdict
