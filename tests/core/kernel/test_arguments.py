"""Arguments go by keyword where they can; things inside them are replaced at any depth, and nothing else changes."""

from __future__ import annotations

import inspect
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.kernel.arguments import by_keyword, replace_nested

Pair = namedtuple("Pair", ["left", "right"])
NESTED = st.recursive(
    st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3)
    | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(max_size=1), inner, max_size=3)
    | st.builds(Pair, inner, inner)
    | st.dictionaries(st.text(max_size=1), inner, max_size=3).map(OrderedDict),
    max_leaves=8,
)


@given(NESTED)
def test_replacing_keeps_everything_else(value: Any) -> None:
    """Type for type the structure is what it was, each int replaced; what holds none is the very same object."""
    replaced = replace_nested(value, int, lambda number: ("was", number))

    def same(old: Any, new: Any) -> bool:
        if type(old) is int:
            return bool(new == ("was", old))
        if isinstance(old, dict):
            return type(old) is type(new) and list(old) == list(new) and all(same(old[key], new[key]) for key in old)
        if isinstance(old, tuple | list):
            return type(old) is type(new) and len(old) == len(new) and all(map(same, old, new))
        return old is new

    assert same(value, replaced)
    assert replace_nested(value, bytes, len) is value


def test_a_dict_with_a_factory_keeps_it() -> None:
    """A copied container is its type with all its state, and the original is as it was."""
    given_ = defaultdict(list, {"a": [1]})
    replaced: Any = replace_nested(given_, int, str)
    assert (replaced, replaced["none"], given_["a"]) == ({"a": ["1"], "none": []}, [], [1])


class Tagged(list[Any]):
    """A list with state of its own, made from something else than its items."""

    def __init__(self, tag: str) -> None:
        super().__init__()
        self.tag = tag


def test_a_list_keeps_its_state() -> None:
    """It is copied, and not made anew."""
    tagged = Tagged("x")
    tagged += [1, "a"]
    replaced: Any = replace_nested(tagged, int, str)
    assert (type(replaced), replaced.tag, list(replaced), list(tagged)) == (Tagged, "x", ["1", "a"], [1, "a"])


def test_arguments_go_by_keyword_where_they_can() -> None:
    """What wraps a kernel may have them in another order; before a `*rest` there is no other way than by position."""

    def kernel(a: int, /, b: int, *, c: int, **more: int) -> None:
        """Do nothing."""

    def listed(a: int, *rest: int, tl: int) -> None:
        """Do nothing."""

    arguments = {"a": 1, "b": 2, "c": 3, "more": {"d": 4}}
    bound = inspect.BoundArguments(by_keyword(inspect.signature(kernel)), arguments)  # type: ignore[arg-type]
    assert (bound.args, bound.kwargs) == ((1,), {"b": 2, "c": 3, "d": 4})
    bound = inspect.BoundArguments(by_keyword(inspect.signature(listed)), {"a": 1, "rest": (2, 3), "tl": 4})  # type: ignore[arg-type]
    assert (bound.args, bound.kwargs) == ((1, 2, 3), {"tl": 4})
