"""What a user may call an algorithm, and what is said of a name that is none."""

from __future__ import annotations

import pytest

from kernbench_ccl.catalogue import meant, spellings
from kernbench_core.errors import UsageError
from tests.ccl.catalogues import catalogue


def test_a_short_name_finds_the_method_of_the_collective() -> None:
    """Of any vendor; a full name is taken as it is."""
    known = catalogue("ccl.ring_all_reduce", "ccl.ring_all_gather", "acme.ring_bidirectional_all_reduce")
    assert known.full_name("ring", "all_gather") == "ccl.ring_all_gather"
    assert known.full_name("ring_bidirectional", "all_reduce") == "acme.ring_bidirectional_all_reduce"
    assert known.full_name("ccl.ring_all_reduce", "all_reduce") == "ccl.ring_all_reduce"
    assert known.methods_of("all_reduce") == {
        "ring_bidirectional": "acme.ring_bidirectional_all_reduce", "ring": "ccl.ring_all_reduce"
    }  # fmt: skip


def test_a_short_name_of_two_vendors_is_asked_for_in_full() -> None:
    """Which one comes first must not decide."""
    known = catalogue("ccl.ring_all_reduce", "acme.ring_all_reduce")
    with pytest.raises(UsageError) as caught:
        known.full_name("ring", "all_reduce")
    assert str(caught.value) == (
        "algorithm 'ring' must name one algorithm, not acme.ring_all_reduce and ccl.ring_all_reduce; write its full "
        "name."
    )
    assert sorted(known.methods_of("all_reduce")) == ["acme.ring_all_reduce", "ccl.ring_all_reduce"]


def test_an_unknown_name_lists_the_methods_of_the_collective() -> None:
    """The closest is suggested."""
    with pytest.raises(UsageError) as caught:
        catalogue("ccl.ring_all_reduce", "ccl.torus_all_reduce").full_name("rign", "all_reduce")
    assert str(caught.value) == (
        "algorithm of all_reduce must be one of ring, torus, or a registered name, not 'rign'. Did you mean 'ring'?"
    )


def test_every_spelling_finds_the_algorithm() -> None:
    """With and without vendor and collective."""
    known = catalogue("ccl.ring_all_reduce", "ccl.ring_all_gather", "acme.magic")
    assert spellings("ccl.ring_all_reduce", "all_reduce") == (
        "ccl.ring_all_reduce",
        "ring_all_reduce",
        "ccl.ring",
        "ring",
    )
    for name in spellings("ccl.ring_all_reduce", "all_reduce"):
        assert known.full_name(name, "all_reduce") == "ccl.ring_all_reduce"
    assert known.full_name("ccl:ring", "all_reduce") == "ccl.ring_all_reduce"
    assert known.named("acme:ring") == []
    assert known.full_name("magic", "broadcast") == "acme.magic"


def test_the_method_of_another_collective_is_told() -> None:
    """No list of guesses beside the list of what there is."""
    known = catalogue("ccl.ring_all_reduce", "ccl.pairwise_all_to_all")
    for name, reason in (("pairwise", ", which does all_to_all."), ("nope", ".")):
        with pytest.raises(UsageError) as caught:
            known.full_name(name, "all_reduce")
        assert str(caught.value) == (
            f"algorithm of all_reduce must be one of ring, or a registered name, not {name!r}{reason}"
        )


def test_spellings_leave_out_vendor_and_collective() -> None:
    """Where the name says which collective it is; each once."""
    known = catalogue("ccl.ring_all_reduce")
    assert known.spellings("ccl.ring_all_reduce") == ("ccl.ring_all_reduce", "ring_all_reduce", "ccl.ring", "ring")
    assert known.spellings("acme.odd") == ("acme.odd", "odd")


def test_a_collective_is_meant_by_other_spellings() -> None:
    """As nccl-tests has it, and as a command is."""
    known = ("all_to_all", "send_recv")
    assert [meant(name, known) for name in ("alltoall", "all-to-all", "SendRecv", "all2all")] == [
        "all_to_all", "all_to_all", "send_recv", None
    ]  # fmt: skip
