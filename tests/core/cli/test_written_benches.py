"""Parameters as they are written are those of the function that the file makes, and reading them executes nothing."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.cli.written_benches import WrittenParam, parameters_of
from kernbench_core.host.bench import open_bench
from kernbench_core.plugins import BenchEntry, Provider, Registry, load_plugins
from kernbench_core.plugins.points import BENCHES

NOBODY = load_plugins(installed=False)
HEAD = """
import typing
from typing import Literal
import numpy as np
from numpy import ndarray
from numpy.typing import NDArray
Kind = Literal["a", "b"]
Maybe = Kind | None
Array: typing.TypeAlias = "np.ndarray | None"
"""
#: Annotations, each with defaults of its own.
ANNOTATED = {
    "int": ("3", "-1"), "float": ("0.5",), "str": ("'x'",), "bool": ("True", "False"), "Kind": ("'a'",),
    "Maybe": ("None", "'b'"), "int | None": ("None",), "typing.Literal['p', 'q', 'r']": ("'q'",),
    "np.ndarray": ("None",), "ndarray | None": ("None",), "Literal['one']": ("'one'",), "bool | None": ("None",),
}  # fmt: skip
parameters = st.sampled_from(sorted(ANNOTATED)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.sampled_from([None, *ANNOTATED[kind]]))
)


@settings(max_examples=20)
@given(st.lists(parameters, max_size=4), st.lists(parameters, max_size=3), st.booleans())
def test_what_is_read_is_what_the_bench_takes(
    first: list[tuple[str, str | None]], later: list[tuple[str, str | None]], lazy: bool
) -> None:
    """Of any signature: names in order, choices, files, as a run of the file finds them by its function."""
    first = sorted(first, key=lambda each: each[1] is not None)  # no default stands before one that is none

    def written(name: str, kind: str, default: str | None) -> str:
        return f"{name}: {kind}" + ("" if default is None else f" = {default}")

    taken = ["rt", *(written(f"p{at}", *each) for at, each in enumerate(first))]
    if later:
        taken += ["*", *(written(f"q{at}", *each) for at, each in enumerate(later))]
    future = "from __future__ import annotations\n" if lazy else ""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "b.py"
        file.write_text(f"{future}{HEAD}\ndef bench({', '.join(taken)}):\n    '''Do nothing.'''\n")
        found, params = parameters_of(str(file), NOBODY), open_bench(file, NOBODY.benches).params
    assert list(found) == [param.name for param in params]
    for param in params:
        choices = ("true", "false") if param.kind == "bool" else param.choices
        assert (found[param.name].choices, found[param.name].is_file) == (choices, param.kind == "npy")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder from which modules are imported, and the current one."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_kernel_has_all_of_its_parameters(here: Path) -> None:
    """The first one too, and each may be a file; that of the language aside."""
    (here / "k.py").write_text("def scale(x_ptr, n, BLOCK: 'tl.constexpr' = 64, *, tl): ...\n")
    found = parameters_of("k.py:scale", NOBODY)
    assert list(found) == ["x_ptr", "n", "BLOCK"]
    assert all(each.is_file for each in found.values())
    assert found["BLOCK"].words == "'tl.constexpr' = 64"


def test_words_are_the_annotation_and_the_default(here: Path) -> None:
    """As they stand there; a default alone tells that it is true or false, and nothing else."""
    taken = "rt, n: int, m: int=1 << 9, fast=False, x=3, plain: 'int' = 2, /, *, y"
    (here / "b.py").write_text(f"def bench({taken}): ...\n")
    assert parameters_of("b.py", NOBODY) == {
        "n": WrittenParam("int"),
        "m": WrittenParam("int = 1 << 9"),
        "fast": WrittenParam("= False", ("true", "false")),
        "x": WrittenParam("= 3"),
        "plain": WrittenParam("'int' = 2"),
        "y": WrittenParam(""),
    }


def test_nothing_is_executed(here: Path) -> None:
    """Neither the file nor the modules that it takes names from."""
    for name in ("kinds_of_a_test", "b"):
        (here / f"{name}.py").write_text(f"open('ran_{name}', 'w')\nimport nothing_of_this_name\n")
    with (here / "kinds_of_a_test.py").open("a") as kinds:
        kinds.write("from typing import Literal\nKind = Literal['a', 'b']\n")
    with (here / "b.py").open("a") as bench:
        bench.write("from kinds_of_a_test import Kind as Sort\ndef bench(rt, kind: Sort): ...\n")
    assert parameters_of("b.py", NOBODY) == {"kind": WrittenParam("Sort", ("a", "b"))}
    assert sorted(path.name for path in here.glob("ran_*")) == []


def test_a_registered_bench_is_read_where_its_module_is(here: Path) -> None:
    """By the name that it is registered under, whatever the function is called; another name is none."""
    (here / "benches_of_a_test.py").write_text("def bench(rt): ...\ndef other(rt, n: int): ...\n")
    entry = BenchEntry("mine", "benches_of_a_test:other"), Provider("t", "t", "1")
    plugins = NOBODY.having(BENCHES, Registry("bench", [entry]))
    assert parameters_of("mine", plugins) == {"n": WrittenParam("int")}
    assert parameters_of("other", plugins) == {}


def test_a_bench_is_followed_to_where_it_is_defined_three_modules_far(here: Path) -> None:
    """By imports of it, one more of which says nothing; one that comes back to itself ends, too."""
    for number in range(4):
        source = f"from way{number + 1} import bench\n"
        (here / f"way{number}.py").write_text(source)
    (here / "way4.py").write_text("if True:\n    from round import bench\ndef bench(rt, n: int): ...\n")
    (here / "round.py").write_text("from round import bench\n")
    assert parameters_of("way2.py", NOBODY) == {}  # the first that is said of it counts, and that goes round
    (here / "way4.py").write_text("def bench(rt, n: int): ...\n")
    assert parameters_of("way1.py", NOBODY) == {"n": WrittenParam("int")}
    assert parameters_of("way0.py", NOBODY) == {}


def test_names_for_type_checkers_alone_are_known(here: Path) -> None:
    """What stands in an `if` is as good as what does not."""
    (here / "b.py").write_text(
        "from typing import TYPE_CHECKING, Literal\nif TYPE_CHECKING:\n    import numpy as np\n"
        "    Kind = Literal['a']\ndef bench(rt, x: np.ndarray, k: Kind = 'a'): ...\n"
    )
    assert parameters_of("b.py", NOBODY) == {
        "x": WrittenParam("np.ndarray", (), True),
        "k": WrittenParam("Kind = 'a'", ("a",)),
    }


def test_what_everybody_knows_is_not_looked_up(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a key would wait for numpy to be imported, and for Python's own typing to be read once a parameter."""
    asked: list[str] = []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: asked.append(name))
    (here / "b.py").write_text(
        "from numpy.typing import NDArray\nfrom typing import Any, Literal\nfrom elsewhere import Kind\n"
        "def bench(rt, x: NDArray[Any], k: Literal['a'], s: Kind): ...\n"
    )
    found = parameters_of("b.py", NOBODY)
    assert (found["x"].is_file, found["k"].choices, asked) == (True, ("a",), ["elsewhere"])


@pytest.mark.parametrize(
    "text",
    [
        "def bench(rt, one", "bench = 3", "", "from nothing_of_this_name import bench", "from . import bench",
        "async def bench(rt, n): ...", "class bench: ...", "def bench(): ...", "\0", "x = " + "(" * 3000,
    ],
)  # fmt: skip
def test_what_cannot_be_read_has_no_parameters(here: Path, text: str) -> None:
    (here / "b.py").write_text(text)
    assert parameters_of("b.py", NOBODY) == {}


def test_a_file_that_is_not_there_has_no_parameters(here: Path) -> None:
    (here / "folder.py").mkdir()
    (here / "latin.py").write_bytes(b"x = '\xe4'\ndef bench(rt, n): ...\n")
    assert [parameters_of(name, NOBODY) for name in ("no.py", "folder.py", "latin.py")] == [{}, {}, {}]
