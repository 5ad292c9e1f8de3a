"""Who sends to whom, read from a file: one line for each router, `r0c0 r3c4`; `#` begins a comment."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kernbench_builtin.machines import Mesh, naming
from kernbench_builtin.probe.traffic_patterns import Permutation
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.wording import brief

_MOST_BYTES = 4 << 20
_FEW = 5


def read_permutation(file: str, mesh: Mesh) -> Permutation:
    """Return the permutation of a file.

    Raises:
        UsageError: the file cannot be read.
        ConfigError: it is no permutation of the routers of the mesh; one sentence for each fault, with its line.
    """
    names = [naming.mesh_router(*mesh.cell(place)).removeprefix("mesh.") for place in range(mesh.places)]
    places = {name: place for place, name in enumerate(names)}
    reading = _Reading(file, places)
    for number, line in enumerate(_text(file).splitlines(), 1):
        reading.take(number, line.partition("#")[0].split())
    missing = [name for name in names if places[name] not in reading.goals]
    if missing and not reading.unread:
        told = ", ".join([*missing[:_FEW], *(["…"] if len(missing) > _FEW else [])])
        reading.problems.append(
            f"{file}: must have a line for each of the {mesh.places} routers, but {len(missing)} have none: {told}."
        )
    if reading.problems:
        raise ConfigError(*reading.problems)
    return Permutation(np.array([reading.goals[place] for place in range(mesh.places)]))


class _Reading:
    """Collect the lines of a file, and what is wrong with them."""

    def __init__(self, file: str, places: dict[str, int]) -> None:
        self.file = file
        self.places = places
        self.problems: list[str] = []
        self.goals: dict[int, int] = {}
        self.unread = False
        self._lines: tuple[dict[str, int], dict[str, int]] = ({}, {})

    def take(self, number: int, words: list[str]) -> None:
        """Take the words of a line."""
        if not words:
            return
        names = [word.removeprefix("mesh.") for word in words]
        unknown = [name for name in names if name not in self.places]
        if len(names) != 2:
            shown = " ".join(words)
            self._fault(number, f"must be a router and the one that it sends to, as 'r0c0 r1c1', not {brief(shown)}.")
        elif unknown:
            last = next(reversed(self.places))
            for name in unknown:
                hint = _close(name, self.places)
                self._fault(number, f"must name routers from r0c0 to {last}, not {brief(name)}.{hint}")
        else:
            self._note(number, names)

    def _note(self, number: int, names: list[str]) -> None:
        for name, seen, what in zip(names, self._lines, ("sends", "is sent to"), strict=True):
            if name in seen:
                self._fault(number, f"must be the only line in which {name} {what}, but line {seen[name]} is one, too.")
            seen.setdefault(name, number)
        self.goals.setdefault(self.places[names[0]], self.places[names[1]])

    def _fault(self, number: int, text: str) -> None:
        self.problems.append(f"{self.file}:{number}: {text}")
        self.unread = self.unread or "only line" not in text


def _close(name: str, places: dict[str, int]) -> str:
    hint = did_you_mean(name, places)
    return hint if "Did you mean" in hint else ""


def _text(file: str) -> str:
    """Read a file of text, of at most 4 MiB."""
    try:
        path = Path(file)
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"--permutation must name a file of at most 4 MiB, not {brief(file)}.")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text"
        raise UsageError(f"--permutation must name a file of text, not {brief(file)}: {reason.lower()}.") from None
