"""A bench's signature is its parameter schema, for texts and for values."""

from __future__ import annotations

import functools
import json
import math
from enum import IntEnum, StrEnum
from pathlib import Path
from types import GenericAlias
from typing import Any, Literal

import numpy as np
import pytest

from kernbench_core.errors import KernelError, UsageError
from kernbench_core.host import ArrayOrTensor, DeviceTensor
from kernbench_core.host.bench import describe_bench, open_bench, parse_assignments
from kernbench_core.plugins import BenchEntry, Provider, Registry
from tests.conftest import without_carets

NO_MASK = "an array without a mask, not one of numpy.ma; give its .filled(value), and the mask as an array of its own"
NOBODY: Registry[BenchEntry] = Registry("bench", [])


def sample(
    rt: Any,
    M: int = 1024,  # noqa: N803
    scale: float = 0.5,
    dtype: Literal["f16", "f32"] = "f16",
    name: str = "x",
    fast: bool = False,
    a: np.ndarray | None = None,
) -> None:
    """Multiply things.

    More words.
    """


def needs(rt: Any, n: int) -> None:
    """Need a number."""


BENCH = describe_bench("sample", sample)


def test_docstring_and_signature_are_the_description() -> None:
    """The sentence is the first docstring line; kinds and defaults come from the signature."""
    assert BENCH.sentence == "Multiply things."
    assert [(p.name, p.kind, p.optional, p.default) for p in BENCH.params] == [
        ("M", "int", False, 1024),
        ("scale", "float", False, 0.5),
        ("dtype", "choice", False, "f16"),
        ("name", "str", False, "x"),
        ("fast", "bool", False, False),
        ("a", "npy", True, None),
    ]
    assert BENCH.params[2].to_json() == {
        "name": "dtype", "type": "choice", "required": False, "default": "f16", "choices": ["f16", "f32"],
    }  # fmt: skip


def test_texts_and_values_give_the_same() -> None:
    """A text from the command line and a Python value go through one door."""
    typed = BENCH.values({"M": "64", "scale": "2", "dtype": "f32", "name": "y", "fast": "true"})
    valued = BENCH.values({"M": np.int64(64), "scale": 2, "dtype": "f32", "name": "y", "fast": True})
    assert typed == valued == {"M": 64, "scale": 2.0, "dtype": "f32", "name": "y", "fast": True, "a": None}
    assert type(valued["M"]) is int


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"M": "ten"}, "parameter 'M' of bench 'sample' must be an integer, not 'ten'."),
        ({"M": 1.5}, "parameter 'M' of bench 'sample' must be an integer, not 1.5."),
        ({"M": True}, "parameter 'M' of bench 'sample' must be an integer, not True."),
        ({"scale": "nan"}, "parameter 'scale' of bench 'sample' must be a finite number, not 'nan'."),
        ({"dtype": "f64"}, "parameter 'dtype' of bench 'sample' must be one of 'f16', 'f32', not 'f64'."),
        ({"fast": "yes"}, "parameter 'fast' of bench 'sample' must be true or false, not 'yes'."),
        ({"m": "4"}, "bench 'sample' has no parameter 'm'; its parameters are: M, scale, dtype, name, fast, a. "
                     "Did you mean 'M'?"),
        ({"a": "none.npy"}, "parameter 'a' of bench 'sample' must be a .npy file, not 'none.npy' "
                            "(there is no such file)."),
        ({"a": 3}, "parameter 'a' of bench 'sample' must be an array or a .npy file, not 3."),
        ({"a": [[0.0] * 70] * 50}, "parameter 'a' of bench 'sample' must be an array or a .npy file, not [["
                                   f"{'0.0, ' * 39}0.…."),
        ({"a": np.ma.masked}, "parameter 'a' of bench 'sample' must be an array or a .npy file, not masked (it must "
                              f"be {NO_MASK})."),
        ({"scale": np.ma.masked}, "parameter 'scale' of bench 'sample' must be a finite number, not masked (it must be "
                                  f"{NO_MASK})."),
        ({"M": "é" * 198}, f"parameter 'M' of bench 'sample' must be an integer, not '{'é' * 198}'."),
        ({"M": "é" * 199}, f"parameter 'M' of bench 'sample' must be an integer, not '{'é' * 198}…."),
    ],
)  # fmt: skip
def test_a_bad_value_is_a_sentence(given: dict[str, Any], sentence: str) -> None:
    """The error names parameter, bench, what it must be, and what was given."""
    with pytest.raises(UsageError) as caught:
        BENCH.values(given)
    assert str(caught.value) == sentence


class Mode(StrEnum):
    """Members are texts, of a type of their own."""

    FAST = "fast"


class Level(IntEnum):
    """Members are integers, of a type of their own."""

    HIGH = 3


def odd(
    rt: Any,
    f: float = 3,
    g: float = Level.HIGH,
    i: int = Level.HIGH,
    n: int = None,  # type: ignore[assignment]  # noqa: RUF013
    s: str = Mode.FAST,
    c: Literal["slow", "fast"] = Mode.FAST,  # type: ignore[assignment]
    t: int = "12",  # type: ignore[assignment]
    high: float = math.inf,
    nan=math.nan,  # type: ignore[no-untyped-def]
) -> None:
    """Have defaults of other types than the annotations say."""


def test_a_default_becomes_what_its_value_would() -> None:
    """Of just Python's own types, so that text from a manifest gives the same; None and infinity where they are it."""
    bench = describe_bench("odd", odd)
    values = bench.values({})
    nan = values.pop("nan")
    assert values == {
        "f": 3.0, "g": 3.0, "i": 3, "n": None, "s": "fast", "c": "fast", "t": 12, "high": math.inf,
    }  # fmt: skip
    assert math.isnan(nan)
    assert [type(value) for value in values.values()] == [float, float, int, type(None), str, str, int, float]
    again = bench.values({**values, "nan": "nan", "high": "inf"})
    assert math.isnan(again.pop("nan"))
    assert again == values
    assert [param.to_json()["default"] for param in bench.params][-2:] == ["inf", "nan"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [({"high": "-inf"}, "'-inf'"), ({"high": math.nan}, "nan"), ({"f": math.inf}, "inf"), ({"f": "1e999"}, "'1e999'"),
     ({"f": 10**400}, f"1{'0' * 198}…")],
)  # fmt: skip
def test_a_number_that_is_not_finite_must_be_the_default(given: dict[str, Any], shown: str) -> None:
    """Any other is a slip."""
    with pytest.raises(UsageError) as caught:
        describe_bench("odd", odd).values(given)
    (name,) = given
    assert str(caught.value) == f"parameter {name!r} of bench 'odd' must be a finite number, not {shown}."


@pytest.mark.parametrize(
    ("kind", "default", "must_be"),
    [
        (bool, 0, "true or false"),
        (int, 2.5, "an integer"),
        (int, True, "an integer"),
        (str, 5, "text"),
        (float, False, "a finite number"),
        (Literal["a", "b"], "c", "one of 'a', 'b'"),
        (np.ndarray, 3, "a .npy file"),
        (int, [1], "an integer"),
    ],
)
def test_a_default_that_does_not_fit_is_a_sentence(kind: Any, default: Any, must_be: str) -> None:
    """Given, it would be one too; with a value in its place the bench runs, and is listed all the same."""

    def bench(rt: Any, x: Any = default) -> None:
        """Take x."""

    bench.__annotations__["x"] = kind
    found = describe_bench("sample", bench)
    with pytest.raises(UsageError) as caught:
        found.values({})
    assert str(caught.value) == (
        f"the default of parameter 'x' of bench 'sample' must be {must_be}, as it is annotated, not {default!r}; "
        "correct either, or give a value."
    )
    right = {bool: True, int: 1, str: "x", float: 2.0, np.ndarray: np.ones(1)}.get(kind, "a")
    assert found.values({"x": right})["x"] is right
    json.dumps(found.params[0].to_json(), allow_nan=False)


def test_a_word_may_stand_for_a_number() -> None:
    """As a text, in Python and as the default; another text is a slip."""

    def bench(rt: Any, block: int | Literal["auto", "most"] = "auto", x: float | Literal["no"] = 2) -> None:
        """Take a block."""

    found = describe_bench("sample", bench)
    assert found.values({}) == {"block": "auto", "x": 2.0}
    assert found.values({"block": "most", "x": "no"}) == {"block": "most", "x": "no"}
    assert found.values({"block": "8", "x": "0.5"}) == found.values({"block": 8, "x": 0.5}) == {"block": 8, "x": 0.5}
    for wrong in ("none", 1.5, True, "no"):
        with pytest.raises(UsageError) as caught:
            found.values({"block": wrong})
        assert str(caught.value) == (
            f"parameter 'block' of bench 'sample' must be an integer or 'auto', 'most', not {wrong!r}."
        )


def test_an_array_may_be_a_default() -> None:
    """As it is, or by its file; listed in words."""

    def bench(rt: Any, x: np.ndarray = np.arange(2)) -> None:  # noqa: B008
        """Take x."""

    found = describe_bench("sample", bench)
    assert found.values({})["x"].tolist() == [0, 1]
    assert found.params[0].to_json()["default"] == "array([0, 1])"


def test_a_required_parameter_must_be_given() -> None:
    """A parameter without default is asked for."""
    with pytest.raises(UsageError) as caught:
        describe_bench("needs", needs).values({})
    assert str(caught.value) == "bench 'needs' needs a value for 'n'; give it with -p n=VALUE."


def test_an_array_comes_from_a_npy_file(tmp_path: Path) -> None:
    """A .npy path becomes a read-only array; an array stays what it is."""
    array = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "a.npy", array)
    loaded = BENCH.values({"a": str(tmp_path / "a.npy")})["a"]
    np.testing.assert_array_equal(loaded, array)
    assert not loaded.flags.writeable
    assert BENCH.values({"a": array})["a"] is array


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("text", "it does not begin like one; save the array with numpy.save"),
        ("several", "it holds several arrays"),
        ("objects", "it holds Python objects; save numbers"),
        ("part", "it is cut short or damaged"),
    ],
)
def test_what_is_no_plain_array_is_refused(tmp_path: Path, how: str, reason: str) -> None:
    """Text, an .npz, pickled objects and a part of a file are not one array."""
    path = tmp_path / "a.npy"
    if how == "text":
        path.write_text("hello")
    elif how == "several":
        np.savez(tmp_path / "a.npz", a=np.ones(2))
        (tmp_path / "a.npz").rename(path)
    elif how == "objects":
        np.save(path, np.array([{}], object), allow_pickle=True)
    else:
        np.save(path, np.ones(64))
        path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UsageError) as caught:
        BENCH.values({"a": path})
    assert str(caught.value) == f"parameter 'a' of bench 'sample' must be a .npy file, not {path!r} ({reason})."


def test_a_bench_is_found_by_name_file_or_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered names, .py files and functions all become a Bench."""
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("bench", [(BenchEntry("s", "mine_bench:bench"), Provider("t", "t", "1"))])
    file = tmp_path / "mine_bench.py"
    file.write_text('def bench(rt, n: int = 3):\n    """Do mine."""\n')
    named = open_bench("s", registry)
    assert (named.name, named.registered, named.sources) == ("s", True, None)
    filed = open_bench(str(file), NOBODY)
    assert filed.sources is not None
    found = (filed.name, filed.sentence, filed.registered, filed.sources.given)
    assert found == ("mine_bench", "Do mine.", False, file)
    assert open_bench(sample, NOBODY).name == "sample"
    with pytest.raises(UsageError) as caught:
        open_bench(functools.partial(sample, n=3), NOBODY)
    start, end = "bench must be a function, not functools.partial(<function sample", "; write a function that calls it."
    assert str(caught.value).startswith(start) and str(caught.value).endswith(end)


def test_a_file_has_several_benches(tmp_path: Path) -> None:
    """One is named behind the path; a name with a colon that is no such path is looked up as any other."""
    file = tmp_path / "a:b c.py"
    file.write_text('def bench(rt):\n    """One."""\ndef other(rt, n: int = 3):\n    """Two."""\nno = 3\n')
    found = [open_bench(f"{file}{behind}", NOBODY) for behind in ("", ":bench", ":other")]
    assert [(bench.name, bench.sentence) for bench in found] == [
        ("a:b c", "One."), ("a:b c", "One."), ("a:b c:other", "Two."),
    ]  # fmt: skip
    assert all(bench.sources is not None and bench.sources.given == file for bench in found)
    for name in ("no", "gone"):
        with pytest.raises(UsageError) as caught:
            open_bench(f"{file}:{name}", NOBODY)
        assert str(caught.value) == (
            f"bench file {str(file)!r} must define a function {name}(rt, …). It has bench, other: name one behind the "
            "path, as FILE.py:bench."
        )
    for text in ("mine.py:", "mine.py:1", "mine.py:a.b", "mine.txt:a"):
        with pytest.raises(UsageError, match=r"^bench must be a registered name or the path of a \.py file, not "):
            open_bench(text, NOBODY)


@pytest.mark.parametrize(
    ("source", "error", "sentence"),
    [
        (None, UsageError, "bench file {path!r} does not exist; give a registered bench or the path of a .py file."),
        ("x = 1", UsageError, "bench file {path!r} must define a function bench(rt, …)."),
        ("1 / 0", KernelError,
         "bench file {path!r} must run to its end, but it raised ZeroDivisionError: division by zero.\n"
         '  File "{path}", line 1, in <module>\n    1 / 0'),
        ("import sys\nsys.exit(0)", KernelError,
         "bench file {path!r} must run to its end, but it raised SystemExit: 0.\n"
         '  File "{path}", line 2, in <module>\n    sys.exit(0)'),
        ("raise ValueError('must be 3.')", KernelError,
         "bench file {path!r} must run to its end, but it raised ValueError: must be 3.\n"
         '  File "{path}", line 1, in <module>\n    raise ValueError(\'must be 3.\')'),
        ("x = [1 2]", KernelError,
         "{path}:1: bench file must be valid Python, but invalid syntax. Perhaps you forgot a comma?"),
        ("x = 1\ndef bench(rt:", KernelError, "{path}:2: bench file must be valid Python, but '(' was never closed."),
        ("def bench(rt): yield", UsageError,
         "bench 'b' must be a plain function, with neither yield nor async: it would never run."),
        ("def bench(): pass", UsageError,
         "bench 'b' must take the runtime as its first parameter: def bench(rt, …)."),
        ("def bench(rt, x: list): pass", UsageError,
         "parameter 'x' of bench 'b' must be annotated int, float, str, bool, Literal[…] or np.ndarray, "
         "or one of these | None, not <class 'list'>."),
        ("from kernbench_core.host import DeviceTensor\ndef bench(rt, x: DeviceTensor | None = None): pass", UsageError,
         "parameter 'x' of bench 'b' must be annotated int, float, str, bool, Literal[…] or np.ndarray, "
         "or one of these | None, not kernbench_core.host.device_tensor.DeviceTensor | None."),
    ],
)  # fmt: skip
def test_a_bad_bench_file_is_a_sentence(
    tmp_path: Path, source: str | None, error: type[Exception], sentence: str
) -> None:
    """Whatever is wrong with a bench file is said before anything runs."""
    path = tmp_path / "b.py"
    if source is not None:
        path.write_text(source)
    with pytest.raises(error) as caught:
        open_bench(str(path), NOBODY)
    assert without_carets(str(caught.value)) == sentence.format(path=str(path))


def test_assignments_are_split_once() -> None:
    """NAME=VALUE texts keep further equals signs; doubles and missing ones are errors."""
    assert parse_assignments(["a=b=c", "d="], "-p") == {"a": "b=c", "d": ""}
    with pytest.raises(UsageError) as caught:
        parse_assignments(["M"], "-p")
    assert str(caught.value) == "option -p must be followed by NAME=VALUE, not 'M'."
    with pytest.raises(UsageError) as caught:
        parse_assignments(["M=1", "M=2"], "-p")
    assert str(caught.value) == "option -p must give 'M' once, not as '1' and as '2'."


def test_an_annotation_may_speak_of_tensors_too() -> None:
    """What type checkers want of a bench that others call."""

    def bench(rt: Any, x: ArrayOrTensor | None = None, y: np.ndarray | DeviceTensor = np.ones(1)) -> None:  # noqa: B008
        """Take both."""

    found = describe_bench("it", bench).params
    assert [(param.kind, param.optional) for param in found] == [("npy", True), ("npy", False)]


class AliasOfArrays:
    """What numpy's `NDArray` is from 2.5 on: an alias by name, with what it stands for behind it."""

    __name__ = "NDArray"
    __value__ = np.ndarray[Any, Any]


def test_an_array_is_told_by_what_its_alias_stands_for() -> None:
    """`NDArray[Any]`, of whichever numpy, alone and beside a tensor and None."""

    def bench(rt: Any, a: Any, b: Any = None) -> None:
        """Take arrays."""

    alias = GenericAlias(AliasOfArrays(), (Any,))  # type: ignore[arg-type]
    bench.__annotations__ = {"a": alias, "b": alias | DeviceTensor | None}
    kinds = {param.name: param.kind for param in open_bench(bench, NOBODY).params}
    assert kinds == {"a": "npy", "b": "npy"}
