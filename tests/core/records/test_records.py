"""Records are what attrs makes of the same classes: each test has both make one, and compares what it does."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import attrs
import cattrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core import records
from kernbench_core.records import Factory, define, evolve, field, frozen


@frozen
class Point:
    """At module level, so that it can be pickled."""

    x: int
    y: int = 2
    _hidden: tuple[int, ...] = ()
    KIND: ClassVar[str] = "point"


@frozen
class Named(Point):
    """A field that the base has, too, and one more."""

    y: int = field(default=7, kw_only=True)
    name: str = "origin"

    def told(self) -> str:
        return f"{super().__repr__()} called {self.name}"


@define
class Open:
    """May be changed."""

    items: list[int] = Factory(list)
    size: int = 0


class Pair(NamedTuple):
    """A tuple that is made of its items one by one."""

    first: int
    second: Any


@frozen
class Held:
    """Others in all sorts of containers."""

    a: Point
    b: tuple[int, ...] = ()
    c: Any = None


def made_by(library: ModuleType) -> dict[str, type]:
    """Return classes of all sorts that the library makes."""

    @library.frozen
    class Plain:
        a: int
        b: float = 1.5
        c: Mapping[str, int] = library.field(factory=dict, eq=False)
        _d: int = library.field(default=3, repr=False)
        e: str = library.field(default="", kw_only=True, alias="word")

    @library.frozen
    class Checked:
        a: int = library.field(converter=int)
        b: int = library.field()
        c: int = library.field(init=False)
        d: int = library.field(init=False, default=9)

        @b.validator
        def _check(self, attribute: Any, value: int) -> None:
            if value < 0:
                raise ValueError(f"{attribute.name} must not be {value}")

        @c.default
        def _sum(self) -> int:
            return self.a + self.b

    @library.frozen
    class After:
        a: int

        def __attrs_post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("below")

    @library.define(eq=False)
    class Changed:
        a: int = 0
        b: list[int] = library.field(factory=list, repr=lambda items: f"{len(items)} items")

    @library.define
    class Compared:
        a: int = 0

    @library.frozen(order=True)
    class Ordered:
        a: int
        b: str = ""

    @library.frozen(repr=False, kw_only=True)
    class Keyed:
        a: int = 1
        b: int

        def __repr__(self) -> str:
            return "keyed"

    @library.frozen(slots=False)
    class Loose:
        a: int = 4

    @library.frozen
    class Own:
        a: int

        def __init__(self, a: str) -> None:
            self.__attrs_init__(len(a))  # type: ignore[attr-defined]

        def __eq__(self, other: object) -> bool:
            return True

    @library.frozen
    class Nothing:
        pass

    @library.frozen
    class Below(Checked):
        e: int = 5

    @library.frozen(cache_hash=True)
    class Kept:
        a: int
        b: int = library.field(default=0, eq=False)

    kinds = (Plain, Checked, After, Changed, Compared, Ordered, Keyed, Loose, Own, Nothing, Below, Kept)
    return {kind.__name__: kind for kind in kinds}


OURS, THEIRS = made_by(records), made_by(attrs)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Plain", (1,), {}), ("Plain", (1, 2.5, {"x": 1}, 4), {"word": "w"}), ("Plain", (), {}), ("Plain", (1,), {"e": 2}),
    ("Plain", (1, 2, 3, 4, 5), {}), ("Checked", ("4", 5), {}), ("Checked", (1, -1), {}), ("Checked", (1, 2, 3), {}),
    ("After", (1,), {}), ("After", (-1,), {}), ("Changed", (), {}), ("Changed", (1, [2]), {}), ("Compared", (3,), {}),
    ("Ordered", (1, "b"), {}), ("Keyed", (), {"b": 1}), ("Keyed", (1, 2), {}), ("Loose", (), {}), ("Own", ("abc",), {}),
    ("Nothing", (), {}), ("Below", (1, 2, 6), {}), ("Kept", (1, 2), {}),
]  # fmt: skip


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call gives or raises, in words."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)


def told(kind: type, given: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """Return all that can be seen of a record."""
    made = outcome(lambda: kind(*given, **named))
    if isinstance(made, tuple):
        return [made[0], made[1].replace("made_by.<locals>.", "")]
    again, fields = kind(*given, **named), attrs.fields(kind)
    names = [each.name for each in fields]

    def change() -> None:
        setattr(made, names[0] if names else "a", 8)

    def forget() -> None:
        del made.a

    return [
        repr(made).replace("made_by.<locals>.", ""),
        made == again, made != again, made == 1, again.__eq__(1),
        outcome(lambda: hash(made) == hash(again)) if names or kind.__hash__ is not object.__hash__ else None,
        outcome(lambda: made < again), outcome(lambda: made >= again),
        {name: getattr(made, name) for name in names},
        attrs.asdict(made), attrs.has(kind),
        outcome(lambda: {name: getattr(copy.copy(made), name) for name in names}),
        outcome(lambda: {name: getattr(copy.deepcopy(made), name) for name in names}),
        outcome(lambda: attrs.asdict(attrs.evolve(made))), outcome(lambda: attrs.asdict(evolve(made))),
        outcome(change), outcome(forget), outcome(lambda: setattr(made, "unheard_of", 1)),
        kind.__match_args__, str(inspect.signature(kind)), weakref.ref(made)() is made, hasattr(made, "__dict__"),
        [(each.name, each.alias, each.init, each.kw_only, each.eq, each.type) for each in fields],
        [each.default is attrs.NOTHING for each in fields],
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "given_", "named"), CALLS)
def test_a_record_is_what_attrs_would_make(name: str, given_: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Values, words, comparisons, hashes, refusals, copies, fields and signature."""
    assert told(OURS[name], given_, named) == told(THEIRS[name], given_, named)


@given(st.tuples(st.integers(0, 3), st.text("ab", max_size=2)), st.tuples(st.integers(0, 3), st.text("ab", max_size=2)))
def test_records_are_in_the_order_of_their_fields(one: tuple[int, str], other: tuple[int, str]) -> None:
    ours, theirs = ([library["Ordered"](*each) for each in (one, other)] for library in (OURS, THEIRS))
    for compare in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        assert getattr(ours[0], compare)(ours[1]) == getattr(theirs[0], compare)(theirs[1])
    assert (len(set(ours)) == 1) == (one == other)


def test_a_class_below_has_the_fields_of_its_base_and_super() -> None:
    """What it says of one of them counts; `super()` means the class that was made."""
    named = Named(1, name="home")
    assert named.told() == "Named(x=1, y=7, _hidden=()) called home"
    assert repr(named) == "Named(x=1, _hidden=(), y=7, name='home')"
    assert Named.KIND == "point"
    assert evolve(named, x=5, hidden=(1,)) == Named(5, (1,), name="home")
    assert Named.__slots__ == ("name",)  # type: ignore[attr-defined]


def test_a_method_is_made_when_it_is_asked_for() -> None:
    """And then is a function of the class, with a place in tracebacks."""

    @frozen
    class Late:
        a: int

    waiting = dict(vars(Late))
    assert Late(1) == Late(1)
    now = vars(Late)
    assert [name for name in now if now[name] is not waiting.get(name)] == ["__init__", "__eq__"]
    assert inspect.isfunction(now["__init__"]) and now["__init__"].__qualname__.endswith("Late.__init__")
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required positional argument: 'a'"):
        Late()  # type: ignore[call-arg]


def test_records_are_pickled() -> None:
    """Frozen or not, with what is hidden."""
    for record in (Point(1, 3, (4,)), Named(2), Open([1, 2], 3)):
        assert pickle.loads(pickle.dumps(record)) == record
    with pytest.raises(TypeError, match="unhashable"):
        hash(Open())


def test_attrs_and_records_are_bases_of_each_other() -> None:
    """In both directions, with `evolve` of both."""

    @attrs.frozen
    class Theirs(Point):
        z: int = attrs.field(default=3)

    @frozen
    class Ours(Theirs):
        w: int = 4

    for library in (attrs, records):
        assert library.evolve(Theirs(1), z=9) == Theirs(1, z=9)
        assert library.evolve(Ours(1), w=8, y=5) == Ours(1, 5, w=8)
    assert repr(Ours(1)).endswith("Ours(x=1, y=2, _hidden=(), z=3, w=4)")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Ours(1).x = 2  # type: ignore[misc]


def test_cattrs_reads_records() -> None:
    """By their types, as they are written."""
    assert cattrs.structure({"x": 1, "y": 5}, Point) == Point(1, 5)
    assert cattrs.structure({"a": {"x": "1"}, "b": [1, "2"]}, Held) == Held(Point(1), (1, 2))


def test_what_a_record_holds_is_told_as_attrs_tells_it() -> None:
    """In containers, as keys, or by itself."""
    inside = {(1, (2, 3)): [Point(1), (Point(2),)], "b": {"c": frozenset({3})}, "open": Open([1])}
    held = Held(Point(5), (1, 2), inside)
    assert records.asdict(held) == attrs.asdict(held)
    assert records.asdict(held, recurse=False) == attrs.asdict(held, recurse=False)
    assert records.asdict(held)["c"][1, (2, 3)][1] == ({"x": 2, "y": 2, "_hidden": ()},)
    assert records.asdict(Held(Point(1), c=Pair(1, Open())))["c"] == Pair(1, {"items": [], "size": 0})
    assert not records.has(list[int]) and not records.has(3) and records.has(Held)
    assert [each.name for each in records.fields(Held)] == ["a", "b", "c"]
    assert (records.fields(Held).c.default, records.fields(Held).a.default) == (None, records.NOTHING)


def test_what_holds_itself_is_told_once() -> None:
    """In each thread by itself."""
    loop = Open()
    loop.items.append(loop)  # type: ignore[arg-type]
    assert repr(loop) == "Open(items=[...], size=0)"
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(repr(loop)))
    thread.start()
    thread.join()
    assert found == [repr(loop)]


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("a: int = 1\n    b: int", ValueError, "Bad.b must have a default, as the fields before it have."),
        ("a = records.field()", TypeError, "Bad.a must have an annotation, as every field; write its type."),
    ],
)
def test_a_class_that_cannot_be_is_refused(body: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        exec(f"@records.frozen\nclass Bad:\n    {body}\n", {"records": records, "__name__": "bad"})
    assert str(caught.value) == words


def test_what_may_be_set_is_not_checked_here() -> None:
    """Attrs checks where a field is set; a class that wants that is told so."""
    with pytest.raises(TypeError) as caught:
        exec("@r.define\nclass Bad:\n    a: int = r.field(converter=int)\n", {"r": records, "__name__": "bad"})
    assert str(caught.value) == "Bad must be frozen to convert or check fields; attrs does it for others."


def test_it_imports_nothing_of_attrs() -> None:
    """Until somebody asks what attrs calls the fields."""
    program = (
        "import sys\nfrom kernbench_core.records import frozen, evolve\n"
        "A = frozen(type('A', (), {'__annotations__': {'a': 'int'}, 'a': 1}))\n"
        "print(repr(evolve(A(), a=2)), A(1) == A(), 'attr' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "A(a=2) True False\n"
