"""The checks of an algorithm by proof: its own kernel on symbolic data, for all data at once.

What goes wrong with the plain calls is told by the check for it. A check of other calls, as of those in place, leaves
out numbers of ranks with which the plain ones go wrong already.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import evolve

from kernbench_ccl.contract import Network
from kernbench_ccl.prove.algorithm_check import SLOTS, TILE, uneven
from kernbench_ccl.prove.proof_case import (
    CHANGED,
    DEADLOCK,
    ENDLESS,
    LOST,
    RACE,
    SURPLUS,
    UNHEARD,
    UNRECEIVED,
    Fault,
    ProofCase,
)
from kernbench_ccl.reductions import REDOPS
from kernbench_ccl.testing.algorithm_under_test import AlgorithmUnderTest
from kernbench_core.testing import CheckFailed, NotApplicable

#: Up to so many ranks more tiles are sent than a queue has slots.
_FEW = 4
#: The numbers of ranks that other than plain calls are tried with, where it takes them.
_SOME = (2, 3, 4, 5, 6, 7)
#: The number of ranks that plain calls of more PEs are made with, and of how many.
_WIDE, _PES = 3, 4


def refuses_in_words(under_test: AlgorithmUnderTest) -> None:
    """Numbers of ranks and networks that it does not take are refused in a whole sentence that says what must be."""
    said = [
        (world, name, found)
        for world in under_test.ranks
        for name in under_test.algorithm.topologies
        if isinstance(found := under_test.network(name, world), str)
    ]
    if not said:
        raise NotApplicable("it takes every number of ranks on each of its networks")
    for world, name, sentence in said:
        if "must" not in sentence or not sentence.rstrip().endswith("."):
            raise CheckFailed(
                f"what it says of {world} ranks on {name} must be a sentence with 'must' and a full stop, not "
                f"{sentence!r}"
            )


def never_waits_for_ever(under_test: AlgorithmUnderTest) -> None:
    """With no number of ranks do kernels wait for each other in a cycle, or run without an end."""
    _fail(under_test, (fault for fault in _plain(under_test) if fault.kind in (DEADLOCK, ENDLESS)))


def does_only_what_it_may(under_test: AlgorithmUnderTest) -> None:
    """Its kernel raises nothing, and neither looks at payload nor computes with it other than the call asks for."""
    told = (DEADLOCK, ENDLESS)
    _fail(under_test, (fault for fault in _plain(under_test) if fault.kind not in told and not fault.about))


def loses_no_contribution(under_test: AlgorithmUnderTest) -> None:
    """Every rank ends with everything that it must have."""
    _fail(under_test, (fault for fault in _plain(under_test) if LOST in fault.about))


def counts_nothing_twice(under_test: AlgorithmUnderTest) -> None:
    """No rank ends with a contribution more often than once, or with one that does not belong there."""
    _fail(under_test, (fault for fault in _plain(under_test) if SURPLUS in fault.about))


def receives_all_that_is_sent(under_test: AlgorithmUnderTest) -> None:
    """No message is left over in a queue, where the next call would take it for its own."""
    _fail(under_test, (fault for fault in _plain(under_test) if UNRECEIVED in fault.about))


def orders_its_uses_of_memory(under_test: AlgorithmUnderTest) -> None:
    """Where PEs use the same memory a message orders them: there is no hazard."""
    _fail(under_test, (fault for fault in _plain(under_test) if RACE in fault.about))


def leaves_inputs_alone(under_test: AlgorithmUnderTest) -> None:
    """Out of place the inputs are in the end what they were."""
    _fail(under_test, (fault for fault in _plain(under_test) if CHANGED in fault.about))


def waits_for_everyone(under_test: AlgorithmUnderTest) -> None:
    """No rank leaves a barrier before every other has come."""
    if not under_test.algorithm.kind.barrier:
        raise NotApplicable("it is no barrier")
    _fail(under_test, (fault for fault in _plain(under_test) if UNHEARD in fault.about))


def takes_any_count(under_test: AlgorithmUnderTest) -> None:
    """Counts that ranks and PEs do not divide, of one element too, come out as right as others."""
    if under_test.algorithm.kind.barrier:
        raise NotApplicable("it moves no data")
    _try(under_test, (case for world in under_test.chosen(*_SOME) for case in _odd_counts(under_test, world)))


def works_in_place(under_test: AlgorithmUnderTest) -> None:
    """Where input and output share memory every rank ends with the same as elsewhere."""
    if not under_test.algorithm.kind.in_place:
        raise NotApplicable(f"there is no {under_test.algorithm.collective} in place")
    cases = [case for world in under_test.chosen(*_SOME) for case in _base(under_test, world)]
    _try(under_test, (evolve(case, in_place=True) for case in cases))


def works_step_by_step(under_test: AlgorithmUnderTest) -> None:
    """Without `pipeline` it does the same, only later."""
    if under_test.algorithm.kind.barrier:
        raise NotApplicable("it has no steps of data")
    cases = [case for world in under_test.chosen(*_SOME) for case in _base(under_test, world) if case.n_pe > 1]
    _try(under_test, (evolve(case, pipeline=False) for case in cases))


def does_every_reduction(under_test: AlgorithmUnderTest) -> None:
    """Averages, products, least and greatest elements come out as sums do."""
    if not under_test.algorithm.kind.reduces:
        raise NotApplicable(f"{under_test.algorithm.collective} reduces nothing")
    cases = [_base(under_test, world)[-1] for world in under_test.chosen(3, 4, 5, 6)]
    _try(under_test, (evolve(case, redop=redop) for case in cases for redop in REDOPS[1:]))


def takes_any_root(under_test: AlgorithmUnderTest) -> None:
    """Whichever rank is the root, it does the same."""
    if not under_test.algorithm.kind.rooted:
        raise NotApplicable(f"{under_test.algorithm.collective} has no root")
    cases = [_base(under_test, world)[-1] for world in under_test.chosen(2, 3, 5, 6)]
    _try(under_test, (evolve(case, root=root) for case in cases for root in range(1, case.world)))


def takes_uneven_splits(under_test: AlgorithmUnderTest) -> None:
    """Ranks may send each other different numbers of elements, none too."""
    if not under_test.algorithm.kind.takes_counts:
        raise NotApplicable(f"{under_test.algorithm.collective} has no uneven splits")
    cases = [case for world in under_test.chosen(*_SOME) for case in _base(under_test, world)]
    _try(under_test, (evolve(case, counts=uneven(case.world), count=6) for case in cases))


def runs_on_each_of_its_networks(under_test: AlgorithmUnderTest) -> None:
    """On every network that it names, and on those of plug-ins where it takes any other, it does the same."""
    named = under_test.algorithm.topologies
    anywhere = () if under_test.algorithm.elsewhere is None else tuple(under_test.plugins.networks)
    others = [
        evolve(case, network=network)
        for world in under_test.chosen(4, 6, 8, 9)
        for name in dict.fromkeys((*named, *anywhere))
        if isinstance(network := under_test.network(name, world), Network) and network != under_test.homes[world]
        for case in _base(under_test, world)
    ]
    if not others:
        raise NotApplicable("it names one network alone")
    _try(under_test, others)


# Calls ----------------------------------------------------------------------------------------------


def _base(under_test: AlgorithmUnderTest, world: int) -> tuple[ProofCase, ...]:
    """Return plain calls: whole tiles for every rank, of one PE and of several, out of place, pipelined, root 0."""
    algorithm = under_test.algorithm
    kind = algorithm.kind
    case = ProofCase(under_test.homes[world], 1, 1, "sum" if kind.reduces else None, tile=TILE)
    if kind.barrier:
        return case, evolve(case, n_pe=2)
    case = evolve(case, contributors=algorithm.contributors[0])
    parts = 1 if kind.size_count(1, world) > 1 else world
    tiles = SLOTS + 2 if world <= _FEW else 2
    return evolve(case, count=parts * tiles * TILE), evolve(case, n_pe=2, count=parts * 2 * TILE)


def _odd_counts(under_test: AlgorithmUnderTest, world: int) -> Iterator[ProofCase]:
    """Yield calls of counts that do not divide: one element, one less than one for each PE, and many."""
    one, more = _base(under_test, world)
    yield evolve(one, count=1)
    yield evolve(more, count=world * more.n_pe - 1)
    yield evolve(more, count=more.count // 2 * 3 + 1)


def _plain(under_test: AlgorithmUnderTest) -> Iterator[Fault]:
    """Yield the faults of plain calls, by numbers of ranks."""
    for world in under_test.homes:
        for fault in _faults_of(under_test, world):
            yield fault
            if fault.kind == ENDLESS:
                return


def _faults_of(under_test: AlgorithmUnderTest, world: int) -> Iterator[Fault]:
    calls = _base(under_test, world)
    if (world,) == under_test.chosen(_WIDE):
        few, times = calls[-1], 1 if under_test.algorithm.kind.barrier else _PES // calls[-1].n_pe
        calls += (evolve(few, n_pe=_PES, count=few.count * times),)
    for case in calls:
        yield from under_test.proof(case).faults


def _try(under_test: AlgorithmUnderTest, cases: Iterable[ProofCase]) -> None:
    """Prove calls, but for numbers of ranks with which plain ones go wrong already; raise CheckFailed for a fault."""
    tried = False
    for case in cases:
        if next(_faults_of(under_test, case.world), None) is None:
            tried = True
            _fail(under_test, under_test.proof(case).faults)
    if not tried:
        raise NotApplicable("a plain call goes wrong already")


def _fail(under_test: AlgorithmUnderTest, faults: Iterable[Fault]) -> None:
    """Raise CheckFailed for the first of some faults, and say how many there are; files are named without folder."""
    found, folder = list(faults), f"{Path(under_test.algorithm.file).parent}{os.sep}"
    if found:
        more = f" There {'is' if len(found) == 2 else 'are'} {len(found) - 1} more like it." if len(found) > 1 else ""
        raise CheckFailed(f"with {found[0].case}: {found[0].sentence.replace(folder, '')}{more}")
