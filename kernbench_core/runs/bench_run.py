"""Run a bench: plug-ins, configuration, topology, engine, phase 2, result, files. The command line calls this too."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.errors import KernbenchError, KernbenchWarning, LimitError, UsageError
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.process.collection import no_automatic_collection
from kernbench_core.process.interrupt import WallTime, innermost_user_line
from kernbench_core.process.whole_files import same_folder
from kernbench_core.runs.answers import Correctness, count_hazards
from kernbench_core.runs.manifest import (
    Manifest,
    current_plugins,
    current_versions,
    describe_bench,
    describe_params,
    kept_options,
)
from kernbench_core.runs.options import RunCall, RunOptions, signature_of
from kernbench_core.runs.parts import Request, RunPart, maker_of, parts_of, split_options
from kernbench_core.runs.request import request_of
from kernbench_core.runs.result import RunResult
from kernbench_core.runs.run_progress import RunProgress
from kernbench_core.runs.verdicts import python_reads, verdicts
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.engine.watchdog import Progress
    from kernbench_core.graph import Graph
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.runs.outputs import Outputs
    from kernbench_core.topology.configuration import Config


#: Options of a run that trials of a kernel's configurations have, too.
OF_TRIALS = (
    "device", "seed", "data", "race_by", "materialize", "oob", "pipeline_loops", "placement", "resident", "max_events",
    "max_sim_ns", "timeout_s",
)  # fmt: skip


class RunInterrupted(KeyboardInterrupt):
    """A run was interrupted; `result` holds what had happened until then, all of it where only files are missing.

    `line` is where a bench or kernel was, as "file:line", None where the simulator or one of kernbench's own was.
    """

    def __init__(self, result: RunResult, line: str | None = None) -> None:
        super().__init__(
            f"the run was interrupted{f' in {line}' if line else ''}."
            if result.interrupted
            else "interrupted while the files were written, after the run had ended; each is whole or as it was."
        )
        self.result, self.line = result, line


class StrictError(KernbenchError):
    """A run that was asked to be strict has what it must not have; `result` is what it gave."""

    exit_code = 7

    def __init__(self, result: RunResult, must: str, lines: Iterable[str]) -> None:
        super().__init__("\n".join([f"bench {result.bench!r} must {must}", *lines]))
        self.result = result


class RaceError(StrictError):
    """A run that must have no hazard has some; `result` is what it gave."""


class PythonReadsError(StrictError):
    """A run whose kernels must not compute in Python may have them do so; `result` is what it gave."""


def _refuse(result: RunResult, options: RunOptions) -> None:
    """Raise the StrictError of what a run must not have and has."""
    reads = result.python_reads
    if options.strict_races and result.hazards:
        must = f"have no hazards with --strict-races, and has {count_hazards(result.hazards)}; the first is"
        raise RaceError(result, must, result.hazards[0].lines(orders=result.correctness.orders))
    if options.strict_python and reads is not None and reads.many:
        must = f"leave arithmetic to units with --strict-python, and has {reads.sentence}:"
        raise PythonReadsError(result, must, reads.list_lines())


def run(*args: Any, **given: Any) -> RunResult:
    """Run `bench` on `topology` and return the result.

    `bench` is a registered name, the path of a `.py` file, or a function; `params` are its parameters, as
    values or as command-line texts. `topology` is a preset, a file, or a mapping with what YAML would give (`{"base":
    "tiny", "cube": {"pes": 2}}`), `components` a file merged over it, `set` holds `"key.path=value"` texts merged last,
    or maps keys to values (`{"cube.pes": 2}`). `verify_data` runs phase 2 and compares every tensor
    that the bench checks; `verify_ops` computes every op again, apart from all others, and compares; `data=False`
    keeps shapes only. `backend` names what computes floats, "numpy" or "torch" (`"torch:cuda"` on a GPU); the result's
    `computed_by` says what did. `trace` writes a timeline, `out` a folder with manifest, result, timeline and op log,
    `report` an HTML page to look at; `timeline` keeps it in the result,
    and `level` says how far down it goes. With `cached` the result is taken from the user's cache where the machine,
    the arguments and the code are the same, else it is kept there: it is equal, its `from_cache` says so; `depends`
    names what the bench reads besides, as "data/*.csv" or "$VARIABLE". `explain` has the result say why the run took
    as long as it did, `tcm_map` what the scratchpads held; `strict_races` raises RaceError when there is a
    hazard, `strict_python` a PythonReadsError when kernels read so many elements into Python that they may compute
    there. With `race_by` "program" the programs of one launch are unordered on one PE too, not in order as by default
    ("pe"). With `materialize` "on_demand" kernels may branch on what they computed, and phase 2 confirms it; by default
    ("determined") that is a PendingDataError. With `oob` "poison" loads of elements outside of their tensor give NaN,
    or integers of bytes 0xa5, and stores to them are dropped; the result counts both, which by default ("error") are
    errors. `on_progress` is called with a `Progress` of `kernbench_core.engine` for each step of the run, and about
    four times a second within one, whenever the run comes back to the simulator; a `watcher` (`RunWatcher` of
    `kernbench_builtin.pages.live_pages`) is given pages of what there is so far, too. `plugins`
    default to the installed ones. Relative paths start from the folder that is the current one now.

    Raise the KernbenchError that says what is wrong, and RunInterrupted, with the partial result, for
    Ctrl-C. Nothing is written unless the run ends well.

    `timeout_s` ends whatever the run does: opening the bench, building the machine, simulating, computing the data.
    It cannot end what no signal interrupts, as C code that never looks for one; in another thread than the main one, or
    where the bench uses SIGALRM, it ends the run between events only. The command line ends a process that is in such.
    A bench that calls `os._exit` ends the caller, too, without a word; a process that it forks must end so.

    >>> result = kb.run("gemm", "tiny", {"M": 64, "N": 64, "K": 64}, set=["cube.pes=2"], verify_data=True)
    >>> result.verified
    True
    """
    plugins: Plugins | None = given.get("plugins")
    if plugins is None:
        plugins = load_plugins()
        for failure in plugins.failures:
            warnings.warn(str(failure), stacklevel=2)
    own, asked = split_options(parts_of(plugins), given)
    try:
        _SIGNATURE.bind(*args, **own)
    except TypeError as error:
        raise TypeError(f"run() {error}") from None
    call = RunCall(*args, **own)
    wall = WallTime(call.timeout_s)
    with same_folder() as here:
        with wall.spent_on("reading the configuration"):
            config = configure(plugins, call.topology, call.components, call.set)
        request = request_of(call, asked, config, plugins, here, wall)
        request.ask(lambda part: part.begin(request))
        make = functools.partial(carry_out, request, call.on_progress, wall)
        for part in request.parts:
            make = functools.partial(_around, part, make, plugins)
        result = make()
        if request.out is not None and (why := request.out.only_in_memory(request)):
            warnings.warn(why, KernbenchWarning, stacklevel=2)
        _refuse(result, request.options)
        return result


def _around(part: RunPart, make: Callable[[], RunResult], plugins: Plugins) -> RunResult:
    """Make a run with a part around it; PluginError where that returns something else."""
    result: object = part.around(make)
    if not isinstance(result, RunResult):
        raise plugins.run_parts.fault(part.NAME, f"must return what make() does from around, not {brief(result)}")
    return result


_SIGNATURE = signature_of(RunCall)


def describe_run(plugins: Plugins) -> None:
    """Have `help(kb.run)`, and what completes arguments, know the options of the parts of some plug-ins."""
    parts = (part.OPTIONS for part in parts_of(plugins))
    run.__signature__ = signature_of(RunCall, *parts).replace(return_annotation="RunResult")  # type: ignore[attr-defined]


run.__signature__ = _SIGNATURE.replace(return_annotation="RunResult")  # type: ignore[attr-defined]


def configure(
    plugins: Plugins,
    topology: str | Path | Mapping[str, object],
    components: str | Path | Sequence[str | Path] | None = None,
    sets: Sequence[str] | Mapping[str, object] = (),
) -> Config:
    """Read a topology preset, file or mapping with its overlays and settings; raise ConfigError with every problem.

    Parameters given for another implementation, and that the one that holds lacks, are dropped, with a warning.
    """
    from kernbench_core.runs.preset_files import PresetFiles
    from kernbench_core.topology.configuration import load_config
    from kernbench_core.topology.implementations import settle
    from kernbench_core.topology.machine_kinds import layering_of

    presets = PresetFiles(plugins.topologies)
    overlays = (components,) if isinstance(components, str | Path) else tuple(components or ())
    for name in map(str, (*(() if isinstance(topology, Mapping) else (topology,)), *overlays)):
        if name in presets and not presets[name].is_file():
            raise plugins.topologies.fault(name, f"must have its file, and {str(presets[name])!r} is not there")
    left_out = plugins.topologies.left_out
    loaded = load_config(
        topology, presets=presets, overlays=overlays, sets=sets, defer=True, left_out=left_out,
        layering=layering_of(plugins.machines),
    )  # fmt: skip
    return settle(loaded, plugins.components)


def tell_warnings(graph: Graph) -> None:
    """Warn of what the compiler found; the command line writes it to stderr."""
    for sentence in graph.warnings:
        warnings.warn(sentence, KernbenchWarning, stacklevel=2)


def carry_out(request: Request, on_progress: Callable[[Progress], None] | None, wall: WallTime) -> RunResult:
    """Simulate, verify, sum up within the `wall` time; write the files, for which an exporter has as much again."""
    began = time.perf_counter()
    seen = _Watched(request, on_progress)
    progress = RunProgress(seen.progressed if any(part.watches for part in request.parts) else on_progress)
    engine = _engine(request, progress, wall)
    seen.so_far = lambda: _result(request, engine, {}, began, interrupted=True)
    try:
        with request.bench.importable():
            progress.begin("bench")
            engine.run(_program(request), request.values, name=request.bench.name)
            with wall.spent_on("computing the data"):
                found, outputs = _computed(request, engine, progress)
    except KeyboardInterrupt as stop:
        partial, _ = _result(request, engine, {}, began, interrupted=True)
        engine.close()
        line = innermost_user_line(stop.__traceback__, shipped=False)
        raise RunInterrupted(attrs.evolve(partial, unwritten=request.files), line) from None
    except LimitError as error:
        lines = [str(error)]
        for part in request.parts:
            with suppress(Exception):  # of a machine that stopped in the middle; the limit is told in any case
                lines += part.cut_short(engine)
        raise LimitError("\n  ".join(lines)) from error
    progress.begin("summing")
    with wall.spent_on("summing up the run"):
        made, answers = _result(request, engine, found, began)
        result = attrs.evolve(made, outputs=outputs)
    _refuse(result, request.options)
    if request.files:
        progress.begin("writing")
    _write_files(request, result, answers, engine)
    return result


def _computed(request: Request, engine: GraphEngine, progress: RunProgress) -> tuple[dict[str, Any], Outputs]:
    """Return what the result says of data, verified where that is asked for, and what kernels wrote."""
    from kernbench_core.runs.outputs import LaterExecutor, outputs_of

    executor = LaterExecutor(engine.op_log, engine.store, engine.functions, request.backend)
    verification, ops = verdicts(request.options, engine, executor, progress, maker_of, request.check_ops)
    outputs = outputs_of(engine.shared, engine.store, executor)
    if request.options.outputs or (request.options.verify_data and request.out is not None):
        progress.begin("computing")
        outputs.compute()
    return {"verification": verification, "op_verification": ops, "computed_by": executor.computed_by}, outputs


@attrs.define
class _Watched:
    """Tells parts, and who called, how far the run is."""

    request: Request
    on_progress: Callable[[Progress], None] | None
    so_far: Callable[[], tuple[RunResult, Mapping[str, Any]]] | None = None

    def progressed(self, progress: Progress) -> None:
        if self.on_progress is not None:
            self.on_progress(progress)
        self.request.ask(lambda part: part.progressed(progress, self.so_far))


def _program(request: Request) -> Callable[..., Any]:
    """Return the host program of a run: the bench's function, or what launches a kernel alone."""
    options: dict[str, Any] = {name: getattr(request.options, name) for name in OF_TRIALS}
    trial = functools.partial(run, topology=request.config.data, plugins=request.plugins, **options)
    return request.bench.host_program(request.options.launch_grid, trial)


def _engine(request: Request, progress: RunProgress, wall: WallTime) -> GraphEngine:
    """Build the machine of a run, and the session on it."""
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.kernel.tl.language import op_functions
    from kernbench_core.topology.compilation import compile_topology
    from kernbench_core.topology.machine_kinds import require_kernels

    options = request.options
    plugins = request.plugins
    require_kernels(request.config, plugins.machines, "run a bench")
    observers = request.ask(lambda part: part.observer())
    for name, observer in observers.items():
        if observer is not None and not hasattr(observer, "attach"):
            raise plugins.run_parts.fault(name, f"must give a RunObserver as its observer, not {brief(observer)}")
    progress.begin("building")
    with wall.spent_on("building the machine"):
        graph = compile_topology(request.config, plugins)
        tell_warnings(graph)
        engine = GraphEngine(
            graph,
            plugins.components,
            data=options.data,
            seed=options.seed,
            device=options.device,
            limits=options.limits,
            on_progress=progress.on_tick,
            functions=op_functions(plugins.ops),
            observers=[each for each in observers.values() if each is not None],
            scratchpads=next(filter(None, (part.scratchpads() for part in request.parts)), None),
            meter=next(filter(None, (part.meter() for part in request.parts)), None),
            race_by=options.race_by,
            materialize=options.materialize,
            oob=options.oob,
            pipeline_loops=options.pipeline_loops,
            placement=options.placement,
            resident=options.resident,
            plugins=plugins,
            wall=wall,
            inputs=request.inputs,
        )
    progress.watch(engine)
    if (options.verify_data or options.verify_ops) and engine.hardware.op_logger is not None:
        engine.hardware.op_logger.sites = {}  # for what is said of wrong data
    return engine


@no_automatic_collection()
def _write_files(request: Request, result: RunResult, answers: Mapping[str, Any], engine: GraphEngine) -> None:
    """Write what is asked for, each file whole or not at all; let each part end."""
    try:
        request.ask(lambda part: part.end(result, answers), OSError)
        if request.out is not None:
            with request.out.whole(request, result, engine.functions) as folder:
                request.ask(lambda part: part.save(folder, answers), OSError)
    except OSError as error:
        raise UsageError(
            f"the files of {' and '.join(request.files)} must be writable, but {error.filename!r} "
            f"failed with {error.strerror!r} after the run had ended well; make room or name another place."
        ) from error
    except KeyboardInterrupt:
        raise RunInterrupted(result) from None


@no_automatic_collection()
def _result(
    request: Request, engine: GraphEngine, verified: Mapping[str, Any], began: float, *, interrupted: bool = False
) -> tuple[RunResult, Mapping[str, Any]]:
    """Return what there is of a run now, and what each of its parts answers."""
    manifest = manifest_of(request, None)
    answers = request.ask(lambda part: part.answer(engine))
    kernels, on_demand, words = engine.device.kernels, engine.device.on_demand, request.bench.data_words
    uncompared, failed = ("", False) if words is None else words(on_demand.host_reads)
    correctness = Correctness(
        **verified,
        hazards=engine.device.hazards.found(),
        outside=() if kernels.outside is None else kernels.outside.found(),
        branch_values=on_demand.branch_values,
        host_reads=on_demand.host_reads,
        orders=request.bench.orders,
        uncompared=uncompared,
        failed=failed,
        python_reads=python_reads(kernels),
    )
    result = RunResult(
        bench=request.bench.name,
        params=manifest.params,
        topology=request.topology,
        device=request.options.device,
        timing=engine.get_timing_result(),
        wall_s=time.perf_counter() - began,
        op_log_sha256=None if interrupted else engine.op_log,
        manifest=manifest.to_json(),
        op_log=engine.op_log,
        store=engine.store,
        correctness=correctness,
        rows=engine.rows,
        parts=_kept(request, answers),
        asked=tuple(part.NAME for part in request.parts if part.asked),
        interrupted=interrupted,
    )
    concluded = request.ask(lambda part: part.conclude(answers[part.NAME], result))
    return attrs.evolve(result, parts=_kept(request, concluded)), concluded


def _kept(request: Request, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers that a result has, None for those of parts that it is without."""
    kept = {part.NAME: answers[part.NAME] for part in request.parts if part.KEPT}
    return dict.fromkeys(request.kept_parts) | kept


def manifest_of(request: Request, op_log_sha256: str | None) -> Manifest:
    """Say how to run again what was asked for, and the op log that it gave."""
    copied = request.out is not None
    depends = {"depends": request.depends} if request.depends else {}
    return Manifest(
        bench=describe_bench(request.bench, copied=copied, inputs=request.inputs.kept) | depends,
        params=describe_params(request.values, request.given, copied=copied),
        topology=request.topology,
        configuration=dict(request.config.data),
        options=kept_options(request.options),
        versions=current_versions(),
        plugins=current_plugins(request.plugins),
        changes=request.changes,
        op_log_sha256=op_log_sha256,
    )
