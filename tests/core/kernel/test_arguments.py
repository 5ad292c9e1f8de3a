"""Things inside the arguments of a kernel are replaced at any depth, and nothing else changes."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.kernel.arguments import replace_nested

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
