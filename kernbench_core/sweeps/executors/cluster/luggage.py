"""The files that a sweep needs on another machine, laid there as they lie here, so that paths mean the same.

What travels is what the plan names: the bench with its own modules, the topology with its bases, the files of
components, figures and plug-ins, and parameters that are files. What a bench opens by itself does not travel.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.host.sources import file_and_function, read_sources
from kernbench_core.plugins import Plugins
from kernbench_core.process.whole_files import is_file
from kernbench_core.registration.chosen import FILES, STRICT, WITHOUT, Chosen
from kernbench_core.runs.bench_run import configure
from kernbench_core.sweeps.plan import TRITON, SweepPlan

#: Of all files together, in bytes: each worker holds them in memory while it unpacks them.
MOST_BYTES: Final = 64 << 20


@attrs.frozen
class Luggage:
    """What goes to each worker before its first point.

    `sweep` is a name that no other sweep has, `files` are bytes by absolute path, `start` is the folder that the sweep
    was started in, `environment` says which plug-ins are wanted.
    """

    files: Mapping[str, bytes]
    start: str
    environment: Mapping[str, str] = attrs.field(factory=dict)
    sweep: str = attrs.field(factory=lambda: secrets.token_hex(6))

    def packed(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "sweep": self.sweep,
            "files": dict(self.files),
            "start": self.start,
            "environment": dict(self.environment),
        }


def pack(plan: SweepPlan, plugins: Plugins) -> Luggage:
    """Return what a plan needs elsewhere; UsageError where that is more than can travel.

    A file that is not there is left out: whoever runs a point says so.
    """
    files: dict[str, bytes] = {}
    for path in map(os.path.abspath, _paths(plan, plugins)):
        if path not in files and is_file(Path(path)):
            files[path] = _read(path, MOST_BYTES - sum(map(len, files.values())))
    chosen = Chosen.of_environment().environment()
    environment = {name: chosen.get(name, "") for name in (FILES, WITHOUT, STRICT)}
    return Luggage(files, str(Path.cwd()), environment)


def _read(path: str, room: int) -> bytes:
    size = Path(path).stat().st_size
    if size > room:
        raise UsageError(
            f"the files that a sweep sends to its workers must have at most {MOST_BYTES >> 20} MiB together, and with "
            f"the {size / 2**20:.1f} MiB of {path!r} they have more; let the bench open it in a folder that all "
            "machines share."
        )
    return Path(path).read_bytes()


def _paths(plan: SweepPlan, plugins: Plugins) -> Iterator[str]:
    """Yield paths of what may be a file that a plan needs, as they are given or absolute."""
    for named in (plan.bench.removeprefix(TRITON), plan.figures, *Chosen.of_environment().files):
        file = None if named is None else file_and_function(named)
        if file is not None and is_file(Path(file[0])):
            sources = read_sources(Path(file[0]))
            yield from (str(sources.folder / name) for name in sources.files)
    axis = plan.axis("topology")
    for topology in (plan.topology,) if axis is None else axis.values:
        yield from configure(plugins, topology, plan.components).sources
    values = [*plan.set.values(), *plan.params.values(), *plan.arguments]
    values += [value for axis in plan.axes for value in axis.values]
    yield from (value for value in values if isinstance(value, str) and "\0" not in value)


def unpack(packed: Mapping[str, Any], folder: Path) -> tuple[Path, dict[str, str]]:
    """Lay files below a folder as they lie where they are from; return where to start there, and the environment."""
    for path, data in packed["files"].items():
        place = _below(folder, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    start = _below(folder, packed["start"])
    start.mkdir(parents=True, exist_ok=True)
    environment = dict(packed["environment"])
    plugins = environment.get(FILES, "").split(os.pathsep)
    return start, environment | {FILES: os.pathsep.join(_moved(path, folder) for path in plugins)}


def unpacked(value: Any, folder: Path) -> Any:
    """Return plain data in which absolute paths of files that travelled lead to where they lie below `folder`."""
    if isinstance(value, Mapping):
        return {name: unpacked(each, folder) for name, each in value.items()}
    if isinstance(value, list):
        return [unpacked(each, folder) for each in value]
    return _moved(value, folder) if isinstance(value, str) else value


def untravelled(value: Any, folder: Path) -> Any:
    """Return plain data in which paths below `folder` are those of the files where they travelled from."""
    found: Any = json.loads(json.dumps(value).replace(json.dumps(str(folder))[1:-1], ""))
    return found


def _moved(text: str, folder: Path) -> str:
    path = text.removeprefix(TRITON)
    named = file_and_function(path)
    file = path if named is None else named[0]
    if not file.startswith(os.sep) or not is_file(_below(folder, file)):
        return text
    return f"{text[: len(text) - len(path)]}{folder}{path}"


def _below(folder: Path, path: str) -> Path:
    return folder / path.lstrip(os.sep)
