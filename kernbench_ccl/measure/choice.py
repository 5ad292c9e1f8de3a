"""What is asked of a table, and which algorithm answers it: a named one, the best for a size, or all that can."""

from __future__ import annotations

from functools import cached_property, partial

from attrs import evolve, frozen

from kernbench_ccl.catalogue import Algorithm, Catalogue, spellings
from kernbench_ccl.collectives import CollectiveKind
from kernbench_ccl.measure.machine import TimedMachine
from kernbench_ccl.measure.trials import AlgorithmTrials, TrialCall
from kernbench_ccl.plan import CclConfig, Settings, machine_network
from kernbench_ccl.plan.auto import AutoMachine, choose_auto, told_trials
from kernbench_ccl.plan.candidates import changed_settings, find_able
from kernbench_ccl.plan.configuration import AUTO
from kernbench_ccl.reductions import refuse_redop
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.topology import design_of


@frozen
class Question:
    """What is asked of every row: collective, dtype, reduction (None for none), root, and how algorithms run.

    `contributors` is who brings a vector: "sip", every rank, or "pe", every PE.
    """

    kind: CollectiveKind
    dtype: str
    redop: str | None
    root: int
    pipeline: bool | None = None
    pes: int | None = None
    contributors: str = "sip"

    @property
    def collective(self) -> str:
        """The name of the collective."""
        return self.kind.name

    def adjusted(self, settings: Settings) -> Settings:
        """Return settings with what the call says itself."""
        if self.pipeline is not None:
            settings = evolve(settings, pipeline=self.pipeline)
        return settings if self.pes is None else evolve(settings, pes=self.pes, pes_at="pes")


def check_question(question: Question, machine: TimedMachine, dash: str = "") -> None:
    """Raise UsageError where what is asked does not fit itself or the machine; options have a `dash`, as "--pes"."""
    option = f"option {dash}" if dash else ""
    refusal = None if question.redop is None else refuse_redop(question.redop, question.dtype)
    if refusal is not None:
        raise UsageError(f"{option}redop: {refusal}")
    if not 0 <= question.root < machine.world:
        raise UsageError(
            f"{option}root must be a rank from 0 to {machine.world - 1}, not {question.root}; choose one of these."
        )
    if question.contributors == "pe":
        if question.pes is not None:
            raise UsageError(
                f"{'options ' if dash else ''}{dash}pes and {dash}contributors pe exclude each other: every PE takes "
                f"part; leave {dash}pes out."
            )
        return
    if machine.world < 2:
        raise UsageError(
            f"a collective must have at least 2 ranks, and this topology has 1 SIP; give {dash}ranks, or another "
            f"{dash}topology."
        )
    if question.pes is not None and question.pes > machine.pes:
        raise UsageError(
            f"{option}pes must be at most {machine.pes}, the PEs of a SIP, not {question.pes}; give fewer."
        )


@frozen
class Choice:
    """An algorithm for some sizes, with its settings."""

    algorithm: Algorithm
    settings: Settings

    @property
    def short(self) -> str:
        """Its name without vendor and collective."""
        return self.algorithm.name.partition(".")[2].removesuffix(f"_{self.algorithm.collective}")


class Chooser:
    """Find algorithms for a collective on a machine: by name, the best, or all that do it."""

    def __init__(self, question: Question, machine: TimedMachine, config: CclConfig, plugins: Plugins) -> None:
        self._question, self._machine, self._config = question, machine, config
        self._catalogue, self._plugins = Catalogue.of(plugins), plugins
        self._place = AutoMachine(machine.graph, machine.network.name)
        self._bases, self._tried = dict[str, None](), dict[tuple[str, int], None]()
        self._able: dict[str, Choice] | None = None
        self.refusals: dict[str, str] = {}
        """The sentences of the algorithms that do not do these ranks or cannot be used, once `able` was asked for."""
        self.estimates: dict[int, dict[str, float]] = {}
        """The times in ns of algorithms, by their short names, that `best` tried for a size."""
        self.warnings: list[str] = []
        """What to say of those that cannot be used, once `able` was asked for."""

    def has_entry(self, name: str) -> bool:
        """Whether ccl.yaml has an entry of a name."""
        return name in self._config.entries

    def named(self, name: str) -> Choice:
        """Return the algorithm or entry of a name; UsageError when it does not do these ranks."""
        collective, entry = self._question.collective, self._config.entries.get(name)
        full = self._catalogue.full_name(entry.algorithm if entry is not None else name, collective)
        algorithm = self._catalogue.open(full, collective)
        choice = self._choice(algorithm, entry or self._config.settings(full))
        refusal = self._refusal(choice)
        if refusal is not None:
            raise UsageError(refusal)
        return choice

    def able(self) -> dict[str, Choice]:
        """Return every algorithm that does these ranks, by its full name; `refusals` then has the others."""
        if self._able is None:
            asked, design = self._question, design_of(self._machine.graph)
            network = partial(machine_network, design, networks=self._machine.networks)
            found = find_able(self._catalogue, self._config, asked.collective, network, contributors=asked.contributors)
            self._able = {full: self._choice(one, how) for full, (one, how) in found.chosen.items()}
            self.refusals = {**found.refusals, **found.broken}
            self.warnings = found.warnings
            if not self._able:
                raise UsageError(self._nobody())
        return self._able

    def compared(self) -> dict[str, Choice]:
        """Return what `all` compares: the algorithms that do these ranks by their short names, then entries by theirs.

        An algorithm has the settings of the entry of its own name, else the defaults. `refusals` then has the others.
        """
        asked, catalogue = self._question, self._catalogue
        short = {full: method for method, full in catalogue.methods_of(asked.collective).items()}
        own, others = dict[str, Settings](), dict[str, Settings]()
        for name, entry in self._config.entries.items():
            meant = catalogue.named(entry.algorithm, asked.collective)
            if entry.algorithm.endswith(".py") or meant:
                of_its_name = len(meant) == 1 and name in spellings(meant[0], asked.collective)
                (own if of_its_name else others)[name] = entry
        network = partial(machine_network, design_of(self._machine.graph), networks=self._machine.networks)
        found = find_able(catalogue, evolve(self._config, entries=own), asked.collective, network,
                          contributors=asked.contributors)  # fmt: skip
        self.refusals, self.warnings = {**found.refusals, **found.broken}, found.warnings
        columns = {
            full if short[full] in others else short[full]: self._choice(one, how)
            for full, (one, how) in found.chosen.items()
        }
        for name in others:
            try:
                columns[name] = self.named(name)
            except UsageError as refusal:
                self.refusals[name] = f"{name}: {refusal}"
        if not columns:
            raise UsageError(self._nobody())
        return columns

    def _nobody(self) -> str:
        what = f"{self._question.collective} of {self._machine.world} ranks"
        nobody = f"no registered algorithm does {what}; register one."
        return "\n".join([nobody, *self.refusals.values()])

    def best(self, nbytes: int) -> Choice:
        """Return what `auto` is for a size."""
        able, network = self.able(), self._machine.network
        call = (self._question.collective, network.world, nbytes)
        changed = changed_settings({name: choice.settings for name, choice in able.items()})
        chosen = choose_auto(self._config.auto, self._place, call, tuple(able), lambda: self.trials, changed=changed)
        assert chosen is not None, "able is never empty"
        if chosen.unused is not None and chosen.unused not in self.warnings:
            self.warnings.append(chosen.unused)
        self._bases[chosen.basis if not chosen.tried else ""] = None
        self._tried.update(dict.fromkeys(chosen.tried))
        if chosen.estimates:
            self.estimates[nbytes] = {able[name].short: ns for name, ns in chosen.estimates.items()}
        return able[chosen.name]

    @cached_property
    def trials(self) -> AlgorithmTrials:
        """The simulations by which `auto` chooses where no table holds."""
        asked = self._question
        call = TrialCall(asked.kind, asked.dtype, asked.redop, asked.root, asked.contributors)
        able = {name: (choice.algorithm, choice.settings) for name, choice in self.able().items()}
        return AlgorithmTrials(call, self._machine, self._plugins, able)

    @property
    def simulated(self) -> bool:
        """Whether `best` simulated, or took what was simulated before."""
        return bool(self._tried)

    @property
    def basis(self) -> str:
        """Say what `best` went by: measurements, simulations, or a rule."""
        told = [told_trials(tuple(self._tried)) if self._tried and not basis else basis for basis in self._bases]
        return "; ".join(told)

    def _choice(self, algorithm: Algorithm, settings: Settings) -> Choice:
        """Return an algorithm as it runs here; ConfigError for more PEs than there are."""
        design, settings = design_of(self._machine.graph), self._question.adjusted(settings)
        settings.check_pes(design.cubes_per_sip * design.pes_per_cube)
        return Choice(algorithm, settings)

    def _refusal(self, choice: Choice) -> str | None:
        network = machine_network(design_of(self._machine.graph), choice.settings.topology, self._machine.networks)
        return choice.algorithm.refusal(network, contributors=self._question.contributors)


def chosen_name(config: CclConfig, collective: str, given: str | None) -> str:
    """Return the algorithm that is asked for: given, else what ccl.yaml says, else auto."""
    return given or config.chosen(collective) or AUTO
