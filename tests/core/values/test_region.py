"""Region arithmetic against sets of addresses."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernbench_core.errors import OutOfBoundsError
from kernbench_core.values.region import Region, compose, covers, intersect, normal, overlaps, subtract


@st.composite
def ascending(draw):
    row, rows = draw(st.integers(1, 9)), draw(st.integers(1, 6))
    pitch = draw(st.one_of(st.integers(row, 20), st.just(max(row, 12)))) if rows > 1 else 0
    return Region(draw(st.integers(0, 60)), row, rows, pitch)


def addresses(region):
    return [region.base + i * region.pitch + c for i in range(region.rows) for c in range(region.row_bytes)]


@settings(max_examples=500)
@given(ascending(), ascending())
def test_pairs_equal_sets(a, b) -> None:
    """overlaps, covers, intersect and subtract say what sets of addresses say."""
    left, right = addresses(a), addresses(b)
    common = set(left) & set(right)
    assert overlaps(a, b) == bool(common)
    if covers(a, b):
        assert set(right) <= set(left)
    pairs = [(i, j) for x, y in intersect(a, b) for i, j in zip(addresses(x), addresses(y), strict=True)]
    assert {left[i] for i, _ in pairs} == common
    assert all(left[i] == right[j] for i, j in pairs)
    rest = [at for piece in subtract(a, [b]) for at in addresses(piece)]
    assert sorted(rest) == sorted(set(left) - common)


@settings(max_examples=200)
@given(ascending(), st.lists(ascending(), max_size=12), st.booleans())
def test_many_holes_are_taken_out_as_each_alone(region, holes, whole) -> None:
    """In what is left, and of a run also in how it is cut."""
    if whole:
        region = Region(region.base, 40)
        holes = [hole for hole in holes if hole.rows <= 2]
    one_by_one = [region]
    for hole in holes:
        one_by_one = [piece for left in one_by_one for piece in subtract(left, [hole])]
    at_once = subtract(region, iter(holes))
    if whole:
        assert at_once == one_by_one
    taken = {at for hole in holes for at in addresses(hole)}
    left = [at for piece in at_once for at in addresses(piece)]
    assert sorted(left) == [at for at in addresses(region) if at not in taken]


@settings(max_examples=500)
@given(st.data())
def test_compose_follows_linear_bytes(data) -> None:
    """A region of the linear bytes of another leads to the addresses that these bytes have."""
    outer = data.draw(ascending())
    row = data.draw(st.integers(1, outer.nbytes))
    rows = data.draw(st.integers(1, 4))
    most = (outer.nbytes - row) // (rows - 1) if rows > 1 else 0
    if rows > 1 and most < row:
        rows = 1
    pitch = data.draw(st.integers(row, most)) if rows > 1 else 0
    room = outer.nbytes - row - (rows - 1) * pitch
    inner = Region(data.draw(st.integers(0, room)), row, rows, pitch)
    reached = [at for _, where in compose(outer, inner) for at in addresses(where)]
    assert reached == [addresses(outer)[i] for i in addresses(inner)]
    linear = [i for lin, _ in compose(outer, inner) for i in addresses(lin)]
    assert linear == list(range(inner.nbytes))


@given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 6), st.integers(-20, 20))
def test_start_and_end_are_the_outermost_bytes(base, row, rows, pitch) -> None:
    """Whichever way the rows go, and whether or not they overlap."""
    region = Region(base, row, rows, pitch)
    assert (region.start, region.end) == (min(addresses(region)), max(addresses(region)) + 1)


BIG = st.one_of(
    st.integers(0, 9), st.sampled_from([at << bits for bits in (20, 31, 32, 61, 62, 63, 64) for at in (1, 3)])
)
BASES = BIG.flatmap(lambda at: st.sampled_from([at, at - 1, -at]))


@settings(max_examples=500)
@given(BASES, BIG, BIG.map(lambda rows: rows + 1), BIG, st.booleans())
@example(0, 0, 1 << 63, 0, False)
@example(0, 8, 1, 3 << 64, False)
def test_a_region_is_right_or_refused(base, row, rows, pitch, down) -> None:
    """However large its numbers are: bytes never wrap around to a wrong answer, compiled or not."""
    pitch = -pitch if down else pitch
    span = (rows - 1) * pitch
    try:
        region = Region(base, row, rows, pitch)
    except OutOfBoundsError as error:
        assert str(error) == (
            f"a region of {rows} rows of {row} B, {pitch} B apart, from {base:#x} on must end below byte 2**63; "
            "give addresses and sizes that a machine has."
        )
        reach = rows * max(row, abs(pitch), 1)
        assert max(base, 0) + reach >= 2**63 or base < -(2**62) or (pitch < 0 and base - reach < -(2**62))
        return
    assert (region.base, region.row_bytes, region.rows, region.pitch) == (base, row, rows, pitch)
    assert (region.nbytes, region.start, region.end) == (rows * row, base + min(span, 0), base + row + max(span, 0))
    assert normal(region).nbytes == rows * row


def test_one_normal_form() -> None:
    """Rows that touch are one row, and a single row has no pitch."""
    assert normal(Region(8, 4, 3, 4)) == Region(8, 12)
    assert normal(Region(8, 4, 1, 99)) == Region(8, 4)
    assert str(Region(16, 4, 3, 8)) == "0x10 (3 rows of 4 B every 8 B)"
    assert str(Region(16, 4)) == "0x10..0x14"
