"""The lines of kernels: what they say, the functions that they are in, and names of files without folders."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from kernbench_builtin.machines.figures.lines import kernel_functions, kernel_lines, short_names
from kernbench_core.oplog.logger import LineUse


@pytest.mark.parametrize(
    ("files", "short"),
    [
        ((), ()),
        (("/a/k.py", "/a/k.py"), ("k.py", "k.py")),
        (("/a/k.py", "/b/l.py"), ("k.py", "l.py")),
        (("/a/x/k.py", "/b/x/k.py", "/b/l.py"), ("a/x/k.py", "b/x/k.py", "l.py")),
        (("/a/k.py", "k.py"), ("a/k.py", "k.py")),
        (("<ipython-input-3>", "/tmp/k.py"), ("<ipython-input-3>", "k.py")),
    ],
)
def test_files_have_as_many_folders_as_tell_them_apart(files: tuple[str, ...], short: tuple[str, ...]) -> None:
    found = short_names(files)
    assert tuple(found[file] for file in files) == short


SOURCE = '''
def first(tl):
    """Load."""
    x = tl.load(0)

    y = tl.add(x,
               1)  # and more


class Of:
    def method(self, tl):
        return tl.load(1)


second = lambda tl: tl.load(2)
'''


def uses(path: Path, source: str = SOURCE) -> dict[str, LineUse]:
    """Return a use of each function of a file, at its last call, with one op of 2 ns, by the name of the function."""
    path.write_text(source)
    names: dict[str, Any] = {}
    exec(compile(source, str(path), "exec"), names)
    made: list[Callable[..., Any]] = [names["first"], names["Of"].method, names["second"]]
    return {each.__code__.co_name: LineUse((each.__code__, last_call(each.__code__)), 1, 2.0) for each in made}


def last_call(code: CodeType) -> int:
    """Return the offset of the last instruction of a code object that has a line."""
    return max(start for start, _, line in code.co_lines() if line is not None and line > code.co_firstlineno) if (
        code.co_name != "<lambda>"
    ) else max(start for start, _, line in code.co_lines() if line is not None)


def test_calls_of_one_line_are_added_up(tmp_path: Path) -> None:
    """By file and number; what a line says has no spaces around it."""
    used = uses(tmp_path / "k.py")
    again = LineUse(used["method"].site, 3, 0.5)
    found = [*kernel_lines([*used.values(), again])]
    by_line = {row["line"]: (row["file"], row["text"], row["ops"], row["ns"]) for row in found}
    assert by_line[12] == ("k.py", "return tl.load(1)", 4, 2.5)
    assert by_line[15] == ("k.py", "second = lambda tl: tl.load(2)", 1, 2.0)
    assert [row["line"] for row in found] == sorted(by_line)


def test_the_source_of_a_function_is_its_own(tmp_path: Path) -> None:
    """Without what it is indented by, and without what stands around it."""
    found = {row["name"]: (row["line"], row["source"]) for row in kernel_functions(uses(tmp_path / "k.py").values())}
    assert found["first"] == (2, "".join(f"{line}\n" for line in SOURCE.splitlines()[1:7]))
    assert found["Of.method"] == (11, "def method(self, tl):\n    return tl.load(1)\n")
    assert found["<lambda>"] == (15, "second = lambda tl: tl.load(2)\n")


def test_what_a_file_says_is_what_it_said_at_the_end_of_the_run(tmp_path: Path) -> None:
    """A file that was edited and imported anew is read anew; one that is edited later is not."""
    path = tmp_path / "k.py"
    kernel_lines(uses(path).values())
    edited = uses(path, SOURCE.replace("tl.load(1)", "tl.load(10)"))
    found = kernel_functions(edited.values())
    assert "return tl.load(10)" in kernel_lines(edited.values())["text"].tolist()
    path.write_text("")
    linecache.checkcache(str(path))
    assert "    return tl.load(10)\n" in "".join(found["source"])


def test_what_has_no_file_says_nothing(tmp_path: Path) -> None:
    """As a kernel that was made of text, or whose file is gone or other than it was."""
    used = [*uses(tmp_path / "k.py").values()]
    (tmp_path / "k.py").unlink()
    assert kernel_lines(used)["text"].tolist() == ["", "", ""]
    assert kernel_functions(used)["source"].tolist() == ["", "", ""]
    (tmp_path / "k.py").write_text("(\n" * 30)
    assert kernel_functions(used)["source"].tolist() == ["", "", ""]
    assert len(kernel_lines([])) == len(kernel_functions([])) == 0


def test_a_long_line_is_cut(tmp_path: Path) -> None:
    used = uses(tmp_path / "k.py", SOURCE.replace("tl.load(2)", "tl.load(2" + "0" * 200 + ")"))
    text = kernel_lines([used["<lambda>"]])["text"][0]
    assert len(text) == 100 and text.endswith("0…")
