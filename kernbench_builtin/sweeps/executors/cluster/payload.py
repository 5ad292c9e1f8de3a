"""What a sweep needs on another machine: its files, laid there as they lie here, and the same code.

Files that are sent are those that the plan names: the bench with its own modules, the topology with its bases, the
files of components, figures and plug-ins, and parameters that are files. What a bench opens by itself is not.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kernbench_builtin.sweeps.plan import TRITON, SweepPlan
from kernbench_core.host.sources import file_and_function, read_sources
from kernbench_core.package import __version__
from kernbench_core.plugins import Plugins
from kernbench_core.plugins.chosen import FILES, STRICT, WITHOUT, Chosen
from kernbench_core.process.whole_files import is_file
from kernbench_core.runs.bench_run import configure

_CORE: Final = "kernbench_core"
_TOLD: Final = "sweep.json"


def pack(plan: SweepPlan, plugins: Plugins) -> bytes:
    """Return a zip file of the files, with what must be installed, where to start, and which plug-ins are wanted.

    A file that is not there is left out: whoever runs a point says so.
    """
    environment = {FILES: "", WITHOUT: "", STRICT: "", **Chosen.of_environment().environment()}
    told = {"installed": installed(plugins), "start": str(Path.cwd()), "environment": environment}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        archive.writestr(_TOLD, json.dumps(told))
        for path in sorted(set(map(os.path.abspath, _paths(plan, plugins)))):
            if is_file(Path(path)):
                archive.write(path)
    return packed.getvalue()


def unpack(archive: Path, folder: Path) -> dict[str, Any]:
    """Lay the files below a folder as they lie where they are from; return the rest, with paths as they are now."""
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    told: dict[str, Any] = json.loads((folder / _TOLD).read_bytes())
    told["start"] = f"{folder}{told['start']}"
    Path(told["start"]).mkdir(parents=True, exist_ok=True)
    told["environment"][FILES] = os.pathsep.join(sent_to(folder, told["environment"][FILES].split(os.pathsep)))
    return told


def sent_to(folder: Path, value: Any) -> Any:
    """Return plain data in which absolute paths of files that were sent lead to where they lie below `folder`."""
    if isinstance(value, Mapping):
        return {name: sent_to(folder, each) for name, each in value.items()}
    if isinstance(value, list):
        return [sent_to(folder, each) for each in value]
    if not isinstance(value, str):
        return value
    path = value.removeprefix(TRITON)
    file = (file_and_function(path) or (path,))[0]
    is_sent = file.startswith(os.sep) and is_file(Path(f"{folder}{file}"))
    return f"{value.removesuffix(path)}{folder}{path}" if is_sent else value


def sent_from(folder: Path, value: Any) -> Any:
    """Return plain data in which paths below `folder` are those of the files where they were sent from."""
    return json.loads(json.dumps(value).replace(json.dumps(str(folder))[1:-1], ""))


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


def installed(plugins: Plugins) -> dict[str, str]:
    """Return what is installed here, kernbench and plug-ins: versions, and digests of the files of their packages.

    Models are code, and code of one version may differ in a working copy. Plug-ins that are files are sent.
    """
    here = {"kernbench": f"{__version__} with files {digest_of(_CORE)}"}
    for source in plugins.sources:
        if not source.file:
            files = digest_of(source.module.partition(".")[0])
            here[f"plug-in {source.name!r}"] = f"of {source.provider} with files {files}"
    return here


def difference(there: Mapping[str, str], here: Mapping[str, str]) -> str | None:
    """Return how what is installed there differs from here, in a sentence without its subject; None if it does not."""
    for name in {**here, **there}:
        wanted, found = here.get(name, "left out"), there.get(name, "left out")
        if wanted != found:
            what = f"must have {name} {wanted}, as is here, not {found}"
            return f"{what}; install the same there, and start the worker again."
    return None


@functools.cache
def digest_of(package: str) -> str:
    """Return a digest of the files of a package or module, and of their names, as they are when it is asked for first.

    Later changes are of code that is not loaded: a worker has to be started anew for them.
    """
    spec = importlib.util.find_spec(package)
    digest = hashlib.sha256()
    for root in map(Path, [] if spec is None else spec.submodule_search_locations or [str(spec.origin)]):
        for path in sorted((root, *root.rglob("*"))):
            name = path.relative_to(root.parent)
            if path.is_file() and not any(part[0] == "." or part == "__pycache__" for part in name.parts):
                digest.update(f"{name.as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:12]
