"""Digests of values and functions: the same for the same, another one for whatever is otherwise."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import fractions
import functools
import io
import itertools
import json
import logging
import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import attrs
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.cache import Cache, Digester, NotCacheable
from kernbench_core.cache.origins import Origins
from kernbench_core.cache.trees import Trees


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[object], str]:
    """Give what digests one value."""
    origins = Origins(Trees(Cache(tmp_path_factory.mktemp("cache"))), frozenset({"kernbench_core"}))

    def found(value: object) -> str:
        digester = Digester(origins)
        digester.add("the bench", value)
        return digester.sha256

    return found


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2) | st.integers(0, 3), inner, max_size=3)
        | st.frozensets(st.integers(0, 5), max_size=3)
    ),
    max_leaves=6,
)


def spelled(value: object) -> str:
    """Spell a plain value so that what is otherwise, its types included, is spelled otherwise."""
    if isinstance(value, frozenset):
        return f"frozenset{sorted(value)}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{spelled(key)}:{spelled(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({','.join(map(spelled, value))})"
    return f"{type(value).__name__} {value!r}"


@given(first=PLAIN, second=PLAIN)
def test_plain_values_have_one_digest_where_they_are_spelled_alike(
    digest: Callable[[object], str], first: Any, second: Any
) -> None:
    import copy

    assert (digest(first) == digest(second)) == (spelled(first) == spelled(second))
    assert digest(first) == digest(copy.deepcopy(first))


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Point:
    x: int
    y: list[int] = dataclasses.field(default_factory=list)


@attrs.frozen
class Plate:
    x: int = 3
    y: Any = attrs.field(default=None, converter=attrs.converters.optional(int))


class Plain:
    scale = 2

    def __init__(self, held: Any) -> None:
        self.held = held

    def area(self) -> int:
        return self.scale


class Listed(list[int]):
    note = ""


def ten(held: Any = 10) -> Any:
    return held


DIFFERENT: list[Callable[[], object]] = [
    lambda: np.arange(6, dtype="i4"), lambda: np.arange(6, dtype="f4"), lambda: np.arange(6, dtype="i4").reshape(2, 3),
    lambda: np.arange(6, dtype="i4").reshape(2, 3, order="F").copy("F"),
    lambda: np.array([[0, 2, 4], [1, 3, 5]], "i4"), lambda: np.array([0, 1, 2, 3, 4, 6], "i4"),
    lambda: np.arange(6, dtype=">i4"), lambda: np.float32(1),
    lambda: np.float64(1), lambda: np.array(1.0), lambda: np.ones(2, ml_dtypes.bfloat16),
    lambda: np.ones(2, ml_dtypes.bfloat16).view("V2"), lambda: np.ones(2, ml_dtypes.bfloat16).view("f2"),
    lambda: np.ones(4, ml_dtypes.float8_e4m3fn), lambda: np.ones(4, ml_dtypes.float8_e5m2),
    lambda: np.ones(4, ml_dtypes.float8_e4m3fn).view(ml_dtypes.float8_e5m2),
    lambda: np.ma.masked_array([1, 2], [False, True]), lambda: np.ma.masked_array([1, 2], [True, False]),
    lambda: np.dtype("f4"), lambda: np.float32, lambda: np.random.default_rng(1), lambda: np.random.default_rng(2),
    lambda: np.random.RandomState(1), lambda: random.Random(1), lambda: random.Random(2), lambda: np.sin,
    lambda: np.cos,
    lambda: Colour.RED, lambda: Colour.BLUE, lambda: Point(1), lambda: Point(2), lambda: Point(1, [0]),
    lambda: Plate(), lambda: Plate(4), lambda: Plate(3, 1), lambda: Plain(1), lambda: Plain(2), lambda: Plain,
    lambda: Point, lambda: Plate, lambda: Plain(1).area, lambda: Listed([1]), lambda: Listed([2]), lambda: [1],
    lambda: Path("a"), lambda: Path("b"), lambda: re.compile("a"), lambda: re.compile("a", re.I), lambda: range(3),
    lambda: range(4), lambda: slice(1), lambda: datetime.timedelta(1), lambda: fractions.Fraction(1, 3),
    lambda: collections.OrderedDict(a=1), lambda: {"a": 1}, lambda: collections.defaultdict(int, a=1),
    lambda: collections.defaultdict(list, a=1), lambda: collections.deque([1], 2), lambda: collections.deque([1], 3),
    lambda: ten, lambda: functools.partial(ten, 1), lambda: functools.partial(ten, 2), lambda: functools.lru_cache(ten),
    lambda: logging.getLogger("a"), lambda: logging.getLogger("b"), lambda: len, lambda: [1].append, lambda: [2].append,
    lambda: str.upper, lambda: list[int], lambda: list[str], lambda: int | str, lambda: SimpleNamespace,
    lambda: os.path,
    lambda: json, lambda: json.dumps, lambda: json.loads, lambda: ..., lambda: NotImplemented, lambda: bytearray(b"a"),
    lambda: 1.0, lambda: -0.0, lambda: 0.0, lambda: complex(0, -0.0), lambda: complex(0, 0.0), lambda: float("nan"),
]  # fmt: skip


def test_things_that_differ_have_digests_that_differ(digest: Callable[[object], str]) -> None:
    """Each made twice has one digest; no two have the same."""
    found = [digest(make()) for make in DIFFERENT]
    assert found == [digest(make()) for make in DIFFERENT]
    alike = [(one, other) for one, other in itertools.combinations(range(len(found)), 2) if found[one] == found[other]]
    assert not alike


MODULE = """
import math
import helpers
from dataclasses import dataclass
from helpers import twice as doubled

SIZE = {size}
TABLE = {table}

def helper(x, step={step}):
    return x + step + SIZE

def unused(x):
    return {unused}

@dataclass
class Tile:
    rows: int = {rows}

    def area(self):
        return self.rows * {area}

def made(held):
    def bench(rt, n=4, *, m={keyword}):
        "{text}"
        def inner(x):
            return [helper(x), TABLE[0], {inner}]
        import helpers as again
        return inner(n) + held + Tile().area() + math.sqrt(m) + doubled(n) + helpers.thrice(n) + again.SCALE
    return bench

bench = made({held})
"""
HELPERS = """
SCALE = {scale}
NEVER = {never}
def twice(x): return {twice} * x
def thrice(x): return once(x) * 3
def once(x): return x + {once}
"""
USUAL = dict.fromkeys(("size", "step", "rows", "area", "keyword", "inner", "scale", "twice", "once"), 1) | {
    "held": 1, "table": [1, 2], "unused": 1, "text": "doc", "never": 1,
}  # fmt: skip


def bench_of(folder: Path, values: dict[str, object]) -> Callable[..., object]:
    """Return the function of the template, its module and its helper's loaded anew under one and the same path."""
    (folder / "helpers.py").write_text(HELPERS.format(**values))
    sys.modules["users"] = users = ModuleType("users")
    users.__package__ = ""
    sys.modules.pop("helpers", None)
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        exec(compile(MODULE.format(**values), str(folder / "users.py"), "exec"), vars(users))
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = before
    found: Callable[..., object] = users.bench
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("users")


@given(change=st.sampled_from(sorted(USUAL)), to=st.integers(2, 9))
def test_one_change_of_what_a_function_uses_is_another_digest(
    digest: Callable[[object], str], folder: Path, change: str, to: int
) -> None:
    """A line of it, of what is inside it, a default, what it closes over, a global, a helper's helper, a class.

    What nothing of it names may change.
    """
    before = digest(bench_of(folder, USUAL))
    value = {"table": [to, 2], "text": f"doc{to}"}.get(change, to)
    after = digest(bench_of(folder, {**USUAL, change: value}))
    own_file = change == "never"  # the file of a module that it imports is digested as a whole
    assert (after != before) == (change != "unused") or own_file
    assert digest(bench_of(folder, USUAL)) == before


def test_a_change_in_memory_alone_counts(digest: Callable[[object], str], folder: Path) -> None:
    bench = bench_of(folder, USUAL)
    before = digest(bench)
    sys.modules["helpers"].SCALE = 7  # type: ignore[attr-defined]
    patched = digest(bench)
    sys.modules["helpers"].SCALE = 1  # type: ignore[attr-defined]
    assert patched != before == digest(bench)
    bench.__globals__["helper"].__defaults__ = (2,)
    assert digest(bench) != before


@pytest.mark.parametrize(
    ("imports", "used"),
    [("import laboratory", "laboratory.SCALE"), ("from laboratory import SCALE as it", "it")],
)
def test_a_change_in_memory_counts_of_what_is_imported_when_it_runs(
    digest: Callable[[object], str], monkeypatch: pytest.MonkeyPatch, imports: str, used: str
) -> None:
    """As that of what is imported before: a notebook's own module, `__main__`, has no file at all."""
    monkeypatch.setitem(sys.modules, "laboratory", laboratory := ModuleType("laboratory"))
    laboratory.SCALE, laboratory.OTHER = 1, 1  # type: ignore[attr-defined]
    names: dict[str, Any] = {}
    exec(f"def bench():\n    {imports}\n    return {used}", names)
    before = digest(names["bench"])
    laboratory.OTHER = 2  # type: ignore[attr-defined]
    assert digest(names["bench"]) == before
    laboratory.SCALE = 2  # type: ignore[attr-defined]
    assert digest(names["bench"]) != before


def test_shared_and_circular_values_have_digests(digest: Callable[[object], str]) -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    other: list[Any] = [2]
    other.append(other)
    assert digest(circle) != digest(other)

    def first(n: int) -> int:
        return second(n)

    def second(n: int) -> int:
        return first(n)

    assert digest(first) != digest(second)


@pytest.mark.parametrize(
    "thing, told",
    [
        (lambda: (lambda held: lambda: held)(io.StringIO()), "the bench's closure 'held' is an _io.StringIO"),
        (lambda: (lambda held: lambda: held)({"a": [threading.Lock()]}), "the bench's closure 'held'['a'][0] is a "),
        (lambda: np.array([1, "a"], object), "the bench is an array of objects"),
        (lambda: Plain(iter([1])), "the bench.held is a builtins.list_iterator"),
        (lambda: (each for each in "a"), "the bench is a builtins.generator"),
        (lambda: lambda: sys.modules["__main__"], "the bench names sys.modules, and so may name anything else"),
    ],
)
def test_what_has_no_digest_is_named(digest: Callable[[object], str], thing: Callable[[], object], told: str) -> None:
    with pytest.raises(NotCacheable) as caught:
        digest(thing())
    assert str(caught.value).startswith(told)
    assert str(caught.value).endswith(", which no key covers; the run is not kept.")


def test_a_world_has_no_digest(digest: Callable[[object], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernbench_core.cache.digests._MOST_VALUES", 1000)
    digest([[number] for number in range(999)])
    with pytest.raises(NotCacheable) as caught:
        digest([[number] for number in range(1000)])
    assert str(caught.value).endswith("is of more than 1,000 values, which no key covers; the run is not kept.")
    deep: list[Any] = []
    for _ in range(999):
        deep = [deep]
    with pytest.raises(NotCacheable, match=r"is nested too deeply, which no key covers; the run is not kept\.$"):
        digest(deep)


CODE = """
import sys
from pathlib import Path
from kernbench_core.cache import Cache, Digester
from kernbench_core.cache.origins import Origins
from kernbench_core.cache.trees import Trees
sys.path.insert(0, sys.argv[1])
import users2
digester = Digester(Origins(Trees(Cache(Path(sys.argv[2]))), frozenset()))
digester.add("f", [users2.bench, {"b", "a", "c"}, users2.Tile])
print(digester.sha256)
"""


def test_a_digest_is_the_same_in_any_process(folder: Path, tmp_path: Path) -> None:
    """Whatever the seed of hashes; with the module's code from its cache, and compiled anew."""
    (folder / "users2.py").write_text(MODULE.format(**USUAL) + "\nif {'a', 'b'}: NAMES = {'x', 'y', 'z'}\n")
    (folder / "helpers.py").write_text(HELPERS.format(**USUAL))
    told = {
        subprocess.run(
            [sys.executable, "-c", CODE, str(folder), str(tmp_path)], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert len(told) == 1
