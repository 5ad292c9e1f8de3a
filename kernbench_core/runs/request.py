"""A run that can begin: what its options name is found, read and checked, and nothing has started or been written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
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
from kernbench_core.process.whole_files import check_file
from kernbench_core.runs.bundle import Bundle, bundle_file
from kernbench_core.runs.manifest import configuration_changes
from kernbench_core.runs.options import RunCall, RunOptions
from kernbench_core.runs.run_folder import OutFolder, check_room, out_folder
from kernbench_core.runs.trace import TraceFile, open_trace

if TYPE_CHECKING:
    from kernbench_core.runs.watching import RunWatcher
    from kernbench_core.topology.configuration import Config


@attrs.frozen
class Request:
    """One run: its options, and what they stand for.

    `given` are the parameters of the bench as they were given, `values` what they are; `topology` is the name to show,
    `changes` what was laid over it, as far as that is known. `depends` are the places that the bench says that
    it reads, with the SHA-256 of what they hold.
    """

    options: RunOptions
    bench: Bench
    given: Mapping[str, object]
    values: Mapping[str, Any]
    topology: str
    config: Config
    plugins: Plugins
    inputs: Inputs
    trace: TraceFile | None = None
    out: OutFolder | None = None
    bundle: Bundle | None = None
    report: Path | None = None
    changes: Mapping[str, Any] | None = None
    depends: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def wants_timeline(self) -> bool:
        """Whether it is to be noted what happened when."""
        trace = self.trace is not None and self.trace.takes == "timeline"
        kept = isinstance(self.options, RunCall) and self.options.timeline
        return trace or kept or self.out is not None or self.is_explained_on_a_page

    @property
    def watcher(self) -> RunWatcher | None:
        """Who watches the run."""
        return self.options.watcher if isinstance(self.options, RunCall) else None

    @property
    def is_explained_on_a_page(self) -> bool:
        """Whether a page of the run is drawn, which explains it."""
        return self.report is not None or self.watcher is not None

    @property
    def files(self) -> tuple[str, ...]:
        """The options of what is written when the run has ended well."""
        asked = {"--out": self.out, "--report": self.report, "--trace": self.trace, "--bundle": self.bundle}
        return tuple(option for option, file in asked.items() if file is not None)

    @property
    def keeps_inputs(self) -> bool:
        """Whether the sources and inputs are kept beside the manifest."""
        return self.out is not None or self.bundle is not None


def request_of(call: RunCall, config: Config, plugins: Plugins, here: Path, wall: WallTime) -> Request:
    """Find what a call names, relative to the folder `here`, within the `wall` time.

    Raise the KernbenchError that says what is missing, wrong, or in the way of a file that is to be written.
    """
    if call.backend != "numpy":
        from kernbench_core.compute.backends import backend_of

        backend_of(call.backend)  # before anything else takes time
    with wall.spent_on("loading the exporter"):
        trace = None if call.trace is None else open_trace(call.trace, plugins.exporters)
    out = out_folder(call.out)
    report = None if call.report is None else check_file("report", Path(call.report), ".html")
    bundle = bundle_file(call.bundle, {"topology": call.topology, "components": call.components})
    _check_outputs(call, out, None if trace is None else trace.path)
    with wall.spent_on("opening the bench"):
        bench = open_program(call.bench, plugins)
    call = for_bench(call, bench)
    given = dict(call.params or {})
    values = bench.values(given, here)
    if out is not None:
        check_room(out, bench, values)
    if bundle is not None and bench.sources is None and not bench.registered:
        raise UsageError(
            f"a bundle needs a registered bench or a .py file, not the function {bench.name!r}; write that to a file."
        )
    request = Request(
        options=call,
        bench=bench,
        given=given,
        values=values,
        topology=_shown(call.topology),
        config=config,
        plugins=plugins,
        inputs=Inputs((*(() if bench.sources is None else (bench.sources.folder,)), here)),
        trace=trace,
        out=out,
        bundle=bundle,
        report=report,
        changes=configuration_changes(call),
        depends=_depends(call, bench, here),
    )
    _check_timeline(request)
    return request


def _depends(call: RunCall, bench: Bench, here: Path) -> dict[str, str]:
    """Return the places that the bench and the call say that it reads, with the SHA-256 of what they hold."""
    said: tuple[str, ...] = getattr(bench.function, "kernbench_depends", ())
    if not (said or call.depends):
        return {}
    from kernbench_core.cache.dependencies import digest_of, places_of

    folder = here if bench.sources is None else bench.sources.folder
    return {place: digest_of(place) for place in (*places_of(said, folder), *places_of(call.depends, here))}


def for_bench(call: RunCall, bench: Bench) -> RunCall:
    """Return the options of a run with the defaults of its bench; UsageError for a grid of what has none."""
    if bench.program is None:
        if call.grid is not None:
            raise UsageError(f"--grid is that of a kernel that is run alone, and {bench.name!r} is a bench; drop it.")
        return call
    bench.host_program(call.launch_grid, None)  # which says what is missing
    kept: dict[str, Any] = {"outputs": True} if call.out is not None and call.data else {}
    fields = {field.name: field for field in attrs.fields(RunOptions)}
    unsaid = {name: value for name, value in bench.defaults.items() if getattr(call, name) == fields[name].default}
    return attrs.evolve(call, **kept, **unsaid)


def _check_timeline(request: Request) -> None:
    """Raise UsageError where a part of a timeline is asked for, and none is made."""
    if request.wants_timeline:
        return
    for name in ("window", "level"):
        if getattr(request.options, name) != getattr(attrs.fields(RunOptions), name).default:
            raise UsageError(
                f"--{name} says which part of its timeline a run keeps, and must come with --trace, --out, --report or "
                f"--web (in Python also timeline=True), not alone; leave out --{name}, or give one of them."
            )


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


def _check_outputs(call: RunCall, out: OutFolder | None, trace: Path | None) -> None:
    """Raise UsageError where a file would be written over another one of this run."""
    inputs: Iterable[object] = (call.bench, call.topology, call.components)
    taken = {os.path.realpath(_file(path)): path for path in inputs if isinstance(path, str | Path)}
    for what, path in (("trace", trace), ("bundle", call.bundle), ("report", call.report)):
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken or (out is not None and out.holds(Path(place))):
            raise UsageError(
                f"--{what} must be a file of its own, not {str(getattr(call, what))!r}, which this run also uses; give "
                "another name."
            )
        taken[place] = path
