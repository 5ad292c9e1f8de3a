"""The contract of a format of measurements: what is read of a log, which parameters it tells of, what a machine takes.

A plug-in registers a `Calibrator` class; `kernbench calibrate` finds the one whose format a log has, reads the rows,
fits the parameters that they tell of within their limits, and has every row simulated on the fitted machine.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from attrs import evolve, field, frozen

from kernbench_core.units import DIMENSIONS

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins


@frozen
class MachineChoice:
    """A machine as texts: a preset or file, and the settings over it, as `--topology` and `--set` have them."""

    topology: str
    sets: tuple[str, ...] = ()

    def having(self, sets: Sequence[str]) -> MachineChoice:
        """Return it with more settings over its own."""
        return evolve(self, sets=(*self.sets, *sets))


@frozen
class LogOptions:
    """What the command line says of a log, and of how its rows are simulated.

    `collective`, `ranks`, `algo` and `config` (a file of settings) are for logs of collectives. Rows up to
    `simulate_to` bytes are simulated as they are; `jobs` processes may do so.
    """

    collective: str | None = None
    ranks: int | None = None
    algo: str | None = None
    config: str | None = None
    simulate_to: int = 4 << 20
    jobs: int = 1


@frozen
class LogRow:
    """One measurement: `place` is its file and line, `label` says what was measured, `ns` how long it took.

    `case` is what the calibrator itself makes of it; rows of one case measured the same thing.
    """

    place: str
    label: str
    ns: float
    case: Hashable = field(repr=False)


@frozen
class Unknown:
    """A parameter to fit: its `key` in the configuration, and the limits within which its value must be.

    Values are in kernbench's own unit of `dimension`; the key gets `scale` times the value. Times are linear in the
    value, or with `inverse` in 1 / value. `source` says where the limits are from, `needs` which rows identify it.
    """

    name: str
    key: str
    dimension: str
    low: float
    high: float
    source: str
    needs: str
    inverse: bool = False
    scale: float = 1.0

    def setting(self, value: float) -> str:
        """Return the setting that gives a machine a value, as `--set` has it."""
        return f"{self.key}={self.text(value * self.scale)}"

    def text(self, value: float) -> str:
        """Write a value with its unit, to ten digits."""
        return DIMENSIONS[self.dimension].text(value)


@frozen
class SimulatedRow:
    """What a machine takes for a row, in ns; `extended` says that a smaller size was simulated, and continued."""

    ns: float
    extended: bool = False

    @classmethod
    def along(cls, size: int, simulate_to: int, time_ns: Callable[[int], float]) -> SimulatedRow:
        """Return the time of a size: simulated up to `simulate_to`, from there on the line through it and its half.

        `time_ns` simulates a size. What is streamed takes a time linear in its size once it fills the machine.
        """
        if size <= simulate_to:
            return cls(time_ns(size))
        half, whole = time_ns(simulate_to // 2), time_ns(simulate_to)
        per_byte = (whole - half) / (simulate_to - simulate_to // 2)
        return cls(whole + (size - simulate_to) * per_byte, extended=True)


class Calibrator(Protocol):
    """One format of measurements. It is made once for all logs of a call, with what the command line says.

    `read` is called first, for each log; then `unknowns`, for all rows; `slopes` and `simulate` for as many machines
    as the fit tries.
    """

    #: What a log of the format looks like, in words, for whoever gave another.
    FORM: ClassVar[str]

    def __init__(self, plugins: Plugins, options: LogOptions) -> None:
        """Keep both; nothing is loaded yet."""

    @staticmethod
    def recognises(text: str) -> bool:
        """Tell whether a log is of this format, faults and all."""

    def read(self, name: str, text: str) -> Sequence[LogRow]:
        """Return the rows of a log that is called `name`; raise ConfigError with every fault, at `name:line`."""

    def settings(self, rows: Sequence[LogRow]) -> Sequence[str]:
        """Return what the rows say of the machine itself, as its number of packages, in the words of `--set`."""

    def unknowns(self, rows: Sequence[LogRow], machine: MachineChoice) -> Sequence[Unknown]:
        """Return the parameters that rows of this format are fitted by, on this machine."""

    def slopes(
        self, rows: Sequence[LogRow], machine: MachineChoice, values: Mapping[str, float]
    ) -> Sequence[Mapping[str, float]]:
        """Return for each row d ns / d value (d ns / d (1 / value) of an inverse one) by unknown, from closed forms.

        `machine` is the one that `unknowns` was asked of, `values` are those of the unknowns at this point. What a row
        does not depend on may be left out.
        """

    def simulate(self, rows: Sequence[LogRow], machine: MachineChoice) -> Sequence[SimulatedRow]:
        """Return what the machine takes for each row."""
