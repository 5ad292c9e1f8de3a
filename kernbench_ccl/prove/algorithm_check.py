"""`kernbench ccl check`: prove an algorithm for many numbers of ranks, on every network that it supports.

For each number of ranks it is run on counts that neither ranks nor PEs divide, that leave shares of both empty and that
take several tiles, with one PE and with several, in place and out of place, with every reduction, with the first, a
middle and the last rank as root, on elements of two bytes and of four, and step-synchronous; few ranks on a large
count, too. Queues hold one message: with more a network of named receives can only wait less. A plan sees to it that
they do, so what is proved holds whatever slots there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import evolve, field, frozen

from kernbench_ccl.catalogue import Algorithm
from kernbench_ccl.collectives import CollectiveKind
from kernbench_ccl.contract import Collective, Cost, Network
from kernbench_ccl.prove.proof import prove
from kernbench_ccl.prove.proof_case import DEADLOCK, ENDLESS, RAISED, Fault, Proof, ProofCase
from kernbench_ccl.prove.tried_cases import NOTHING, TriedCases
from kernbench_ccl.prove.verdict import OR_RAISE_IT
from kernbench_ccl.reductions import REDOPS
from kernbench_core.callsite import describe_site, site_of_traceback
from kernbench_core.errors import KernelError, UsageError
from kernbench_core.plugins import NetworkRegistry
from kernbench_core.process import Alarm, WallTimeExceeded
from kernbench_core.topology import NetworkFault
from kernbench_core.values.dtypes import itemsize

RANKS = range(2, 18)
"""The numbers of ranks that are proved by default."""

TILE = 4
"""Elements of a message. Nothing depends on how many they are, but how many tiles there are does."""

SLOTS = 4
"""The most slots of a queue that an algorithm may need: as many as pe_ipcq has by default."""

ORDERS = (1, 7, 11)
"""Further orders of running that are tried where `tl.recv_any` is used: see `Untimed`."""

_HELD = (4, 32)
"""Tiles that may be in a scratchpad at once: so few that an algorithm must work in rounds, and so many as usual."""

ReportNetwork = Callable[[str], None]
"""Is told the network of each case before it is proved."""

_FEW = 4
"""Ranks up to which three PEs each are tried; above it two."""

_WAYS = 4
"""PEs of a case of more than two or three."""

_LARGE = 4099
_LARGE_TILE = 1024
"""A count of many elements that few ranks are tried with, in few and larger messages, so that it costs little."""

_FORM_BYTES = (1 << 10, 1 << 26)
"""Sizes that a closed form is asked for."""

_WIDE = "f32"
"""A dtype of another size than that of most cases."""

_MANY = 8
"""Ranks above which fewer cases are tried: what goes wrong with many goes wrong with these."""

_MOST_FAULTS = 3
"""Faults of one number of ranks that are told."""


@frozen
class Ranks:
    """What was found for one number of ranks: proved where there are no faults and it was not refused.

    `steps` is the deepest step, `slots` the fewest that a queue needs, of a message each, `wall_s` seconds.
    """

    world: int
    cases: int = 0
    messages: int = 0
    steps: int = 0
    slots: int = 1
    wall_s: float = 0.0
    refusal: str | None = None
    faults: tuple[Fault, ...] = ()
    alike: str | None = None
    """The network whose runs these are: there no kernel asked which network it was on."""
    runs: int = 0
    """How many of the cases were run on this network."""
    tried: bool = True
    """Whether it was tried where it was not refused: not, when it did not end with another number or elsewhere."""
    scope: TriedCases = NOTHING
    """What its cases had."""

    @property
    def endless(self) -> bool:
        """Whether a kernel did not end."""
        return any(fault.kind == ENDLESS for fault in self.faults)

    @property
    def proved(self) -> bool:
        """Whether every case was proved."""
        return self.refusal is None and not self.faults


@frozen
class Checked:
    """What was found on one network."""

    algorithm: str
    collective: str
    network: str
    ranks: tuple[Ranks, ...]

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Everything that is wrong."""
        return tuple(fault for ranks in self.ranks for fault in ranks.faults)

    @property
    def wall_s(self) -> float:
        """Seconds that it took."""
        return sum(ranks.wall_s for ranks in self.ranks)


@frozen
class Wanted:
    """What is to be proved; None leaves the choice of PEs per rank and of element counts to the check.

    `timeout_s` is the most wall time of a case, in s; None for no limit.
    """

    ranks: Sequence[int] = field(default=RANKS)
    networks: Sequence[str] | None = None
    pes: int | None = None
    counts: Sequence[int] | None = None
    timeout_s: float | None = None
    registry: NetworkRegistry | None = field(default=None, eq=False)
    """Where the shapes of networks are found; None: in the installed plug-ins."""


def check(algorithm: Algorithm, wanted: Wanted | None = None) -> Iterator[Checked]:
    """Prove an algorithm, network by network; UsageError for a network that it does not support."""
    wanted = wanted or Wanted()
    names = networks_of(algorithm, wanted)
    found = [prove_ranks(algorithm, names, world, wanted) for world in wanted.ranks]
    yield from by_network(algorithm, names, found)


def networks_of(algorithm: Algorithm, wanted: Wanted) -> tuple[str, ...]:
    """Return the networks that are wanted; UsageError for one that the algorithm does not support."""
    names = tuple(algorithm.topologies if wanted.networks is None else wanted.networks)
    for name in names:
        if not algorithm.knows(name):
            known = ", ".join(algorithm.topologies)
            raise UsageError(f"topology of {algorithm.name} must be one of {known}, not {name!r}; choose one of these.")
    return names


def by_network(algorithm: Algorithm, names: Sequence[str], found: Iterable[Sequence[Ranks]]) -> list[Checked]:
    """Return what was found for each number of ranks, on each network, network by network."""
    rows = zip(*found, strict=True)
    return [
        Checked(algorithm.name, algorithm.collective, name, ranks) for name, ranks in zip(names, rows, strict=True)
    ]


def network_of(name: str, world: int, registry: NetworkRegistry | None = None) -> Network:
    """Return the network of `world` SIPs, as square as it can be; PluginError for a shape that is not usable."""
    return Network.alone(name, world, registry)


def network_or_refusal(
    algorithm: Algorithm, name: str, world: int, registry: NetworkRegistry | None = None
) -> Network | str:
    """Return the network of `world` SIPs, or the sentence why the algorithm does not run on it."""
    try:
        network = network_of(name, world, registry)
    except NetworkFault as fault:
        return f"{fault.key} {fault}"
    refusal = algorithm.own_refusal(world, network)
    return network if refusal is None else refusal


def prove_ranks(
    algorithm: Algorithm, names: Iterable[str], world: int, wanted: Wanted, report: ReportNetwork | None = None
) -> tuple[Ranks, ...]:
    """Prove an algorithm for one number of ranks on some networks; `report(name)` is told of each case before it.

    A case in which no kernel asked for the network is run on the first only: on the others it would do the same.
    """
    known: dict[ProofCase, tuple[str, Proof, int]] = {}
    found: list[Ranks] = []
    for name in names:
        stuck = next((ranks.faults[0].case.network.name for ranks in found if ranks.endless), None)
        if stuck is None:
            found.append(_on_network(algorithm, name, world, wanted, known, report))
        else:
            found.append(Ranks(world, refusal=f"it did not end on {stuck}.", tried=False))
    return tuple(found)


def _on_network(
    algorithm: Algorithm,
    name: str,
    world: int,
    wanted: Wanted,
    known: dict[ProofCase, tuple[str, Proof, int]],
    report: ReportNetwork | None,
) -> Ranks:
    """Prove an algorithm on one network; `known` has the cases that are proved for every network."""
    began = time.perf_counter()
    network = network_or_refusal(algorithm, name, world, wanted.registry)
    if isinstance(network, str):
        return Ranks(world, refusal=network)
    messages = steps = 0
    slots, chose = 1, False
    homes: list[str] = []
    done: list[ProofCase] = []
    faults: tuple[Fault, ...] = ()
    for case in cases(algorithm, network, wanted.pes, wanted.counts):
        if report is not None:
            report(name)
        anywhere = evolve(case, network=Network("", world, world))
        home, proof, needed = known.get(anywhere) or (name, *prove_in_time(algorithm, case, wanted.timeout_s))
        if proof.any_network:
            known[anywhere] = home, proof, needed
        homes.append(home)
        done.append(case)
        chose = chose or proof.chose
        messages += proof.messages
        steps, slots = max(steps, proof.steps), max(slots, needed)
        if proof.faults:
            faults = tuple(_on(fault, network) for fault in proof.faults[:_MOST_FAULTS])
            break
    faults = faults or _faults_of_form(algorithm, network)
    alike = homes[0] if name not in homes and len(set(homes)) == 1 else None
    wall_s = time.perf_counter() - began
    scope = evolve(TriedCases.of(algorithm.kind, done), some_orders=chose)
    return Ranks(
        world, len(done), messages, steps, slots, wall_s, None, faults, alike, homes.count(name), scope=scope
    )


def _faults_of_form(algorithm: Algorithm, network: Network) -> tuple[Fault, ...]:
    """Return what is wrong with an algorithm's closed form, which the table would end with, of small and large sizes.

    Whether its times are right is nothing that a run without time says.
    """
    base = ProofCase(network, max(1, algorithm.ways), 1, "sum" if algorithm.kind.reduces else None)
    for nbytes in _FORM_BYTES:
        for pipeline in (True, False):
            case = evolve(base, count=nbytes // itemsize(base.dtype), pipeline=pipeline)
            try:
                algorithm.closed_form(
                    Cost(network.world, nbytes, 100.0, 500.0, network, pipeline, 16384.0, 0.0, case.n_pe)
                )
            except KernelError as error:
                told = str(error).partition("\n")[0]
                return (Fault(RAISED, case, None, None, 0, None, None, (), told),)
    return ()


def _on(fault: Fault, network: Network) -> Fault:
    """Return a fault as it is on a network."""
    named = evolve(network, machine=None)  # faults come from other processes, whose shapes stay there
    return evolve(fault, case=evolve(fault.case, network=named))


def prove_in_time(algorithm: Algorithm, case: ProofCase, timeout_s: float | None) -> tuple[Proof, int]:
    """Prove one case within a wall time, in s; a fault where that is over, also where a kernel swallowed it."""
    found = None
    try:
        with Alarm(timeout_s):
            found = prove_case(algorithm, case)
    except WallTimeExceeded as stuck:
        if found is not None and any(fault.kind == ENDLESS for fault in found[0].faults):
            return found
        line = stuck.swallowed_in or describe_site(site_of_traceback(stuck.__traceback__))
        told = f"the case must end within the wall time of --timeout, and is still in {line}; {OR_RAISE_IT}"
        return Proof(case, (Fault(ENDLESS, case, None, None, 0, None, None, (line,), told),), 0, 0), case.slots
    return found


def prove_case(algorithm: Algorithm, case: ProofCase) -> tuple[Proof, int]:
    """Prove one case with as few slots, of a message each, as it needs, up to `SLOTS`, and return the proof with them.

    Where a kernel receives from whoever is first, further orders are tried, with few slots and with many.
    """
    collective = collective_of_case(algorithm, case)
    slots = case.slots
    proof = prove(algorithm, collective, case)
    anywhere = proof.any_network
    while slots < SLOTS and any(fault.kind == DEADLOCK for fault in proof.faults):
        slots += 1
        proof = prove(algorithm, collective, evolve(case, slots=slots))
        anywhere = anywhere and proof.any_network
    if proof.chose:
        for order in ORDERS:
            for number in (slots, SLOTS):
                if not proof.faults:
                    proof = prove(algorithm, collective, evolve(case, slots=number, order=order))
                    anywhere = anywhere and proof.any_network
    return evolve(proof, any_network=anywhere), slots


def collective_of_case(algorithm: Algorithm, case: ProofCase) -> Collective:
    """Return what the kernel finds in `tl.collective`."""
    return Collective(
        algorithm.kind,
        dtype=case.dtype,
        network=case.network,
        group=tuple(range(case.world)),
        redop=case.redop,
        root=case.root,
        counts=case.counts,
        tile=case.tile,
        pipeline=case.pipeline,
        algorithm=algorithm.name,
        contributors=case.contributors,
        vectors=case.n_pe if case.contributors == "pe" else 1,
        cubes=case.cubes,
        held_bytes=case.held * case.tile * itemsize(case.dtype),
    )


def cases(
    algorithm: Algorithm, network: Network, pes: int | None = None, counts: Sequence[int] | None = None
) -> Iterator[ProofCase]:
    """Yield the cases of one number of ranks; `pes` and `counts` say how many PEs and elements, if they are given."""
    kind, world = algorithm.kind, network.world
    redop = "sum" if kind.reduces else None
    last, middle = (world - 1, world // 2) if kind.rooted else (0, 0)
    base = ProofCase(network, pes or 1, 1, redop, tile=TILE)
    if kind.barrier:
        yield from (evolve(base, n_pe=n_pe) for n_pe in _numbers(pes, (1, 3, _WAYS)))
        return
    several = 3 if world <= _FEW else 2
    deep = _deep(algorithm, world)
    if counts is not None:
        chosen = [(n_pe, count) for count in counts for n_pe in _numbers(pes, (1, several))]
    elif world <= _MANY:
        chosen = [(1, 1), (several, world * several - 1), (1, deep + 1), (several, several * deep // 2 + 3)]
    else:
        odd = world + 1 + world % 2  # which neither the ranks nor two PEs divide
        chosen = [(1, 1), (several, odd), (1, deep // 3 * 2 + 1)]
    if "pe" in algorithm.contributors:
        yield from _of_pes(base, pes, several, [count for _, count in chosen])
    if "sip" not in algorithm.contributors:
        return
    for number, (n_pe, count) in enumerate(chosen):
        step_by_step = world > _MANY and number == 2 and world % 2 == 0
        root, dtype = (middle, _WIDE) if number == 2 else (last if number % 2 else 0, base.dtype)
        case = evolve(base, n_pe=pes or n_pe, count=count, root=root, pipeline=not step_by_step, dtype=dtype)
        yield evolve(case, held=_HELD[number == 1])
        if kind.in_place and (world <= _MANY or number == 1):
            yield evolve(case, in_place=True, root=last - case.root)
        if world <= _MANY and (number in (1, 2) or len(chosen) < 3):
            yield evolve(case, pipeline=False, root=last - case.root, in_place=kind.in_place and number == 1)
    if counts is None:
        yield evolve(base, n_pe=pes or several, count=1)  # most PEs have nothing to do
        yield evolve(base, n_pe=pes or max(_WAYS, algorithm.ways), count=2 * world + 3, dtype=_WIDE, root=middle)
    if counts is None and world <= _FEW:
        yield evolve(base, n_pe=pes or 1, count=_LARGE, tile=_LARGE_TILE)
    if redop is not None:
        count = chosen[0][1] if counts else world + 1 + world % 2
        base = evolve(base, count=count)
        yield from _of_redops(base, pes or several, pes or 1, [other for other in REDOPS if other != redop], last, kind)
    if kind.takes_counts and counts is None:
        base = evolve(base, counts=(splits := uneven(world)), count=max(map(max, splits)))
        yield from (evolve(base, n_pe=pes or n, pipeline=n == 1) for n in (1, several))


def _of_redops(
    base: ProofCase, several: int, one: int, redops: Sequence[str], last: int, kind: CollectiveKind
) -> Iterator[ProofCase]:
    """Yield cases of reductions, each out of place and in place, pipelined and not, with several PEs and with one."""
    for number, redop in enumerate(redops):
        first = evolve(base, redop=redop, n_pe=several, pipeline=number % 2 == 0, root=last)
        yield first
        yield evolve(first, n_pe=one, pipeline=not first.pipeline, in_place=kind.in_place, root=0)


def _of_pes(base: ProofCase, pes: int | None, several: int, counts: Sequence[int]) -> Iterator[ProofCase]:
    """Yield cases in which every PE brings a vector of its own, on SIPs of one cube and of several."""
    every = evolve(base, contributors="pe")
    for number, count in enumerate(counts):
        yield evolve(every, n_pe=pes or (several, 1)[number % 2], count=count, in_place=number % 2 == 1)
    yield evolve(every, n_pe=pes or several, count=several + 1, pipeline=False)
    yield evolve(every, n_pe=pes or several, count=2, redop="avg", dtype=_WIDE)
    yield from (evolve(every, n_pe=pes or several, count=several + 1, redop=redop) for redop in ("max", "product"))
    if pes is None:
        for number, cubes in enumerate(((2, 1), (2, 2), (1, 3))):
            n_pe = (1 + number % 2) * cubes[0] * cubes[1]
            redop = "avg" if number else base.redop
            yield evolve(every, n_pe=n_pe, cubes=cubes, count=2 * n_pe + 1, in_place=number == 1, redop=redop)


def _deep(algorithm: Algorithm, world: int) -> int:
    """Return a count of which every rank's share takes more tiles than a queue has slots; of many ranks, three."""
    share = TILE * (SLOTS + 2 if world <= _FEW else SLOTS + 1 if world <= _MANY else 3)
    return share if algorithm.kind.size_count(1, world) > 1 else share * world


def _numbers(given: int | None, otherwise: Sequence[int]) -> Sequence[int]:
    return otherwise if given is None else (given,)


def uneven(world: int) -> tuple[tuple[int, ...], ...]:
    """Return splits of an all_to_all of which none is like another: from none to several tiles of elements.

    The first rank and the last one send each other more tiles than a queue has slots.
    """
    many = TILE * (SLOTS + 1)
    return tuple(
        tuple((3 * i + 5 * j + i * j) % 7 + many * ({i, j} == {0, world - 1}) for j in range(world))
        for i in range(world)
    )
