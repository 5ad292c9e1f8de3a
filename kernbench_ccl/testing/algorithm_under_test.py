"""An algorithm that is checked: the ranks and networks that it takes, its proofs and its timed runs, each done once."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, evolve, field

from kernbench_ccl.catalogue import Algorithm, Catalogue
from kernbench_ccl.contract import Network
from kernbench_ccl.measure.machine import Setup, TimedMachine, machine_of
from kernbench_ccl.measure.measurement import measure
from kernbench_ccl.measure.sweep import size_of
from kernbench_ccl.measure.table import Measured
from kernbench_ccl.measure.timed_run import TimedCase
from kernbench_ccl.plan import load_ccl
from kernbench_ccl.prove.algorithm_check import network_or_refusal, prove_in_time
from kernbench_ccl.prove.proof_case import ENDLESS, Proof, ProofCase
from kernbench_core.engine import Limits
from kernbench_core.plugins import Plugins
from kernbench_core.testing import CheckFailed, NotApplicable

RANKS = tuple(range(2, 10))
"""The numbers of ranks that are tried: odd ones, primes, powers of two."""

MORE_RANKS = range(10, 65)
"""Where others are looked for, of an algorithm that takes none of these."""

TOPOLOGY = "tiny"
"""The preset whose packages are the ranks of timed runs."""

TIMEOUT_S = 10.0
"""The most wall time of a proof, and of a timed run, in s."""

LIMITS = Limits(2_000_000, None, TIMEOUT_S)
"""When a timed run is ended."""


@define(eq=False)
class AlgorithmUnderTest:
    """An algorithm with the plug-ins that it is registered with; `ranks` are the numbers that are to be tried.

    `homes` has, for each of them that it takes, the first of its networks that it takes them on; `logs` by hash seed
    what identifies the logs of two calls.
    """

    algorithm: Algorithm
    plugins: Plugins
    ranks: Sequence[int] = RANKS
    logs: dict[int, tuple[str, str]] = field(factory=dict, init=False)
    _networks: dict[tuple[str, int], Network | str] = field(factory=dict, init=False)
    _proofs: dict[ProofCase, Proof] = field(factory=dict, init=False)
    _machines: dict[Setup, TimedMachine] = field(factory=dict, init=False)
    _runs: dict[tuple[Setup, TimedCase], Measured] = field(factory=dict, init=False)
    _stuck: bool = field(default=False, init=False)
    homes: dict[int, Network] = field(init=False)

    @homes.default
    def _taken(self) -> dict[int, Network]:
        taken = {world: home for world in self.ranks if (home := self._home(world)) is not None}
        for world in MORE_RANKS:
            if not taken and (home := self._home(world)) is not None:
                taken[world] = home
        if not taken:
            tried = ", ".join(map(str, self.ranks))
            raise CheckFailed(f"it must take some number of ranks, as one of {tried}, and takes none up to 64")
        return taken

    @classmethod
    def of(cls, plugins: Plugins, name: str) -> AlgorithmUnderTest:
        """Open a registered algorithm; raise the sentence that says why that cannot be."""
        (algorithm,) = Catalogue.of(plugins).open_all(name)
        return cls(algorithm, plugins)

    # Ranks and networks -----------------------------------------------------------------------------

    def network(self, name: str, world: int) -> Network | str:
        """Return the network of so many ranks, or the sentence why it does not run on it."""
        key = name, world
        if key not in self._networks:
            self._networks[key] = network_or_refusal(self.algorithm, name, world, self.plugins.networks)
        return self._networks[key]

    def _home(self, world: int) -> Network | None:
        found = (self.network(name, world) for name in self.algorithm.topologies)
        return next((network for network in found if isinstance(network, Network)), None)

    def chosen(self, *wanted: int) -> tuple[int, ...]:
        """Return those of the wanted numbers of ranks that it takes; without any, the least that it does."""
        return tuple(world for world in wanted if world in self.homes) or (min(self.homes),)

    # Proofs -----------------------------------------------------------------------------------------

    def proof(self, case: ProofCase) -> Proof:
        """Prove a case; one in which no kernel asked for the network holds on every other.

        NotApplicable after one that did not end: the time of each would be that of all.
        """
        anywhere = evolve(case, network=Network("", case.world, case.world))
        found = self._proofs.get(anywhere) or self._proofs.get(case)
        if found is None:
            self._require_an_end()
            found, _ = prove_in_time(self.algorithm, case, TIMEOUT_S)
            self._stuck = any(fault.kind == ENDLESS for fault in found.faults)
            self._proofs[anywhere if found.any_network else case] = found
        return found

    def _require_an_end(self) -> None:
        if self._stuck:
            raise NotApplicable("its kernel has no end, as never_waits_for_ever tells")

    # Timed runs -------------------------------------------------------------------------------------

    def setup(self, network: Network, *, idealised: bool = False) -> Setup:
        """Return the machine whose packages a network joins; NotApplicable without a preset, or without an end."""
        self._require_an_end()
        if TOPOLOGY not in self.plugins.topologies:
            raise NotApplicable(f"no plug-in that is loaded has the preset {TOPOLOGY!r}, which it is timed on")
        pes = max(2, self.algorithm.ways)  # as few as will do, each a row of nodes to build
        sets = (f"system.sips={network.world}", f"system.network.topology={network.name}", f"cube.pes={pes}")
        return Setup(TOPOLOGY, None, sets, idealised, not idealised)

    def machine(self, setup: Setup) -> TimedMachine:
        """Compile a machine, once."""
        if setup not in self._machines:
            self._machines[setup] = machine_of(setup, self.plugins)
        return self._machines[setup]

    def case(
        self, world: int, count: int, dtype: str = "f16", *, redop: str = "sum", pes: int | None = 1,
        pipeline: bool = True, in_place: bool = False,
    ) -> TimedCase:  # fmt: skip
        """Return a call of `count` elements, as nccl counts them, by `pes` PEs of each rank (None: as many as suit)."""
        algorithm, kind = self.algorithm, self.algorithm.kind
        settings = load_ccl(catalogue=Catalogue.of(self.plugins)).settings(algorithm.name)
        return TimedCase(
            kind.name, algorithm.name, dtype, count, size_of(count, kind, dtype, world),
            redop if kind.reduces else None, 0, in_place, evolve(settings, pes=pes, pipeline=pipeline),
            algorithm.contributors[0],
        )  # fmt: skip

    def run(self, setup: Setup, case: TimedCase) -> Measured:
        """Simulate a call, once; raise what ends it."""
        key = setup, case
        if key not in self._runs:
            machine = self.machine(setup)
            self._runs[key] = measure(case, machine, self.plugins, checked=setup.checked, limits=LIMITS)
        return self._runs[key]
