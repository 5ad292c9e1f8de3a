"""What the CSVs of copies, products and memory accesses have in common: a measured case a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from kernbench_core.calibration import BEGIN, CsvForm, LogOptions, LogRow, SimulatedRow
from kernbench_core.plugins import Plugins


class CsvRows:
    """Read a CSV whose lines are cases of one kind; a subclass says which columns they have, and what a case is."""

    COLUMNS: ClassVar[CsvForm]

    def __init__(self, plugins: Plugins, options: LogOptions) -> None:
        self._plugins, self._options = plugins, options

    @classmethod
    def recognises(cls, text: str) -> bool:
        """Tell whether the first line names the columns, and a time."""
        return cls.COLUMNS.recognises(text)

    def case_of(self, values: Mapping[str, Any]) -> tuple[str, object]:
        """Return how a line is called in a report, and its case."""
        raise NotImplementedError

    def read(self, name: str, text: str) -> list[LogRow]:
        """Return the cases of a CSV, each with its line and its time in ns."""
        found = []
        for row in self.COLUMNS.read(name, text):
            label, case = self.case_of(row.values)
            found.append(LogRow(f"{name}:{row.line}", label, row.ns, case))
        return found

    def settings(self, rows: Sequence[LogRow]) -> tuple[str, ...]:
        """Return nothing: these cases do not say how many packages there are."""
        return ()

    def _along(self, size: int, time_ns: Callable[[int], float], unit: Callable[[int], int] = int) -> SimulatedRow:
        """Return the time of a size, of which `unit` says how many there are in so many bytes."""
        most = size if self._options.whole else unit(self._options.simulate_to)
        return SimulatedRow.along(size, most, time_ns, size if self._options.whole else unit(BEGIN))
