"""Which plug-ins are wanted besides those that are installed, and which of those are not.

A process says it by its environment, which those that it starts have from it; the command line by options.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final, Self

import attrs

from kernbench_core.errors import UsageError

#: The variables: paths as in PATH, names with commas between them, and 1.
FILES: Final = "KERNBENCH_PLUGIN"
WITHOUT: Final = "KERNBENCH_NO_PLUGIN"
STRICT: Final = "KERNBENCH_STRICT_PLUGINS"


@attrs.frozen
class Chosen:
    """Say which plug-ins are wanted.

    `files` are paths of modules to be loaded as if they were installed, `without` the names of installed plug-ins that
    are left out, kernbench's own among them; with `strict` one that cannot be used is an error.
    """

    files: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    strict: bool = False

    @classmethod
    def of_environment(cls) -> Self:
        """Return what the environment of this process says; UsageError for a variable that cannot be read."""
        strict = os.environ.get(STRICT, "")
        if strict not in ("", "0", "1"):
            raise UsageError(f"variable {STRICT} must be 1 or 0, not {strict!r}.")
        files = (path for path in os.environ.get(FILES, "").split(os.pathsep) if path)
        return cls(tuple(files), names(os.environ.get(WITHOUT, "")), strict == "1")

    def with_more(self, files: tuple[str, ...], without: tuple[str, ...], strict: bool) -> Self:
        """Return this with what the command line adds."""
        more = (path for path in files if path not in self.files)
        return attrs.evolve(
            self, files=(*self.files, *more), without=(*self.without, *without), strict=self.strict or strict
        )

    def environment(self) -> dict[str, str]:
        """Return the variables that say this."""
        said = {FILES: os.pathsep.join(self.files), WITHOUT: ",".join(self.without), STRICT: "1" if self.strict else ""}
        return {name: text for name, text in said.items() if text}


def names(text: str) -> tuple[str, ...]:
    """Return the names in a text, which commas or blanks stand between."""
    return tuple(name for name in re.split(r"[,\s]+", text) if name)


def several_plugins(name: str, found: Iterable[tuple[str, str]]) -> UsageError:
    """Return the error for a name that several plug-ins have, each given with its distribution."""
    each = list(found)
    plugins, distributions = ({pair[part] for pair in each} for part in (0, 1))
    kind, tell = ("distribution", distributions) if len(distributions) == len(each) else ("plug-in", plugins)
    return UsageError(
        f"plug-in {name!r} must name one, not {len(each)}; give the {kind}: {' or '.join(map(repr, sorted(tell)))}."
    )
