"""Figures of a user's own: the functions of a `--figures FILE.py`, as `def area(config, figures) -> float`."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from kernbench_builtin.sweeps.expressions.quantities import UnitNumber, as_known
from kernbench_builtin.sweeps.objectives.figures import KNOWN
from kernbench_core.callsite import user_traceback
from kernbench_core.errors import UsageError, blamed, in_words
from kernbench_core.host.rows import Scalar
from kernbench_core.host.sources import read_sources
from kernbench_core.params import did_you_mean
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.process.whole_files import is_file
from kernbench_core.wording import brief

_FORM = "def area(config, figures): …"


class PointSettings(dict[str, Scalar]):
    """The configuration of a run by dotted key, and the parameters of its bench by name: quantities are plain numbers.

    These are in kernbench's own unit: ns, B, GB/s (B/ns), GHz, mm.

    >>> settings({"system": {"network": {"bandwidth": "100 GB/s"}}}, {"tile_m": 64})
    {'system.network.bandwidth': 100.0, 'tile_m': 64}
    """

    def __missing__(self, key: object) -> Scalar:
        name = str(key)
        longer = [each for each in self if each.endswith(f".{name}")]
        hint = f" Did you mean {longer[0]!r}?" if len(longer) == 1 else did_you_mean(name, self)
        raise KeyError(f"{name!r} must be a key of the configuration, or a parameter of the bench.{hint}")


def settings(configuration: Mapping[str, Any], params: Mapping[str, Any]) -> PointSettings:
    """Return a resolved configuration, as a manifest has it, and parameters of a bench as one mapping."""
    known = ((name, as_known(value)) for name, value in flat(configuration).items())
    found = PointSettings((name, value.value if isinstance(value, UnitNumber) else value) for name, value in known)
    found.update({name: value for name, value in params.items() if isinstance(value, bool | int | float | str | None)})
    return found


def flat(section: Mapping[str, Any], before: str = "") -> dict[str, bool | int | float | str]:
    """Return the values of a configuration by dotted key, as it has them; lists are left out."""
    found: dict[str, bool | int | float | str] = {}
    for key, value in section.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{before}{key}.")
        elif isinstance(value, bool | int | float | str):
            found[f"{before}{key}"] = value
    return found


@frozen
class FigureFunctions:
    """The functions of one file, by name: all that it defines, but for those whose name begins with `_`."""

    path: str
    sha256: str
    functions: Mapping[str, Callable[..., Any]] = field(repr=False)

    def of(self, config: PointSettings, figures: Mapping[str, Scalar]) -> dict[str, float]:
        """Call each with the configuration and the figures of a run; UsageError for what raises, or gives no number."""
        return {name: self._called(name, config, MappingProxyType(dict(figures))) for name in self.functions}

    def _called(self, name: str, config: PointSettings, figures: Mapping[str, Scalar]) -> float:
        told = f"--figures {self.path}: {name}(config, figures) must give a number"
        try:
            found = self.functions[name](PointSettings(config), figures)
        except INTERRUPTS:
            raise
        except BaseException as error:
            raise blamed(error, UsageError)(
                f"{told}, but it raised {in_words(error)}.\n{user_traceback(error)}".rstrip()
            ) from error
        if hasattr(found, "item") and getattr(found, "ndim", None) == 0:
            found = found.item()
        if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
            raise UsageError(f"{told}, not {brief(found)}.")
        return float(found)


def read_figures(path: str | Path) -> FigureFunctions:
    """Read a `--figures` file; UsageError for one that is none, or has no functions, KernelError for one that fails."""
    file = Path(path)
    if not is_file(file):
        raise UsageError(f"--figures must be the path of a .py file, and {str(path)!r} does not exist.")
    sources = read_sources(file)
    module = sources.execute("figures")
    found = {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    }
    if not found:
        raise UsageError(f"--figures {path}: must have at least one function, as {_FORM}; write one.")
    for name, function in found.items():
        _check(f"--figures {path}: {name}", name, function)
    digest = hashlib.sha256("".join(f"{name} {of}\n" for name, of in sorted(sources.hashes.items())).encode())
    return FigureFunctions(str(path), digest.hexdigest(), found)


def _check(told: str, name: str, function: Callable[..., Any]) -> None:
    """Raise UsageError for a function that cannot be called with two arguments, or is called as a figure is."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        raise UsageError(
            f"{told} must take two arguments, as {_FORM}; a name that begins with '_' is left alone."
        ) from None
    if name in KNOWN:
        raise UsageError(f"{told} must not have the name of a figure that every result has; give it another.")
