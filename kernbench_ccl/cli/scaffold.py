"""`kernbench ccl new`: write a new algorithm, one file that runs and is proved at once."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from kernbench_ccl.collectives import COLLECTIVES, CollectiveKind
from kernbench_core.errors import PluginError, UsageError, in_words
from kernbench_core.params import did_you_mean
from kernbench_core.wording import brief

_PLACEHOLDER = "my_algorithm"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def algorithm_text(
    name: str, collective: str = "all_reduce", known: Mapping[str, CollectiveKind] = COLLECTIVES
) -> str:
    """Return the text of a new algorithm of one of the `known` collectives; UsageError for what cannot be."""
    if _NAME.fullmatch(name) is None or keyword.iskeyword(name):
        raise UsageError(
            "the name of a new algorithm must be a Python name in lower-case letters, digits and '_', not "
            f"{brief(name)}; "
            "call it my_ring, say."
        )
    if collective not in known:
        raise UsageError(
            f"option --collective must be one of {', '.join(known)}, not {brief(collective)}."
            f"{did_you_mean(collective, known).partition(' Known: ')[0]}"
        )
    package, _, file = known[collective].template.partition(":")
    if not file:
        begun = ", ".join(each for each in known if each in COLLECTIVES)
        raise UsageError(
            f"option --collective must be one that has a template, as {begun}, and {collective!r} has none; begin with "
            "a copy of an algorithm that does it."
        )
    try:
        template = (resources.files(package) / file).read_text("utf-8")
    except (OSError, ImportError) as fault:
        raise PluginError(
            f"the template of collective {collective!r} must be readable from {known[collective].template!r}, but that "
            f"raised {in_words(fault)}; repair the package."
        ) from fault
    return template.replace(_PLACEHOLDER, name)


def write_algorithm(
    name: str,
    collective: str = "all_reduce",
    folder: str | Path = ".",
    known: Mapping[str, CollectiveKind] = COLLECTIVES,
) -> Path:
    """Write NAME.py into a folder and return its path; UsageError where one is there or it cannot be written."""
    name = name.removesuffix(".py")
    text = algorithm_text(name, collective, known)
    path = Path(folder) / f"{name}.py"
    made = False
    try:
        with path.open("x", encoding="utf-8") as file:
            made = True
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{str(path)!r} must not be there yet; choose another name, or move the file away.") from None
    except OSError as error:
        if made:
            path.unlink()
        raise UsageError(f"{str(path)!r} must be writable, but that failed with {error.strerror!r}.") from None
    return path


def next_steps(path: Path, collective: str) -> list[str]:
    """Return what to do with a new algorithm: prove it, time it, register it."""
    name = path.stem
    registered = name if name.endswith(collective) else f"{name}_{collective}"
    here = path if path.is_absolute() else f"./{path}"
    return [
        "prove it, after every change:",
        f"  kernbench ccl check {here}",
        "time it, with its data checked:",
        f"  kernbench ccl {collective} --algo {here} -b 1K -e 1M",
        "register it, so that everyone finds it by its name: in the pyproject.toml of your package",
        "  [project.entry-points.kernbench]",
        '  acme = "acme.plugin"',
        "and in acme/plugin.py, with AlgorithmEntry of kernbench_core.plugins",
        "  kernbench_api = 1",
        "  def kernbench_algorithms():",
        f'      return [AlgorithmEntry("acme.{registered}", "acme.{name}:kernel", "What it does.", "{collective}")]',
    ]
