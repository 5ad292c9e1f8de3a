"""Descriptions of ops as hypothesis draws them, for tests that write logs and read them back."""

from __future__ import annotations

from hypothesis import strategies as st

from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.values.region import Region
from kernbench_core.values.value import LoadedValue

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.sampled_from(["f16", "", "tcm"]),
)
items = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)
params = st.dictionaries(
    st.sampled_from(["m", "src_addr", "input_addrs", "shape_out", "handle_id", "axis", "op"]),
    st.one_of(items, st.lists(items, max_size=3), st.dictionaries(st.text("aé\0", max_size=2), scalars, max_size=2)),
)
accesses = st.lists(
    st.builds(
        lambda space, regions, has: Access(space, tuple(regions), LoadedValue((1,), "f32") if has else None),
        st.sampled_from(["hbm", "tcm"]),
        st.lists(
            st.builds(Region, st.integers(0, 2**63 - 100), st.integers(1, 9), st.integers(1, 3), st.integers(0, 30)),
            max_size=3,
        ),
        st.booleans(),
    ),
    max_size=3,
).map(tuple)
descriptions = st.builds(
    OpDescription,
    st.sampled_from(["memory", "math"]),
    st.sampled_from(["exp", "add"]),
    params,
    accesses,
    st.one_of(st.none(), accesses.filter(len).map(lambda a: a[0])),
    st.one_of(st.none(), st.tuples(st.integers(0, 9), st.integers(0, 99))),
    st.one_of(st.none(), st.just((1, 2))),
    st.one_of(st.none(), st.just("acme:f")),
)


def types_in(thing):
    """Nested types, so that 1, True and 1.0 are told apart."""
    if isinstance(thing, list | tuple):
        return type(thing), [types_in(x) for x in thing]
    return type(thing)
