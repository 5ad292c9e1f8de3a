"""What closed forms say of measured collectives: how steep their times are in what a scale-up link has."""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Mapping
from functools import cached_property

from attrs import evolve, field, frozen

from kernbench_ccl.calibrate.heading import Heading, Ran
from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.contract import Cost
from kernbench_ccl.measure import Chooser, Setup, TimedMachine, machine_of
from kernbench_ccl.measure.choice import Choice, Question, chosen_name
from kernbench_ccl.plan import load_ccl
from kernbench_ccl.plan.configuration import AUTO
from kernbench_core.calibration import LogOptions, MachineChoice, Unknown
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.values.dtypes import itemsize

LINK_BANDWIDTH = Unknown(
    "link-bandwidth",
    "system.network.bandwidth",
    "bandwidth",
    0.985,
    900.0,
    "one lane of PCIe 3.0, by the standard, to NVLink 5 of a GPU, 900 GB/s each way, NVIDIA",
    "large vectors, of many MiB a rank, where bandwidth decides",
    inverse=True,
)
LINK_LATENCY = Unknown(
    "link-latency",
    "system.network.latency",
    "time",
    2.0,
    10e3,
    "adapters and PHYs of UCIe 1.1, to five times the 2 us of a step with software, AWS Neuron docs [chosen]",
    "small vectors, of some KiB, where latency decides",
)
_STEP = 1e-3
"""By which part of it a parameter is changed to see how steep a closed form is."""


@frozen
class CollectiveCase:
    """A measured collective; `nbytes` is its size as nccl-tests counts it.

    `ran` is the algorithm that a log of `kernbench ccl` names, and `heading` what it says besides.
    """

    collective: str
    ranks: int
    nbytes: int
    dtype: str
    redop: str | None
    root: int = 0
    in_place: bool = False
    ran: Ran | None = None
    heading: Heading | None = field(default=None, eq=False, repr=False)

    @property
    def table(self) -> tuple[Hashable, ...]:
        """What it has in common with those that are simulated together."""
        return self.collective, self.ranks, self.dtype, self.redop, self.root, self.ran


class Forms:
    """The closed forms of the algorithms that serve the sizes of a table."""

    def __init__(self, plugins: Plugins, options: LogOptions, machine: MachineChoice, case: CollectiveCase) -> None:
        catalogue = Catalogue.of(plugins)
        setup = Setup(machine.topology, None, (*machine.sets, f"system.sips={case.ranks}"), checked=False)
        self._machine: TimedMachine = machine_of(setup, plugins)
        self._item = itemsize(case.dtype)
        self._config = load_ccl(options.config, catalogue=catalogue).without_trials()
        question = Question(
            catalogue.collectives[case.collective], case.dtype, case.redop, case.root, options.pipeline
        )
        self._chooser = Chooser(question, self._machine, self._config, plugins)
        self._name = chosen_name(self._config, case.collective, asked_for(options, case))
        self._free = options.algo in (None, AUTO)
        self._pipeline, self._file = options.pipeline, options.config
        if case.heading is not None:
            self._require_as_said(case.heading, case.ran)

    @cached_property
    def _named(self) -> Choice | None:
        return None if self._name == AUTO else self._chooser.named(self._name)

    def _require_as_said(self, said: Heading, ran: Ran | None) -> None:
        """Raise UsageError where a log says that another network, algorithm or way of running was measured."""
        network = self._machine.network
        here = Heading("", "", 0, False, False, network.name, (network.width, network.height))
        grid = here.grid if network.height > 1 else None
        if said.network is not None and (said.network, said.grid) != (network.name, grid):
            there = evolve(here, grid=grid).shape
            raise UsageError(
                f"{said.place}: the network must be that of the log, a {said.shape}, not a {there}, as this machine's "
                f"is; give {said.sets}, or the --topology that was measured."
            )
        choice = self._named
        if ran is None or choice is None:
            return
        if choice.algorithm.name != ran.algorithm:
            raise UsageError(
                f"{said.place}: the algorithm must be that of the log, {ran.algorithm}, not {choice.algorithm.name}; "
                f"give --algo {ran.algorithm}, or leave it out."
            )
        way = "pipelined" if choice.settings.pipeline else "step by step"
        if way != ran.way:
            raise UsageError(
                f"{said.place}: {ran.algorithm} must run {ran.way}, as in the log, not {way}; give a --config with "
                f"'defaults: {{pipeline: {'on' if ran.way == 'pipelined' else 'off'}}}'."
            )

    def algorithm(self, nbytes: int) -> str:
        """Return who serves a size in bytes on this machine."""
        return (self._named or self._chooser.best(nbytes)).algorithm.name

    def how(self, nbytes: int) -> tuple[str, str]:
        """Say who serves a size in bytes on this machine and how, and which options of `kernbench ccl` ask for that."""
        choice = self._named or self._chooser.best(nbytes)
        settings, name = choice.settings, choice.algorithm.name
        way = "pipelined" if settings.pipeline else "step by step"
        options = ["--algo", name if self._named is None else self._name]
        options += [] if self._pipeline is None else ["--pipeline", "on" if settings.pipeline else "off"]
        options += [] if self._file is None else ["--config", self._file]
        return f"{name}{', which auto chose,' if self._named is None else ''} {way}", shlex.join(options)

    def slopes(self, nbytes: int, values: Mapping[str, float]) -> dict[str, float]:
        """Return d ns / d latency and d ns / d (1 / bandwidth) at these values of a link."""
        bandwidth, latency = self._machine.link()
        bandwidth, latency = values.get(LINK_BANDWIDTH.name, bandwidth), values.get(LINK_LATENCY.name, latency)
        choice = self._pointing(nbytes, bandwidth, latency)

        def form(inverse: float, latency: float) -> float:
            found = self._form(choice, nbytes, 1 / inverse, latency)
            if isinstance(found, str):
                raise _no_form(choice.algorithm.name, found)
            return found

        inverse, more = 1 / bandwidth, 1 + _STEP
        here = form(inverse, latency)
        return {
            LINK_BANDWIDTH.name: (form(inverse * more, latency) - here) / (inverse * _STEP),
            LINK_LATENCY.name: (form(inverse, latency * more) - here) / (latency * _STEP),
        }

    def _form(self, choice: Choice, nbytes: int, bandwidth: float, latency: float) -> float | str:
        settings = choice.settings
        cost = Cost(self._machine.world, nbytes, bandwidth, latency, self._machine.network, settings.pipeline,
                    self._machine.message(settings, choice.algorithm, self._item), self._machine.packet(settings),
                    settings.pes or self._machine.pes)  # fmt: skip
        return choice.algorithm.closed_form(cost)

    def _pointing(self, nbytes: int, bandwidth: float, latency: float) -> Choice:
        """Return the algorithm whose form points the way: the one that runs, or the fastest where nobody named one.

        What is simulated is not changed by it. UsageError where there is no form.
        """
        choice = self._named or self._chooser.best(nbytes)
        found = self._form(choice, nbytes, bandwidth, latency)
        if not isinstance(found, str):
            return choice
        name = choice.algorithm.name
        if self._free:
            forms = [(self._form(one, nbytes, bandwidth, latency), one) for one in self._chooser.able().values()]
            known = [(ns, one) for ns, one in forms if not isinstance(ns, str)]
            if known:
                return min(known, key=lambda pair: pair[0])[1]
            name = f"{name}, which {'auto chose' if self._named is None else 'is asked for'},"
        raise _no_form(name, found)


def asked_for(options: LogOptions, case: CollectiveCase) -> str | None:
    """Return the algorithm that the command line asks for; where it leaves that to auto, the one that a log names."""
    if case.ran is None or options.algo not in (None, AUTO):
        return options.algo
    return case.ran.entry or case.ran.algorithm


def _no_form(name: str, why: str) -> UsageError:
    return UsageError(
        f"{name} must have a closed form to be fitted, and has none: {why}; choose another with --algo."
    )
