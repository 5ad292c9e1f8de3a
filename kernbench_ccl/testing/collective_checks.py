"""The checks of a collective: what its record says, in itself, against numpy, and of the algorithms that do it."""

from __future__ import annotations

from importlib import resources
from typing import Final

import click
import numpy as np
from attrs import evolve, frozen

import kernbench_ccl.distributed as dist
from kernbench_ccl.catalogue import Algorithm, Catalogue
from kernbench_ccl.catalogue.checked_answers import call_faults, checked, field_faults
from kernbench_ccl.cli import ccl
from kernbench_ccl.collectives import CallShape, CollectiveKind, right_outputs
from kernbench_ccl.contract import Network
from kernbench_ccl.distributed.torch_names import REFUSED
from kernbench_ccl.measure.bounds import Link, RankLinks, lower_bound
from kernbench_ccl.measure.machine import Setup
from kernbench_ccl.plugin import COLLECTIVES
from kernbench_ccl.prove.algorithm_check import TILE, network_or_refusal, prove_in_time
from kernbench_ccl.prove.proof_case import ProofCase
from kernbench_ccl.reductions import REDOPS
from kernbench_ccl.testing.algorithm_under_test import TIMEOUT_S, TOPOLOGY
from kernbench_ccl.testing.numpy_definitions import defined
from kernbench_ccl.testing.rank_calls import COUNT, NoFunction, brought, group_fault
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import PluginError
from kernbench_core.plugins import Plugins
from kernbench_core.testing import CheckFailed, NotApplicable
from kernbench_core.values import Array

RANKS: Final = range(2, 10)
"""The numbers of ranks of the calls that a record is asked about."""

_COUNTS: Final = (1, 6)


@frozen
class CollectiveUnderTest:
    """A collective: its record, what it does in a sentence, and the plug-ins that it is registered with."""

    kind: CollectiveKind
    sentence: str
    plugins: Plugins

    @classmethod
    def of(cls, plugins: Plugins, name: str) -> CollectiveUnderTest:
        """Open a registered collective; raise the sentence that says why that cannot be."""
        collectives = Catalogue.of(plugins).collectives
        return cls(collectives[name], plugins.of(COLLECTIVES)[name].sentence, plugins)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.kind.name

    def calls(self) -> list[CallShape]:
        """Return the calls that its record is asked about."""
        redop = "sum" if self.kind.reduces else None
        return [
            CallShape(world, count, redop, root)
            for world in RANKS
            for count in _COUNTS
            for root in (range(world) if self.kind.rooted else (0,))
        ]

    def algorithms(self) -> list[Algorithm]:
        """Return the registered algorithms that do it; NotApplicable where there is none."""
        catalogue = Catalogue.of(self.plugins)
        found = [catalogue.open(name, self.name) for name in catalogue.methods_of(self.name).values()]
        if not found:
            raise NotApplicable("nobody registered an algorithm for it")
        return found


def states_itself_completely(under_test: CollectiveUnderTest) -> None:
    """Its record has all that it must have, a sentence, a factor of bus bandwidth, and the template that it names."""
    kind = under_test.kind
    name, spelling = (text.rpartition(":")[2] for text in (kind.name, kind.spelling))  # as its plug-in has it
    for fault in field_faults(evolve(kind, name=name, spelling=spelling)):
        raise CheckFailed(f"its record {fault}")
    if not under_test.sentence.endswith("."):
        raise CheckFailed(f"its entry must say in a sentence what it does, not {under_test.sentence!r}")
    if kind.function in (*dist.__all__, *REFUSED):
        raise CheckFailed(f"its function must have a name that torch.distributed has not, not {kind.function!r}")
    for world in RANKS:
        factor = kind.factor(world)
        if not 0 < factor <= 2 * world:
            raise CheckFailed(f"bus bandwidth of {world} ranks must be more than 0 times the algorithm's, not {factor}")
    package, _, file = kind.template.partition(":")
    if package and "my_algorithm" not in (resources.files(package) / file).read_text("utf-8"):
        raise CheckFailed(f"its template {kind.template!r} must have a kernel called my_algorithm")


def says_who_ends_with_what(under_test: CollectiveUnderTest) -> None:
    """For every call its pieces are of elements that ranks bring, reduced where it reduces, each rank counted once."""
    kind = checked(under_test.kind, lambda told: PluginError(f"its record {told}"))
    try:
        for fault in call_faults(kind):
            raise CheckFailed(f"its record {fault}")
        _ask(under_test, kind)
    except PluginError as fault:
        raise CheckFailed(str(fault).partition("\n")[0]) from None
    if kind.reduces and not any(_reduced(kind, call) for call in under_test.calls()):
        raise CheckFailed("some rank must end with a reduction, as it says that it reduces")


def _ask(under_test: CollectiveUnderTest, kind: CollectiveKind) -> None:
    """Ask a checked record about every rank of every call, twice."""
    for call in under_test.calls():
        for rank in range(call.world):
            kind.brings(call, rank)
            if list(under_test.kind.ends(call, rank) or ()) != list(kind.ends(call, rank) or ()):
                where = f"rank {rank} of {call.world}, count {call.count}, root {call.root}"
                raise CheckFailed(f"the output of {where} must be said in the same pieces each time")


def treats_roots_alike(under_test: CollectiveUnderTest) -> None:
    """What the root brings and ends with is as much whichever rank is the root, and so is what others do."""
    kind = under_test.kind
    if not kind.rooted:
        raise NotApplicable("it has no root")
    for call in under_test.calls():
        first = CallShape(call.world, call.count, call.redop)
        for rank in range(call.world):
            as_first = 0 if rank == call.root else 1
            found, right = _sizes(kind, call, rank), _sizes(kind, first, as_first)
            if found != right:
                must = f"must bring and end with {right[0]} and {right[1]} elements where rank {call.root} is the root"
                raise CheckFailed(
                    f"rank {rank} of {call.world} {must}, as where rank 0 is, not {found[0]} and {found[1]}"
                )


def agrees_with_numpy(under_test: CollectiveUnderTest) -> None:
    """What the record says that ranks end with is what numpy makes of what they bring, with every reduction."""
    kind = under_test.kind
    for world in (2, 3, 5):
        for redop in REDOPS if kind.reduces else (None,):
            call = CallShape(world, COUNT, redop, world - 1 if kind.rooted else 0)
            inputs = [_numbers(kind, call, rank) for rank in range(world)]
            found, right = right_outputs(kind, call, inputs), defined(kind, call, inputs)
            for rank, (is_there, must_be) in enumerate(zip(found, right, strict=True)):
                _compare(f"rank {rank} of {world}{f', {redop}' if redop else ''}", is_there, must_be)


def bounds_what_must_move(under_test: CollectiveUnderTest) -> None:
    """The lower bound of the traffic that it states is not below the one that follows from who ends with what."""
    kind = under_test.kind
    if kind.traffic is None:
        raise NotApplicable("it states none: bounds follow from who ends with what")
    plain = evolve(kind, traffic=None)
    for world in RANKS:
        for name, links in (("ring", _ring(world)), ("fully_connected", _full(world))):
            stated, derived = (lower_bound(each, RankLinks(world, links), 1 << 20) for each in (kind, plain))
            if stated.ns < derived.ns * (1 - 1e-9):
                must = f"must take at least {derived.ns:.6g} ns ({derived.reason}), as follows from who ends with what"
                raise CheckFailed(
                    f"with {world} ranks on {name} 1 MiB {must}, not {stated.ns:.6g} ns ({stated.reason})"
                )


def has_its_command(under_test: CollectiveUnderTest) -> None:
    """`kernbench ccl` has a command of its name, which tells what it does."""
    if under_test.kind.barrier:
        raise NotApplicable("a barrier has no sizes to time")
    context = click.Context(ccl, obj=Shell(under_test.plugins))
    command = ccl.get_command(context, under_test.kind.command)
    if command is None or under_test.sentence not in (command.help or ""):
        raise CheckFailed(f"kernbench ccl must have a command {under_test.kind.command!r} that says what it does")


def is_called_by_ranks(under_test: CollectiveUnderTest) -> None:
    """Ranks of a bench that call it by `dist` end with what numpy has."""
    under_test.algorithms()
    if TOPOLOGY not in under_test.plugins.topologies:
        raise NotApplicable(f"no plug-in that is loaded has the preset {TOPOLOGY!r}, which it is run on")
    kind = under_test.kind
    call = CallShape(3, COUNT, "sum" if kind.reduces else None)
    inputs = [np.zeros(0, np.float32) if each is None else each for each in brought(kind, 3)]
    setup = Setup(TOPOLOGY, None, ("system.sips=3",))
    try:
        fault = group_fault(under_test.plugins, setup, kind, range(3), "auto", defined(kind, call, inputs))
    except NoFunction as why:
        raise NotApplicable(str(why)) from None
    if fault is not None:
        raise CheckFailed(f"with 3 ranks: {fault}")


def agrees_with_its_algorithms(under_test: CollectiveUnderTest) -> None:
    """Every algorithm that is registered for it ends with what the record says, as far as one proof tells."""
    kind = under_test.kind
    tried = False
    for algorithm in under_test.algorithms():
        for world in (2, 3, 4):
            names, shapes = algorithm.topologies, under_test.plugins.networks
            found = (network_or_refusal(algorithm, name, world, shapes) for name in names)
            network = next((each for each in found if isinstance(each, Network)), None)
            if network is None:
                continue
            tried = True
            case = ProofCase(
                network, 1, 1 if kind.barrier else TILE * world, "sum" if kind.reduces else None,
                contributors=algorithm.contributors[0], root=world - 1 if kind.rooted else 0,
            )  # fmt: skip
            proof, _ = prove_in_time(evolve(algorithm, kind=kind), case, TIMEOUT_S)
            if proof.faults:
                raise CheckFailed(f"{algorithm.name} with {case}: {proof.faults[0].sentence}")
    if not tried:
        raise NotApplicable("its algorithms take other numbers of ranks than 2, 3 and 4")


CHECKS: Final = (
    states_itself_completely,
    says_who_ends_with_what,
    treats_roots_alike,
    agrees_with_numpy,
    bounds_what_must_move,
    has_its_command,
    is_called_by_ranks,
    agrees_with_its_algorithms,
)
"""The checks in their order."""


def _reduced(kind: CollectiveKind, call: CallShape) -> bool:
    return any(piece.reduced for rank in range(call.world) for piece in kind.ends(call, rank) or ())


def _sizes(kind: CollectiveKind, call: CallShape, rank: int) -> tuple[int, int]:
    return kind.in_count(call, rank), kind.out_count(call, rank)


def _numbers(kind: CollectiveKind, call: CallShape, rank: int) -> Array:
    """Return what a rank brings: small integers of f32 whose reductions are exact."""
    return (np.arange(kind.in_count(call, rank)) * (rank + 1) % 5 + rank).astype(np.float32)


def _compare(who: str, found: Array | None, right: Array | None) -> None:
    if found is None or right is None:
        if found is not right:
            raise CheckFailed(f"{who} must end with {'nothing' if right is None else 'an output'}, and does not")
    elif found.shape != right.shape:
        raise CheckFailed(f"{who} must end with {len(right)} elements, not {len(found)}")
    elif not (near := np.isclose(found, right, rtol=1e-6, atol=0)).all():
        at = int(np.argmin(near))
        raise CheckFailed(f"{who} must end with {right[at]} as element {at}, not {found[at]}")


def _ring(world: int) -> tuple[Link, ...]:
    pairs = {(a, b) for rank in range(world) for a, b in ((rank, (rank + 1) % world), ((rank + 1) % world, rank))}
    return tuple(Link(a, b, 100.0, 500.0) for a, b in sorted(pairs))


def _full(world: int) -> tuple[Link, ...]:
    return tuple(Link(a, b, 100.0, 500.0) for a in range(world) for b in range(world) if a != b)
