"""The machine of a project: `[tool.kernbench]` of the nearest pyproject.toml, and the environment, below the options.

Commands with `--topology` have it where the command line does not say another. Who names a topology says `components`
and `set` for that one alone: they do not count where another is named above.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from kernbench_core.errors import ConfigError
from kernbench_core.params import did_you_mean
from kernbench_core.runs.parts import RunPart
from kernbench_core.wording import brief

if TYPE_CHECKING:
    import click

    from kernbench_core.cli.shell import Shell

#: What a project may say, as it names it, and the variables of the environment; settings stand there between ";".
VARIABLES: Final = {
    "topology": "KERNBENCH_TOPOLOGY", "components": "KERNBENCH_COMPONENTS", "set": "KERNBENCH_SET",
}  # fmt: skip
_TABLE: Final = "tool.kernbench"
_TYPED, _DEFAULT = "command line", "default"
_MOST: Final = 3


class Setting(str):
    """A setting `KEY=VALUE`, and what a message about it begins with."""

    place: str

    def __new__(cls, text: str, place: str) -> Setting:
        """Make one."""
        made = super().__new__(cls, text)
        made.place = place
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """Let other processes make it, too."""
        return str(self), self.place


@frozen
class MachineLayer:
    """What the project, the environment or the command line says of the machine."""

    origin: str
    topology: str | None = None
    components: str | None = None
    set: tuple[str, ...] = ()


@frozen
class ProjectMachine:
    """What counts of several layers, each thing in words with who won, and what is for another topology."""

    topology: str | None
    components: str | None
    set: tuple[str, ...]
    winners: tuple[tuple[str, str, str], ...]
    left_out: tuple[str, ...]

    def tell(self, shell: Shell, *, verbose: bool = False) -> None:
        """Say on stderr who says what: all of it, or in short what neither the command line nor a default does."""
        for sentence in self.left_out:
            shell.note(sentence)
        by_origin: dict[str, list[str]] = {}
        for text, origin, over in self.winners:
            if verbose:
                shell.note(f"{text} ({origin}{over})")
            elif origin not in (_TYPED, _DEFAULT):
                by_origin.setdefault(origin, []).append(text)
        for origin, texts in by_origin.items():
            more = f" and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
            shell.note(f"{', '.join(texts[:_MOST])}{more} ({origin})")


def machine_of(layers: Sequence[MachineLayer]) -> ProjectMachine:
    """Lay what several say over one another, the last on top."""
    naming = [each for each in layers if each.topology]
    topology = naming[-1].topology if naming else None
    counted = [each for each in layers if not each.topology or _place(each.topology) == _place(topology)]
    left_out = [
        f"components and set of {each.origin} are left out: they are for topology {each.topology}"
        for each in layers if each not in counted and (each.components or each.set)
    ]  # fmt: skip
    said = {"topology": [(f"topology {each.topology}", each.origin) for each in naming]}
    said["topology"] = said["topology"] or [("topology default", _DEFAULT)]
    said["components"] = [(f"components {each.components}", each.origin) for each in counted if each.components]
    sets = [(text, each.origin) for each in counted for text in each.set]
    for text, origin in sets:
        said.setdefault(f"set {text.partition('=')[0].strip()}", []).append((f"set {text}", origin))
    winners = [
        (*each[-1], "".join(f", over {by}" for by in dict.fromkeys(by for _, by in each[-2::-1])))
        for each in said.values() if each
    ]  # fmt: skip
    components = next((each.components for each in reversed(counted) if each.components), None)
    return ProjectMachine(topology, components, tuple(text for text, _ in sets), tuple(winners), tuple(left_out))


def _place(topology: str | None) -> str:
    return os.path.realpath(topology) if topology and Path(topology).is_file() else str(topology)


def layers_below(shell: Shell) -> list[MachineLayer]:
    """Return what the project and the environment say, the project first; ConfigError with all that is wrong."""
    problems: list[str] = []
    presets = shell.plugins.topologies
    given = {name: os.environ.get(variable) or None for name, variable in VARIABLES.items()}
    found = [layer for layer in (_project(presets, problems),) if layer is not None]
    if any(given.values()):
        names = {name: _file(given[name], VARIABLES[name], Path(), presets, problems) for name in _FILES}
        sets = [text.strip() for text in (given["set"] or "").split(";") if text.strip()]
        found.append(MachineLayer("environment", **names, set=tuple(Setting(text, VARIABLES["set"]) for text in sets)))
    if problems:
        raise ConfigError(*problems)
    return found


_FILES: Final = ("topology", "components")


def _project(presets: Collection[str], problems: list[str]) -> MachineLayer | None:
    """Return what the nearest pyproject.toml with our table says, relative to the current folder."""
    try:
        here = Path.cwd()
    except OSError:  # a folder that is gone
        return None
    for folder in (here, *here.parents):
        file = Path(os.path.relpath(folder / "pyproject.toml"))
        table = _table(file, problems)
        if table is None:
            continue
        if not isinstance(table, dict):
            problems.append(f"{file}: {_TABLE} must be a table, not {brief(table)}.")
            return None
        for key in table:
            if key not in VARIABLES:
                problems.append(f"{file}: {_TABLE}.{key} must be a known key.{did_you_mean(key, VARIABLES)}")
        names = {
            name: _file(table.get(name), f"{file}: {_TABLE}.{name}", file.parent, presets, problems) for name in _FILES
        }
        place = f"{file}: {_TABLE}.set"
        settings = table.get("set", {})
        if not isinstance(settings, dict):
            problems.append(f"{place} must be a table of keys and values, not {brief(settings)}.")
            settings = {}
        sets = tuple(Setting(f"{key}={value}", place) for key, value in _settings(settings, "", place, problems))
        return MachineLayer(str(file), **names, set=sets)
    return None


def _table(file: Path, problems: list[str]) -> object:
    """Return our table of a pyproject.toml; None where there is none, or the file cannot be read."""
    try:
        text = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        problems.append(f"{file}: must be a file that can be read, but that failed with {error.strerror!r}.")
        return None
    if b"kernbench" not in text:
        return None
    import tomllib

    try:
        tool = tomllib.loads(text.decode()).get("tool")
    except ValueError as error:
        problems.append(f"{file}: must be TOML: {error}.")
        return None
    return tool.get("kernbench") if isinstance(tool, dict) else None


def _file(given: object, place: str, folder: Path, presets: Collection[str], problems: list[str]) -> str | None:
    """Return a preset, or the path of a file below a folder; note what is neither."""
    if given is None:
        return None
    if isinstance(given, str) and given in presets:
        return given
    if isinstance(given, str) and given and (folder / given).is_file():
        return str(folder / given)
    hint = did_you_mean(given, presets) if isinstance(given, str) else ""
    problems.append(f"{place} must be a preset or a file, not {brief(given)}.{hint}")
    return None


def _settings(table: Mapping[str, Any], above: str, place: str, problems: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each dotted key of nested tables, with its value as `--set` takes it; note what is none."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _settings(value, f"{above}{key}.", place, problems)
        elif isinstance(value, str):
            yield f"{above}{key}", value
        elif isinstance(value, bool | int | float | list):
            yield f"{above}{key}", json.dumps(value, default=str)
        else:
            problems.append(f"{place}.{above}{key} must be text, a number, true, false or a list, not {brief(value)}.")


def project_machine(shell: Shell, topology: str | None) -> ProjectMachine:
    """Return the machine below a command line that has this topology, if any, and tell of it."""
    found = machine_of([*layers_below(shell), MachineLayer(_TYPED, topology)])
    found.tell(shell)
    return found


class ProjectPart(RunPart):
    """Has commands with --topology know the machine of the project."""

    NAME, KEPT = "project", False

    @classmethod
    def machine_of(cls, ctx: click.Context, given: Mapping[str, Any], opts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the machine of a call, and tell of it once."""
        found: ProjectMachine | None = ctx.meta.get(__name__)
        if found is None:
            from kernbench_core.cli.shell import Shell

            shell = ctx.ensure_object(Shell)
            typed = MachineLayer(_TYPED, given["topology"], given.get("components"), tuple(given.get("set") or ()))
            below = layers_below(shell)
            found = ctx.meta[__name__] = machine_of([*below, typed])
            if found.components and "components" not in given:
                shell.warn(f"components {found.components} are left out: {ctx.command_path} has none.")
            if below and not opts.get("quiet"):
                found.tell(shell, verbose=bool(opts.get("verbose")))
        return {name: getattr(found, name) for name in VARIABLES}
