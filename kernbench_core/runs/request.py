"""A run that can begin: what its options name is found, read and checked, and nothing has started or been written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.host.bench import Bench
from kernbench_core.host.inputs import Inputs
from kernbench_core.host.programs import open_program
from kernbench_core.host.sources import file_and_function
from kernbench_core.plugins import Plugins
from kernbench_core.process.interrupt import WallTime
from kernbench_core.runs.backends import open_backend
from kernbench_core.runs.manifest import configuration_changes
from kernbench_core.runs.options import OptionRecord, RunCall, RunOptions
from kernbench_core.runs.parts import Request, RunFolder, RunPart, checker_of_ops, folder_of, part_blamed, wanted_parts

if TYPE_CHECKING:
    from kernbench_core.topology.configuration import Config


def request_of(
    call: RunCall,
    asked: Sequence[tuple[type[RunPart], OptionRecord]],
    config: Config,
    plugins: Plugins,
    here: Path,
    wall: WallTime,
) -> Request:
    """Find what a call names, relative to the folder `here`, within the `wall` time; `asked` are options of parts.

    Raise the KernbenchError that says what is missing, wrong, or in the way of a file that is to be written.
    """
    backend = open_backend(plugins, call.backend)  # before anything else takes time
    check_ops = checker_of_ops(plugins) if call.verify_ops else None
    parts = []
    for part, options, direct in wanted_parts(asked, call, plugins):
        with wall.spent_on(part.BEGINS), part_blamed(part, plugins.run_parts, OSError):
            parts.append(part(options, call, plugins))
        parts[-1].asked = direct
    out = folder_of(plugins, call.out, tuple(name for part in parts for name in part.SAVES))
    _check_outputs(call, out, parts)
    with wall.spent_on("opening the bench"):
        bench = open_program(call.bench, plugins)
    call = with_bench_defaults(call, bench)
    given = dict(call.params or {})
    values = bench.values(given, here)
    request = Request(
        options=call,
        bench=bench,
        given=given,
        values=values,
        topology=_shown(call.topology),
        config=config,
        plugins=plugins,
        backend=backend,
        check_ops=check_ops,
        inputs=Inputs((*(() if bench.sources is None else (bench.sources.folder,)), here)),
        out=out,
        parts=tuple(parts),
        kept_parts=tuple(part.NAME for part, _ in asked if part.KEPT),
        changes=configuration_changes(call),
        depends=_depends(call, bench, here),
    )
    if out is not None:
        out.check_room(request)
    return request


def _depends(call: RunCall, bench: Bench, here: Path) -> dict[str, str]:
    """Return the places that the bench and the call say that it reads, with the SHA-256 of what they hold."""
    said: tuple[str, ...] = getattr(bench.function, "kernbench_depends", ())
    if not (said or call.depends):
        return {}
    from kernbench_core.cache.dependencies import digest_of, places_of

    folder = here if bench.sources is None else bench.sources.folder
    return {place: digest_of(place) for place in (*places_of(said, folder), *places_of(call.depends, here))}


def with_bench_defaults(call: RunCall, bench: Bench) -> RunCall:
    """Return the options of a run with the defaults of its bench; UsageError for a grid of what has none."""
    if bench.program is None:
        if call.grid is not None:
            raise UsageError(f"--grid must be given with a kernel, and {bench.name!r} is a bench; drop it.")
        return call
    bench.host_program(call.launch_grid, None)  # which says what is missing
    kept: dict[str, Any] = {"outputs": True} if call.out is not None and call.data else {}
    fields = {field.name: field for field in attrs.fields(RunOptions)}
    unsaid = {name: value for name, value in bench.defaults.items() if getattr(call, name) == fields[name].default}
    return attrs.evolve(call, **kept, **unsaid)


def _shown(topology: str | Path | Mapping[str, object]) -> str:
    """Return what a result calls the machine: of a file elsewhere its name, of a mapping its title, or its base."""
    if not isinstance(topology, Mapping):
        return Path(topology).name if Path(topology).is_absolute() else str(topology)
    title, base = topology.get("title"), topology.get("base")
    if isinstance(title, str) and title.strip():
        return title
    return f"{_shown(base)} (changed)" if isinstance(base, str) else "a mapping"


def _file(given: str | Path) -> str:
    """Return the path of a file without the function that may be named behind it."""
    found = file_and_function(str(given))
    return str(given) if found is None else found[0]


def _check_outputs(call: RunCall, out: RunFolder | None, parts: Iterable[RunPart]) -> None:
    """Raise UsageError where a file would be written over another one of this run."""
    inputs: Iterable[object] = (call.bench, call.topology, call.components)
    taken = {os.path.realpath(_file(path)) for path in inputs if isinstance(path, str | Path)}
    written = [(name, file, getattr(part.options, name, file)) for part in parts for name, file in part.files.items()]
    for name, path, given in written:
        place = os.path.realpath(str(path))
        if place in taken or (out is not None and out.holds(Path(place))):
            raise UsageError(
                f"--{name} must be a file of its own, not {str(given)!r}, which this run also uses; give another name."
            )
        taken.add(place)
