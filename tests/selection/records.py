"""What is known of tests from earlier runs: the CPU seconds of each (tests/times.csv) and when each last passed.

Both know a test by the name of its file, its function and its case, without the folder: a file that moves to another
room keeps its records.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

#: CPU seconds from which a test is heavy, and has a recorded time of its own; the others are one sum a file.
HEAVY = 0.2
#: CPU seconds from which a test that is not recorded as heavy is named.
NEWS = 0.5
#: CPU seconds from which a heavy test is long.
LONG = 5.0
#: The recorded times of the suite, in the repository.
TIMES = Path(__file__).parents[1] / "times.csv"


def key(nodeid: str) -> str:
    """Return what a test is known by: `test_a.py::test_b[case]` for `tests/core/test_a.py::test_b[case]`."""
    file, colons, rest = nodeid.partition("::")
    return file.rpartition("/")[2] + colons + rest


class Times:
    """CPU seconds of tests, and of what the light tests of a file take together."""

    def __init__(self, seconds: Mapping[str, float], light: Mapping[str, float]) -> None:
        self._seconds = seconds
        self._light = light

    @classmethod
    def read(cls, path: Path = TIMES) -> Times:
        """Read a file that `write_times` wrote; without it nothing is known."""
        if not path.is_file():
            return cls({}, {})
        with path.open(encoding="utf-8", newline="") as file:
            rows = [(row["test"], float(row["cpu_s"])) for row in csv.DictReader(file)]
        listed = {key(name): seconds for name, seconds in rows if "::" in name}
        return cls(listed, {key(name): seconds for name, seconds in rows if "::" not in name})

    def of(self, nodeid: str) -> float:
        """Return the CPU seconds of a test; 0 for one that is light, or not recorded."""
        return self._seconds.get(key(nodeid), 0.0)

    def is_heavy(self, nodeid: str) -> bool:
        """Say whether a test takes over a fifth of a second of CPU."""
        return self.of(nodeid) > HEAVY

    def is_news(self, nodeid: str, seconds: float) -> bool:
        """Say whether a test takes over half a second of CPU and was recorded as light, or not at all."""
        return seconds > NEWS and not self.is_heavy(nodeid)

    def of_file(self, file: str, heavy_share: float = 1.0, long_share: float = 1.0, cases: int | None = None) -> float:
        """Return the CPU seconds of a file, where shares of its heavy and long tests run, and so many cases."""
        name = key(file)
        functions: dict[str, list[float]] = {}
        for test, seconds in self._seconds.items():
            if test.startswith(f"{name}::"):
                share = long_share if seconds > LONG else heavy_share if seconds > HEAVY else 1.0
                functions.setdefault(test.partition("[")[0], []).append(seconds * share)
        own = (sum(each) * min(1.0, (cases or len(each)) / len(each)) for each in functions.values())
        return self._light.get(name, 0.0) + sum(own)


def write_times(found: Mapping[str, float], path: Path = TIMES, *, only: bool = False) -> None:
    """Write the CPU seconds of tests by their node ids; with `only`, lines of files of which nothing ran stay."""
    rows: dict[str, float] = {}
    if only and path.is_file():
        ran = {nodeid.partition("::")[0] for nodeid in found}
        with path.open(encoding="utf-8", newline="") as file:
            rows = {row["test"]: float(row["cpu_s"]) for row in csv.DictReader(file)}
        rows = {name: seconds for name, seconds in rows.items() if name.partition("::")[0] not in ran}
    for nodeid, seconds in found.items():
        name = nodeid.partition("::")[0]
        rows[name] = rows.get(name, 0.0) + (0.0 if seconds >= HEAVY else seconds)
        if seconds >= HEAVY:
            rows[nodeid] = seconds
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["cpu_s", "test"])
        writer.writerows([f"{seconds:.2f}", name] for name, seconds in sorted(rows.items()))


class Ledger:
    """When each test last passed, in a file outside the tree: a line for each time, the last one counts."""

    #: Lines from which the file is written anew, with one line a test.
    _LINES = 20_000

    def __init__(self, path: Path) -> None:
        self._path = path

    def last_passed(self) -> dict[str, float]:
        """Return the seconds since the epoch at which each test last passed, by its key; damaged lines are left out."""
        found: dict[str, float] = {}
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return found
        for line in lines:
            when, _, name = line.partition("\t")
            try:
                found[name] = float(when)
            except ValueError:
                continue
        if len(lines) > self._LINES:
            self._replace(found)
        return found

    def add(self, passed: Iterable[str], failed: Iterable[str]) -> None:
        """Note what passed now; what failed counts as never run, and is taken first the next time."""
        now = f"{time.time():.0f}"
        lines = [f"{now}\t{key(nodeid)}\n" for nodeid in passed] + [f"0\t{key(nodeid)}\n" for nodeid in failed]
        if not lines:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))

    def _replace(self, found: Mapping[str, float]) -> None:
        other = self._path.with_suffix(f".{os.getpid()}")
        other.write_text("".join(f"{when:.0f}\t{name}\n" for name, when in found.items()), encoding="utf-8")
        other.replace(self._path)
