"""What is asked of a table, and which algorithm answers it: a named one, the best for a size, or all that can."""

from __future__ import annotations

from functools import partial

from attrs import evolve, frozen

from kernbench_ccl.catalogue import Algorithm, Catalogue, spellings
from kernbench_ccl.collectives import CollectiveKind
from kernbench_ccl.measure.machine import TimedMachine
from kernbench_ccl.plan import CclConfig, Settings, machine_network
from kernbench_ccl.plan.candidates import find_able
from kernbench_ccl.plan.configuration import AUTO
from kernbench_ccl.plan.tuning import Tuning, load_tuning
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
        self._catalogue = Catalogue.of(plugins)
        self._tuning: Tuning | None = None
        self._able: dict[str, Choice] | None = None
        self.refusals: dict[str, str] = {}
        """The sentences of the algorithms that do not do these ranks or cannot be used, once `able` was asked for."""
        self.warnings: list[str] = []
        """What to say of those that cannot be used, once `able` was asked for."""

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
        if self._tuning is None:
            self._tuning = load_tuning()
        able, network = self.able(), self._machine.network
        name = self._tuning.choose(self._question.collective, network.name, network.world, nbytes, tuple(able))
        assert name is not None, "able is never empty"
        return able[name]

    @property
    def basis(self) -> str:
        """Say what `best` goes by: measurements, or a rule."""
        tuning = Tuning() if self._question.contributors != "sip" else self._tuning or load_tuning()
        network = self._machine.network
        return tuning.basis(self._question.collective, network.name, network.world, self._machine.link())

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
