"""The checks of a standard of memories: its figures have sources, fit the controller, and are what a burst takes."""

from __future__ import annotations

import math
from statistics import median
from typing import Any, Final

from attrs import frozen

from kernbench_builtin.components.dram import DramPlace
from kernbench_builtin.memory_standards import CLOCK_BYTES, MemoryStandard
from kernbench_builtin.plugin import MEMORY_STANDARDS
from kernbench_builtin.probe.dram_driver import DramProbe
from kernbench_core.errors import ConfigError
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core.plugins import Plugins
from kernbench_core.testing.kit import CheckFailed, NotApplicable, kit_of
from kernbench_core.values import Region

_MODEL: Final = "builtin.hbm_ctrl_bank"
_READS: Final = 9
_ALONE: Final = {"overhead": "0 ns", "refresh": "none"}
"""What the controller is given for a burst to take its own times alone."""
_BEFORE: Final = 2.0**-12
"""How long before an edge of the clock a read comes (ns)."""


@frozen
class StandardUnderTest:
    """A standard by its name, and the plug-ins that it is registered with."""

    name: str
    standard: MemoryStandard
    plugins: Plugins

    def values(self, **given: object) -> dict[str, Any]:
        """Return the parameters that the controller has by it; CheckFailed for a figure that does not fit."""
        given["standard"] = self.name
        declared = self.plugins.components.declared(_MODEL)
        values, wrong = resolve_params(declared, given, lambda *names: ".".join(names))
        if wrong:
            raise CheckFailed(wrong[0].rstrip("."))
        return values

    def probe(self, **given: object) -> DramProbe:
        """Build the controller; CheckFailed for figures that contradict each other."""
        try:
            return DramProbe(Node("it", "hbm_ctrl", _MODEL, self.values(**given)), self.plugins.components)
        except ConfigError as error:
            raise CheckFailed(error.problems[0].removeprefix("it: ").rstrip(".")) from None


def _open(plugins: Plugins, name: str) -> StandardUnderTest:
    standard = plugins.of(MEMORY_STANDARDS).load(name)
    if not isinstance(standard, MemoryStandard):
        raise CheckFailed(f"it must be a MemoryStandard of kernbench_builtin.memory_standards, not {standard!r}")
    return StandardUnderTest(name, standard, plugins)


def names_its_sources(under_test: StandardUnderTest) -> None:
    """Every figure says where it was read, or that nobody has."""
    for name, figure in under_test.standard.figures.items():
        if not (isinstance(figure.source, str) and figure.source.strip()):
            raise CheckFailed(f"{name} must have its source in words, or 'unverified', not {figure.source!r}")


def fits_the_controller(under_test: StandardUnderTest) -> None:
    """Every figure has the unit of its parameter, and no two contradict each other, those of refreshes too."""
    under_test.probe()


def takes_what_it_says(under_test: StandardUnderTest) -> None:
    """A lone burst takes the sum of its times, each in whole clocks: with its row open, and with another one."""
    try:
        values, probe = under_test.values(), under_test.probe(**_ALONE)
    except CheckFailed as error:
        raise NotApplicable(f"{fits_the_controller.__name__} says why not: {error}") from None
    clock, data = CLOCK_BYTES / values["channel_bandwidth"], values["burst_bytes"] / values["channel_bandwidth"]
    opening = values["tRP"] + values["tRCDRD"]
    for rows, least, times in ((1, values["tCL"] + data, 2), (2, opening + values["tCL"] + data, 4)):
        took = _median(probe, rows, 4 * (values["tRC"] + least))
        if not least - _BEFORE < took < least + (times + 1) * clock:
            where = "in a row that is open" if rows == 1 else "in another row than the one that is open"
            raise CheckFailed(f"a burst {where} must take about {least:.6g} ns, not {took:.6g} ns")


def _median(probe: DramProbe, rows: int, apart: float) -> float:
    """Return what bursts take that come at least so long after each other, to so many rows in turn."""
    geometry = probe.geometry
    assert geometry.address is not None
    places = [DramPlace(0, 0, number % rows, 0) for number in range(_READS)]
    bursts = [Region(geometry.address(place), geometry.burst_bytes) for place in places]
    step = math.ceil(apart / geometry.timing["tCK"]) * geometry.timing["tCK"]
    return median(
        probe.latencies([(number * step + step - _BEFORE, "read", (burst,)) for number, burst in enumerate(bursts)])
    )


KIT = kit_of(_open, names_its_sources, fits_the_controller, takes_what_it_says)
