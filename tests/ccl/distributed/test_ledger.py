"""The ledger finds the first call that does not fit, and forgets what all ranks have made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.distributed.ledger import CallLedger, LedgerEntry


def call(rank: int, number: int, name: str = "all_reduce", size: str = "8 x f32") -> LedgerEntry:
    """Make a call of a rank."""
    return LedgerEntry(rank, name, number, {"size": size}, f"b.py:{rank}")


@given(st.lists(st.integers(0, 3), max_size=40), st.sampled_from(["", "name", "size"]))
def test_calls_in_any_order_fit_by_their_numbers(order: list[int], wrong: str) -> None:
    """Ranks may be any number of calls apart; what differs is found by whoever comes later."""
    ledger = CallLedger("world", (0, 1, 2, 3))
    made = dict.fromkeys(range(4), 0)
    first: dict[int, int] = {}
    for rank in order:
        number = made[rank]
        assert ledger.next_number(rank) == number
        made[rank] += 1
        odd = rank == 3
        mine = call(rank, number, "reduce" if odd and wrong == "name" else "all_reduce",
                    "9 x f32" if odd and wrong == "size" else "8 x f32")  # fmt: skip
        found = ledger.enter(mine)
        opener = first.setdefault(number, rank)
        if wrong and (rank == 3) != (opener == 3):
            assert found is not None and found.rank == opener
        else:
            assert found is None
    assert set(ledger.missing) == {n for n in range(max(made.values())) if any(made[r] <= n for r in made)}
    for number, ranks in ledger.missing.items():
        assert ranks == tuple(rank for rank in made if made[rank] <= number)


def test_a_call_in_words() -> None:
    """The name, the number and what must be the same on all ranks."""
    assert str(call(1, 4)) == "all_reduce #4 (8 x f32)"
    assert str(LedgerEntry(0, "barrier", 0, {}, "b.py:1")) == "barrier #0"


def test_calls_that_some_have_not_made_in_words() -> None:
    """With the group; calls that make groups are in none."""
    world, groups = CallLedger("world", (0, 1, 2)), CallLedger("", (0, 1))
    world.enter(call(1, 0))
    groups.enter(LedgerEntry(0, "new_group", 0, {"ranks": "ranks [0, 1]"}, "b.py:1"))
    assert world.told() == [
        f"ranks 0, 2 have not made all_reduce #0 (8 x f32) of world, which rank 1 made at {call(1, 0).line}"
    ]
    assert groups.told() == ["rank 1 has not made new_group #0 (ranks [0, 1]), which rank 0 made at b.py:1"]
