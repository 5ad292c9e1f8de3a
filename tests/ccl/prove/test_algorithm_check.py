"""Right algorithms are proved; what is wrong with a broken one is told with rank, step, elements and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernbench_ccl.catalogue import Catalogue, read_file
from kernbench_ccl.cli.check import numbers
from kernbench_ccl.plugin import kernbench_algorithms
from kernbench_ccl.prove import Ranks, Wanted, check, network_of
from kernbench_ccl.prove.algorithm_check import cases, prove_case
from kernbench_ccl.prove.proof_case import DEADLOCK, RAISED, WRONG, ProofCase
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from tests.ccl.prove.proofs import on_ring, only
from tests.ccl.ring_source import ring


@pytest.mark.parametrize("worlds", [(2, 3), (4, 5, 6)])
def test_a_right_ring_is_proved_for_every_number_of_ranks(tmp_path: Path, worlds: tuple[int, ...]) -> None:
    """No faults, 2(N-1) steps deep, one slot is enough."""
    algorithm, _ = ring(tmp_path)
    (found,) = check(algorithm, Wanted(list(worlds)))
    assert found.faults == ()
    assert [(r.world, r.steps, r.slots, r.refusal) for r in found.ranks] == [
        (n, 2 * (n - 1), 1, None) for n in worlds
    ]


@pytest.mark.parametrize("world", range(2, 34))
def test_every_number_of_ranks_has_counts_that_do_not_divide(tmp_path: Path, world: int) -> None:
    """By the ranks, and by several PEs, each of which has a share; and one element on several PEs."""
    algorithm, _ = ring(tmp_path)
    tried = [(case.n_pe, case.count) for case in cases(algorithm, on_ring(world, 1).network)]
    assert any(n_pe > 1 and count > n_pe and count % n_pe and count % world for n_pe, count in tried), tried
    assert any(n_pe > count for n_pe, count in tried), tried


def test_messages_are_counted(tmp_path: Path) -> None:
    """A ring of N ranks with one tile per segment sends 2 N (N-1) messages."""
    algorithm, _ = ring(tmp_path)
    for world in (2, 3, 7):
        proof, slots = prove_case(algorithm, on_ring(world, 4 * world))
        assert (proof.messages, proof.steps, slots, proof.faults) == (2 * world * (world - 1), 2 * (world - 1), 1, ())


# Mutations -------------------------------------------------------------------------------------------


def test_a_wrong_segment_index_starves_a_receiver(tmp_path: Path) -> None:
    """Ranks send one segment and receive as if it were another: where segments are unequal, messages run out."""
    wrong = ("tiles(rank - step), tiles(rank - step - 1)", "tiles(rank - step), tiles(rank - step)")
    (fault,), lines = only(tmp_path, wrong, case=on_ring(3, 1))
    assert (fault.kind, fault.rank, fault.pe) == (DEADLOCK, 0, 0)
    assert fault.sentence == (
        f"2 PEs wait for ever: rank 0 at {lines['W2']}, after step 1, waits for message 2 (1 element) of rank 2, which "
        f"has ended; rank 1 at {lines['W2']}, after step 1, waits for message 2 (1 element) of rank 0."
    )


def test_a_wrong_segment_is_found_where_segments_are_equal(tmp_path: Path) -> None:
    """All messages fit, but land in the place of another; what nobody stored is told as well."""
    wrong = ("tiles(rank + 1 - step), tiles(rank - step)", "tiles(rank + 1 - step), tiles(rank + 1 - step)")
    faults, lines = only(tmp_path, wrong, case=on_ring(2, 2))
    assert [(f.kind, f.rank, f.step, f.start, f.end) for f in faults] == [(WRONG, 0, 2, 0, 1), (WRONG, 1, 2, 0, 1)]
    assert [fault.sentence for fault in faults] == [
        "element 0 of rank 0's output must be the sum of element 0 of ranks 0 and 1, and holds what the output held "
        "before and lacks ranks 0 and 1; nobody stored it; what ranks 0 and 1 brought was received by rank 0 in step "
        f"2 at {lines['W2']} and stored in another place in step 2 at {lines['W2']}. 1 more stretch of outputs went "
        "wrong there.",
        "element 0 of rank 1's output must be the sum of element 0 of ranks 0 and 1, and holds element 1 of ranks 0 "
        f"and 1 and lacks ranks 0 and 1; rank 1 stored it in step 2 at {lines['W2']}; what rank 0 brought was received "
        f"by rank 1 in step 1 at {lines['R1']} and left out of what it stored in step 2 at {lines['W2']}. 1 more "
        "stretch of outputs went wrong there.",
    ]


def test_a_wrong_offset_in_a_load_is_found_at_the_first_sum(tmp_path: Path) -> None:
    """Elements of different places are added: the step where that began is named."""
    wrong = ("tl.load(in_ptr + come[0]", "tl.load(in_ptr + (come[0] + 1) % count")
    faults, lines = only(tmp_path, wrong, case=on_ring(3, 3))
    assert [(f.rank, f.step, f.start, f.lines) for f in faults] == [
        (1, 1, 0, (lines["C"],)), (2, 1, 1, (lines["C"],)), (0, 1, 2, (lines["C"],)),
    ]  # fmt: skip
    assert faults[0].sentence == (
        "element 0 of rank 0's output must be the sum of element 0 of ranks 0-2, and holds element 1 of ranks 1 and 2 "
        f"and lacks ranks 1 and 2; rank 0 stored it in step 3 at {lines['W2']}; first wrong in step 1, where rank 1 "
        f"made element 0 of rank 0 and element 1 of rank 1 (tl.add at {lines['C']}). 2 more stretches of outputs went "
        "wrong there."
    )


def test_a_contribution_that_is_reduced_twice_is_found_where_it_first_happened(tmp_path: Path) -> None:
    """The first step that holds too much is named, not only the store at the end."""
    twice = (
        "                total = c.combine(tl, got, tl.load(in_ptr + come[0], shape=(come[1],)))  # C",
        "                x = tl.load(in_ptr + come[0], shape=(come[1],))\n"
        "                total = c.combine(tl, c.combine(tl, got, x), x)  # C",
    )
    (fault,), lines = only(tmp_path, twice, case=on_ring(3, 1))
    assert (fault.kind, fault.rank, fault.pe, fault.step, fault.start, fault.end) == (WRONG, 1, 0, 1, 0, 1)
    assert fault.lines == (lines["C"],)
    assert fault.sentence == (
        "element 0 of rank 0's output must be the sum of element 0 of ranks 0-2, and holds ranks 1 and 2 twice; rank 0 "
        f"stored it in step 3 at {lines['W2']}; first wrong in step 1, where rank 1 made element 0 of rank 0 and "
        f"element 0 of rank 1 twice (tl.add at {lines['C']}). 2 more stretches of outputs went wrong there."
    )


def test_a_missing_receive_is_named_with_the_message_that_is_left(tmp_path: Path) -> None:
    """Both are told: what was sent and never received, and the output that lacks it."""
    last = (
        "                tl.store(out_ptr + come[0], tl.recv((come[1],), c.dtype, left))  # W2",
        "                if rank != 1 or step != world - 2:\n"
        "                    tl.store(out_ptr + come[0], tl.recv((come[1],), c.dtype, left))  # W2",
    )
    (left, lacking), lines = only(tmp_path, last, case=on_ring(3, 1))
    assert (left.kind, left.rank, left.step, left.lines) == (WRONG, 0, 4, (lines["S2"],))
    assert left.sentence == (
        f"rank 1 never received what rank 0 sent it in step 4 at {lines['S2']} (element 0 of ranks 0-2)."
    )
    assert lacking.sentence == (
        "element 0 of rank 1's output must be the sum of element 0 of ranks 0-2, and lacks rank 2; rank 1 stored it in "
        f"step 1 at {lines['W1']}."
    )


def test_receives_before_sends_wait_in_a_cycle(tmp_path: Path) -> None:
    """The cycle is printed with what each rank waits for, and at which line."""
    send = "                tl.send(tl.load(out_ptr + go[0], shape=(go[1],)), right)  # S2\n"
    store = "                tl.store(out_ptr + come[0], tl.recv((come[1],), c.dtype, left))  # W2\n"
    swapped = (
        f"            if go:\n{send}            if come:\n{store}",
        f"            if come:\n{store}            if go:\n{send}",
    )
    (fault,), lines = only(tmp_path, swapped, case=on_ring(3, 3))
    at = lines["W2"]
    assert fault.kind == DEADLOCK
    assert fault.sentence == (
        f"3 PEs wait for ever, 3 of them for each other in a cycle: rank 0 at {at}, after step 2, waits for message 3 "
        f"(1 element) of rank 2; rank 2 at {at}, after step 2, waits for message 3 (1 element) of rank 1; rank 1 at "
        f"{at}, after step 2, waits for message 3 (1 element) of rank 0."
    )


def test_sending_all_tiles_before_receiving_any_fills_the_queues(tmp_path: Path) -> None:
    """With more tiles than slots every sender waits for a free slot: a cycle that only bounded queues have."""
    send = "                tl.send(tl.load(out_ptr + go[0], shape=(go[1],)), right)  # S2\n"
    loop = "        for go, come in pairs(tiles(rank + 1 - step), tiles(rank - step)):\n            if go:\n"
    all_first = (
        f"{loop}{send}            if come:\n",
        f"        for go in tiles(rank + 1 - step):\n{send[4:]}        for come in tiles(rank - step):\n"
        "            if come:\n",
    )
    assert only(tmp_path, all_first, case=on_ring(2, 2 * 4 * 4))[0] == []  # four tiles find room in four slots
    (fault,), lines = only(tmp_path, all_first, case=on_ring(2, 2 * 4 * 5))
    assert (fault.kind, fault.rank, fault.step, fault.lines) == (DEADLOCK, 0, 2, (lines["S2"],))
    assert fault.sentence == (
        f"2 PEs wait for ever, 2 of them for each other in a cycle: rank 0 at {lines['S2']} waits for a free slot at "
        "rank 1, to send its message 10 of step 2 (elements 36-39 of ranks 0 and 1); rank 1 at "
        f"{lines['S2']} waits for a free slot at rank 0, to send its message 10 of step 2 (elements 16-19 of ranks 0 "
        "and 1)."
    )
    algorithm, _ = ring(tmp_path, all_first)
    assert [fault.kind for fault in next(check(algorithm, Wanted([2]))).faults] == [DEADLOCK]  # the check gets there


@pytest.mark.parametrize(("n_pe", "sender"), [(1, "rank 0"), (2, "PE 0 of rank 0")])
def test_a_message_of_another_size_names_the_rank_that_sent_it(tmp_path: Path, n_pe: int, sender: str) -> None:
    """The kernel knows peers by their ranks, not by numbers of PEs."""
    wrong = ("got = tl.recv((come[1],)", "got = tl.recv((come[1] + 1,)")
    (fault, *_), _lines = only(tmp_path, wrong, case=on_ring(3, 6 * n_pe, n_pe))
    assert (fault.kind, fault.rank) == (RAISED, 1)
    assert f" must receive the 4 B of f16 (2,) that {sender} sent at " in fault.sentence
    assert ", not 6 B of f16 (3,); give a shape and dtype of as many bytes: a queue delivers" in fault.sentence


def test_a_wrong_offset_in_a_store_is_found(tmp_path: Path) -> None:
    """What was overwritten and what was never written are both told."""
    store = "tl.store(out_ptr + come[0]"
    wrong = (f"{store}, tl.recv", f"{store} + (rank == 2 and come[0] == 1), tl.recv")
    faults, lines = only(tmp_path, wrong, case=on_ring(3, 3))
    assert [fault.sentence for fault in faults] == [
        "element 1 of rank 2's output must be the sum of element 1 of ranks 0-2, and lacks rank 0; rank 2 stored it in "
        f"step 1 at {lines['W1']}; what rank 0 brought was received by rank 2 in step 4 at {lines['W2']} and stored in "
        f"another place in step 4 at {lines['W2']}. 1 more stretch of outputs went wrong there."
    ]


def test_two_pes_that_write_one_element_race(tmp_path: Path) -> None:
    """A proof for one order would say nothing about another, so that no message orders them is a fault."""
    wrong = ("tl.store(out_ptr + come[0], total)  # W1", "tl.store(out_ptr + come[0] - (pe == 1), total)  # W1")
    faults, lines = only(tmp_path, wrong, case=on_ring(2, 4, 2))
    assert faults[0].sentence == (
        f"PE 1 of rank 1 writes output of rank 1 at {lines['W1']} and PE 0 of rank 1 writes the same elements at "
        f"{lines['W2']}, and no message orders the two."
    )


def test_payload_may_not_be_computed_with(tmp_path: Path) -> None:
    """An op that no reduction is made of is named with its line."""
    finish = "c.finish(tl, total) if step == world - 2 else total  # F"
    (fault,), lines = only(tmp_path, (finish, "tl.exp(total)  # F"), case=on_ring(2, 1))
    assert (fault.kind, fault.lines) == (WRONG, (lines["F"],))
    assert fault.sentence == (
        f"rank 1 after step 1: tl.exp at {lines['F']} must not be done to payload, which may only be moved, cast and "
        "reduced by sum."
    )


def test_an_average_is_taken_once(tmp_path: Path) -> None:
    """Neither never, nor at every step."""
    finish = "c.finish(tl, total) if step == world - 2 else total  # F"
    average = ProofCase(network_of("ring", 3), 1, 1, "avg")
    (often,), lines = only(tmp_path, (finish, "c.finish(tl, total)  # F"), case=average)
    assert often.sentence == (
        f"rank 2 after step 2: tl.add at {lines['C']}: an average must not be reduced with what was not averaged; "
        "average once, at the end."
    )
    never, lines = only(tmp_path, (finish, "total  # F"), case=average)
    assert never[0].sentence == (
        "element 0 of rank 0's output must be the average of element 0 of ranks 0-2, and is not averaged; rank 0 "
        f"stored it in step 3 at {lines['W2']}."
    )


def test_what_a_kernel_raises_is_told_with_one_full_stop(tmp_path: Path) -> None:
    """Its own, where it has one."""
    raises = "total = (_ for _ in ()).throw(ValueError('must be 3.'))  # F"
    finish = "total = c.finish(tl, total) if step == world - 2 else total  # F"
    (fault, *_), lines = only(tmp_path, (finish, raises), case=on_ring(2, 1))
    assert fault.kind == RAISED
    assert fault.sentence.endswith(f" after step 1: {lines['F']}: ValueError: must be 3.")


def test_a_kernel_may_not_look_at_its_payload(tmp_path: Path) -> None:
    """A branch on data is refused: no proof could hold for all data."""
    finish = "total = c.finish(tl, total) if step == world - 2 else total  # F"
    (fault,), lines = only(tmp_path, (finish, "total = total if total[0] > 0 else got  # F"), case=on_ring(2, 1))
    assert (fault.kind, fault.lines) == (RAISED, (lines["F"],))
    assert fault.sentence == (
        f"rank 1 after step 1: an element at {lines['F']} must have data that is known while the kernel runs, and the "
        f"result of tl.add made at {lines['C']} exists only after it; branch on loaded data or on integers computed "
        "from it, or store the result and read it in the next launch. A proof holds for all data: the kernel of a "
        "collective must not look at its payload."
    )


# Every algorithm that is shipped ----------------------------------------------------------------------


SHIPPED = sorted(entry.name for entry in kernbench_algorithms())


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_algorithm_is_proved(plugins: Plugins, name: str) -> None:
    """For a few ranks: in every other case on its first network, in one on every other network."""
    (algorithm,) = Catalogue.of(plugins).open_all(name)
    first, *others = algorithm.topologies
    world = next(world for world in (3, 4) if algorithm.refuses(world, network_of(first, world)) is None)
    for case in list(cases(algorithm, network_of(first, world)))[::2]:
        proof, _ = prove_case(algorithm, case)
        assert [fault.sentence for fault in proof.faults] == [], case
    for other in others:
        network = network_of(other, 4)
        if algorithm.refuses(4, network) is None:
            proof, _ = prove_case(algorithm, next(cases(algorithm, network, counts=(9,))))
            assert [fault.sentence for fault in proof.faults] == [], other


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_algorithm_is_proved_for_2_to_17_ranks(plugins: Plugins, name: str) -> None:
    """All of them on every network, two of them by runs of that network's own; refusals are sentences."""
    (algorithm,) = Catalogue.of(plugins).open_all(name)
    for found in check(algorithm):
        assert [fault.sentence for fault in found.faults] == [], found.network
        assert any(ranks.proved for ranks in found.ranks), found.network
        assert all(ranks.refusal is None or ranks.refusal.endswith(".") for ranks in found.ranks)
        (own,) = check(algorithm, Wanted([4, 6], [found.network]))
        for here, there in zip(own.ranks, (r for r in found.ranks if r.world in (4, 6)), strict=True):
            assert (here.messages, here.steps, here.slots) == (there.messages, there.steps, there.slots)


# Names, networks and the command line -----------------------------------------------------------------


def test_algorithms_are_opened_by_path(plugins: Plugins, tmp_path: Path) -> None:
    """A path is taken wherever a name is; another collective than the one asked for is refused."""
    ring(tmp_path)
    path = str(tmp_path / "ring.py")
    assert Catalogue.of(plugins).open(path, "all_reduce").collective == "all_reduce"
    assert Catalogue.of(plugins).open(path, "all_reduce").name == path
    with pytest.raises(UsageError) as refused:
        Catalogue.of(plugins).open(path, "broadcast")
    assert str(refused.value) == f"algorithm {path!r} must do broadcast, not all_reduce; choose another."
    with pytest.raises(UsageError) as missing:
        read_file("no_such.py")
    assert str(missing.value) == "algorithm 'no_such.py' must be a Python file, and there is none; correct the path."


def test_an_unsupported_network_is_refused(tmp_path: Path) -> None:
    """Only the networks of TOPO_NAME_TO_KIND are checked."""
    algorithm, _ = ring(tmp_path)
    with pytest.raises(UsageError) as refused:
        next(check(algorithm, Wanted([2], ["switch"])))
    assert str(refused.value) == (
        f"topology of {tmp_path / 'ring.py'} must be one of ring, not 'switch'; choose one of these."
    )


def test_refused_numbers_of_ranks_are_told(tmp_path: Path) -> None:
    """What `refuses` says is kept, and is no fault."""
    refuses = 'def refuses(world, network):\n    return "not odd." if world % 2 else None\n\n\n'
    change = ("def kernel(", f"{refuses}def kernel(")
    algorithm, _ = ring(tmp_path, change)
    (found,) = check(algorithm, Wanted([2, 3]))
    assert found.ranks[1] == Ranks(3, refusal="not odd.")
    assert found.ranks[0].proved


def test_numbers_are_read() -> None:
    """Ranges and lists, each number once."""
    assert numbers().convert("2-4,8,3", None, None) == (2, 3, 4, 8)
    for wrong in ("", "0", "5-2", "a", "2-", "2,,3"):
        with pytest.raises(UsageError) as refused:
            numbers().convert(wrong, None, None)
        assert str(refused.value) == (
            "option the option must be numbers and ranges of numbers of at least 1, as '2-17' or '2,4,8', not "
            f"{wrong!r}."
        )


# What a few more cases find ----------------------------------------------------------------------------


@pytest.mark.parametrize("world", [3, 6, 12])
def test_a_dtype_of_another_size_is_tried(tmp_path: Path, world: int) -> None:
    """A kernel that names f16 itself is right for halves alone."""
    algorithm, _ = ring(tmp_path, ("c.dtype, left))  # W2", '"f16", left))  # W2'))
    (found,) = check(algorithm, Wanted([world]))
    assert {fault.case.dtype for fault in found.faults} == {"f32"}


@pytest.mark.parametrize("world", [3, 6, 12])
def test_a_root_in_the_middle_is_tried(tmp_path: Path, world: int) -> None:
    """A line from its first rank or its last is no broadcast from another."""
    (path := tmp_path / "line.py").write_text(
        "COLLECTIVE = 'broadcast'\nTOPO_NAME_TO_KIND = {'ring': 0}\n\n\n"
        "def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):\n"
        "    c, way = tl.collective, -1 if tl.collective.root else 1\n"
        "    first, last = (0, world - 1)[::way]\n"
        "    for at in range(0 if pe == 0 else count, count, c.tile):\n"
        "        n = min(c.tile, count - at)\n"
        "        x = tl.load(in_ptr + at, shape=(n,)) if rank == first else tl.recv((n,), c.dtype, rank - way)\n"
        "        if rank != last:\n"
        "            tl.send(x, rank + way)\n"
        "        tl.store(out_ptr + at, x)\n"
    )
    (found,) = check(read_file(path), Wanted([world]))
    assert {fault.case.root for fault in found.faults} == {world // 2}


def test_few_ranks_are_tried_with_many_elements(tmp_path: Path) -> None:
    """Of a kernel that another way is taken in above 4096 elements."""
    algorithm, _ = ring(tmp_path, ("tiles(rank - step - 1)", "tiles(rank - step - (1 if count <= 4096 else 2))"))
    (found,) = check(algorithm, Wanted([3]))
    assert {fault.case.count for fault in found.faults} == {4099}
