"""What an output lacks is traced to who had it last: where it was dropped, overwritten, left out or never sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernbench_ccl.catalogue import Catalogue, read_file
from kernbench_ccl.contract import Collective
from kernbench_ccl.plugin import kernbench_algorithms
from kernbench_ccl.prove import Wanted, check, network_of
from kernbench_ccl.prove.algorithm_check import cases, prove_case
from kernbench_ccl.prove.kernel_prints import RANK
from kernbench_ccl.prove.proof_case import WRONG
from kernbench_core.plugins import Plugins
from tests.ccl.prove.proofs import on_ring, only, run_command
from tests.ccl.ring_source import line_of, ring

REDUCING = sorted(
    entry.name
    for entry in kernbench_algorithms()
    if entry.collective in ("all_reduce", "reduce", "reduce_scatter")
)
ADD = "                total = c.combine(tl, got, tl.load(in_ptr + come[0], shape=(come[1],)))  # C"
OWN = "tl.load(in_ptr + come[0], shape=(come[1],))"
DROP = (ADD, f"                total = {OWN} if rank == 2 else c.combine(tl, got, {OWN})  # C")
STORE = "                tl.store(out_ptr + come[0], tl.recv((come[1],), c.dtype, left))  # W2"
LACKING = "must be the sum of element 0 of ranks 0-2, and lacks"


def test_a_rank_that_drops_what_it_received_is_named(tmp_path: Path) -> None:
    """Not those who stored what they were sent; with the receive's line and step."""
    (fault,), lines = only(tmp_path, DROP, case=on_ring(3, 1))
    assert (fault.kind, fault.rank, fault.pe, fault.step, fault.lines) == (WRONG, 2, 0, 2, (lines["R1"],))
    assert fault.sentence == (
        f"element 0 of rank 0's output {LACKING} ranks 0 and 1; rank 0 stored it in step 1 at {lines['W2']}; what "
        f"ranks 0 and 1 brought was last received by rank 2 in step 2 at {lines['R1']} and went nowhere from there. "
        "2 more stretches of outputs went wrong there."
    )


DROPPERS = [(world, dropper, n_pe) for world in (3, 4, 7) for dropper in (0, 1, 2) for n_pe in (1, 2)]


@pytest.mark.parametrize(("world", "dropper", "n_pe"), DROPPERS)
def test_whoever_drops_it_is_the_one_that_is_blamed(tmp_path: Path, world: int, dropper: int, n_pe: int) -> None:
    """For every rank, with several tiles, with one PE and with two."""
    drop = (DROP[0], DROP[1].replace("rank == 2", f"rank == {dropper}"))
    faults, lines = only(tmp_path, drop, case=on_ring(world, world * 6 * n_pe, n_pe))
    assert faults and {(fault.rank, fault.lines) for fault in faults} == {(dropper, (lines["R1"],))}


@pytest.mark.parametrize("name", REDUCING)
@pytest.mark.parametrize("kept", [0, 1])
def test_a_rank_of_any_reduction_that_keeps_one_operand_is_blamed(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch, name: str, kept: int
) -> None:
    """Whether it drops what it received or leaves out its own: nobody else is named."""
    (algorithm,) = Catalogue.of(plugins).open_all(name)
    combine = Collective.combine
    number = -1

    def keep_one(self: Collective, tl: Any, a: Any, b: Any) -> Any:
        return (a, b)[kept] if RANK.get() == number else combine(self, tl, a, b)

    monkeypatch.setattr(Collective, "combine", keep_one)
    wrong = 0
    for number in range(4):
        case = next(cases(algorithm, network_of(next(iter(algorithm.topologies)), 4), pes=2, counts=(9,)))
        faults = prove_case(algorithm, case)[0].faults
        assert {(fault.kind, fault.rank) for fault in faults} <= {(WRONG, number)}
        wrong += bool(faults)
    assert wrong, "some rank must reduce"


def test_what_is_made_of_it_may_be_what_is_dropped(tmp_path: Path) -> None:
    """The line at which it was last used is told with that of the receive."""
    store = "tl.store(out_ptr + come[0], total)  # W1"
    wrong = (store, store.replace("total", f"{OWN} if rank == 2 else total"))
    (fault,), lines = only(tmp_path, wrong, case=on_ring(3, 1))
    assert (fault.rank, fault.step, fault.lines) == (2, 2, (lines["R1"],))
    assert (
        f"last received by rank 2 in step 2 at {lines['R1']}, and what was made of it at {lines['C']} went nowhere."
        in fault.sentence
    )


def test_what_was_overwritten_is_told_with_both_stores(tmp_path: Path) -> None:
    """The sum is there, and then it is not."""
    store = "                tl.store(out_ptr + come[0], total)  # W1"
    again = f"\n                if rank == 2:\n                    tl.store(out_ptr + come[0], {OWN})  # W3"
    (fault,), lines = only(tmp_path, (store, store + again), case=on_ring(3, 1))
    assert (fault.rank, fault.step) == (2, 2)
    assert (
        f"what ranks 0 and 1 brought was last received by rank 2 in step 2 at {lines['R1']}, stored at {lines['W1']} "
        f"and overwritten by rank 2 at {lines['W3']}." in fault.sentence
    )


def test_what_was_never_sent_is_told_where_it_was_left_out(tmp_path: Path) -> None:
    """By the rank that should have brought it."""
    wrong = (ADD, f"                total = got if rank == 1 else c.combine(tl, got, {OWN})  # C")
    (fault,), lines = only(tmp_path, wrong, case=on_ring(3, 1))
    assert (fault.rank, fault.step, fault.lines) == (1, 1, (lines["W1"],))
    assert fault.sentence == (
        f"element 0 of rank 0's output {LACKING} rank 1; rank 0 stored it in step 3 at {lines['W2']}; what rank 1 "
        f"brought was left out of what rank 1 stored in step 1 at {lines['W1']}. 2 more stretches of outputs went "
        "wrong there."
    )


def test_what_was_kept_but_not_passed_on_is_told_with_the_send_that_lacks_it(tmp_path: Path) -> None:
    """Its own output is right, and what it sent is not."""
    send = "                tl.send(tl.load(out_ptr + go[0], shape=(go[1],)), right)  # S2"
    wrong = (send, send.replace("out_ptr", "(in_ptr if rank == 0 else out_ptr)"))
    (fault,), lines = only(tmp_path, wrong, case=on_ring(3, 1))
    assert (fault.rank, fault.step, fault.lines) == (0, 1, (lines["S2"],))
    assert fault.sentence == (
        f"element 0 of rank 1's output {LACKING} ranks 1 and 2; rank 1 stored it in step 1 at {lines['W2']}; what "
        f"ranks 1 and 2 brought was received by rank 0 in step 3 at {lines['W2']} and left out of what it sent in step "
        f"1 at {lines['S2']}."
    )


GATHER = '''
from kernbench_ccl.contract import kernel_args as kernel_args

COLLECTIVE = "all_gather"
TOPO_NAME_TO_KIND = {"ring": 0}


def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    if pe:
        return
    part = own = tl.load(in_ptr, shape=(count,))
    tl.store(out_ptr + rank * count, own)
    for step in range(world - 1):
        tl.send(own if rank == 2 and step == 1 else part, (rank + 1) % world)  # S
        part = tl.recv((count,), tl.collective.dtype, (rank - 1) % world)  # R
        tl.store(out_ptr + (rank - 1 - step) % world * count, part)
'''


def test_what_was_sent_in_its_place_does_not_hide_who_left_it_out(tmp_path: Path) -> None:
    """A rank hands on its own part again, which is right elsewhere."""
    path = tmp_path / "gather.py"
    path.write_text(GATHER)
    (found,) = check(read_file(path), Wanted([5], counts=[3], pes=1))
    (fault,) = found.faults
    send, receive = (f"{path}:{line_of(GATHER, mark)}" for mark in "SR")
    assert (fault.rank, fault.lines) == (2, (send,))
    assert (
        f"what rank 1 brought was received by rank 2 in step 1 at {receive} and left out of what it sent in step 1 at "
        f"{send}. 2 more stretches of outputs went wrong there." in fault.sentence
    )


def test_the_command_names_the_rank_in_words_and_json(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its line."""
    _, lines = ring(tmp_path, DROP)
    call = (str(tmp_path / "ring.py"), "--ranks", "3", "--count", "1", "--pes", "1")
    assert run_command(plugins, *call) == 1
    assert "last received by rank 2 in step 2" in " ".join(capsys.readouterr().out.split())
    assert run_command(plugins, *call, "--json") == 1
    (fault,) = json.loads(capsys.readouterr().out)["topologies"][0]["ranks"][0]["faults"]
    assert (fault["rank"], fault["step"], fault["lines"]) == (2, 2, [lines["R1"]])
