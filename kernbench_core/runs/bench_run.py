"""Run a bench: plug-ins, configuration, topology, engine, phase 2, result, files. The command line calls this too."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.callsite import user_traceback
from kernbench_core.errors import (
    ConfigError,
    ExecutionError,
    KernbenchError,
    KernbenchWarning,
    KernelError,
    UsageError,
    blamed,
    in_words,
)
from kernbench_core.host.bench import Bench, open_bench
from kernbench_core.host.inputs import Inputs
from kernbench_core.memory.hazard import RACE_BY
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.process.interrupt import INTERRUPTS, WallTime, doing
from kernbench_core.process.whole_files import same_folder
from kernbench_core.runs.bundle import Bundle, bundle_file
from kernbench_core.runs.manifest import Manifest, current_plugins, current_versions, describe_bench, describe_params
from kernbench_core.runs.result import RunResult, count_hazards
from kernbench_core.runs.run_folder import OutFolder, check_room, out_folder, write_out
from kernbench_core.runs.trace import TraceFile, open_trace

if TYPE_CHECKING:
    from kernbench_core.callsite import CallSite
    from kernbench_core.compute.executor import DataExecutor
    from kernbench_core.compute.verification import Verification
    from kernbench_core.engine.watchdog import Limits, Progress
    from kernbench_core.explain.explanation import Recorder
    from kernbench_core.explain.wrong_data import WrongData
    from kernbench_core.graph import Graph
    from kernbench_core.host.runtime import Expectation
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.oplog.log import OpRecord
    from kernbench_core.topology.configuration import Config
    from kernbench_core.values.value import OpId


class RunInterrupted(KeyboardInterrupt):
    """A run was interrupted; `result` holds what had happened until then, all of it where only files are missing."""

    def __init__(self, result: RunResult) -> None:
        super().__init__(
            "the run was interrupted"
            if result.interrupted
            else "interrupted while the files were written, after the run had ended; each is whole or as it was."
        )
        self.result = result


class RaceError(KernbenchError):
    """A run that must have no hazard has some; `result` is what it gave."""

    exit_code = 7

    def __init__(self, result: RunResult) -> None:
        what = count_hazards(result.hazards)
        super().__init__(
            f"bench {result.bench!r} must have no hazards with --strict-races, and has {what}; the first is\n"
            + "\n".join(result.hazards[0].lines())
        )
        self.result = result


@attrs.frozen
class Request:
    """Everything that one run is asked to do, checked, with nothing started and nothing written."""

    bench: Bench
    given: Mapping[str, Any]
    values: Mapping[str, Any]
    topology: str
    config: Config
    device: str
    data: bool
    verify_data: bool
    seed: int
    limits: Limits
    trace: TraceFile | None
    out: OutFolder | None
    plugins: Plugins
    inputs: Inputs
    bundle: Bundle | None = None
    explain: bool = False
    tcm_map: bool = False
    strict_races: bool = False
    verify_ops: bool = False
    race_by: str = "pe"

    @property
    def keeps_inputs(self) -> bool:
        """Whether the sources and inputs are kept beside the manifest."""
        return self.out is not None or self.bundle is not None


def run(
    bench: str | Path | Callable[..., Any],
    topology: str | Path = "default",
    params: Mapping[str, Any] | None = None,
    *,
    components: str | Path | None = None,
    set: Iterable[str] = (),
    device: str = "all",
    verify_data: bool = False,
    verify_ops: bool = False,
    data: bool = True,
    seed: int = 0,
    trace: str | Path | None = None,
    out: str | Path | None = None,
    bundle: str | Path | None = None,
    explain: bool = False,
    tcm_map: bool = False,
    strict_races: bool = False,
    race_by: str = "pe",
    max_events: int | None = None,
    max_sim_ns: float | None = None,
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    plugins: Plugins | None = None,
) -> RunResult:
    """Run `bench` on `topology` and return the result.

    `bench` is a registered name, the path of a `.py` file, or a function; `params` are its parameters, as
    values or as command-line texts. `topology` is a preset or a file, `components` a file merged over it,
    `set` holds `"key.path=value"` texts merged last. `verify_data` runs phase 2 and compares every tensor
    that the bench checks; `verify_ops` compares every op with itself computed anew, apart from all others; `data=False`
    keeps shapes only. `trace` writes a timeline, `out` a folder with manifest, result and op log, `bundle` one file
    that `rerun` takes anywhere. `explain` has the result say why the run took as long as it did, `tcm_map` what the
    scratchpads held; `strict_races` raises RaceError when there is a hazard. With `race_by`
    "program" the programs of one launch are unordered on one PE too, not in order as by default ("pe"). `plugins`
    default to the installed ones. Relative paths start from the folder that is the current one now.

    Raise the KernbenchError that tells what is wrong, and RunInterrupted, with the partial result, for
    Ctrl-C. Nothing is written unless the run ends well.

    `timeout_s` ends whatever the run does: opening the bench, building the machine, simulating, computing the data.
    It cannot end code written in C that does not return (`pow(3, 10**9)`, a regular expression that explodes), in
    another thread than the main one also no sleep and no wait; only the command line ends a process that is in such.
    A bench that calls `os._exit` ends the caller, too, without a word. One that it forks, and that comes back, gets a
    KernelError.
    """
    from kernbench_core.engine.watchdog import Limits

    limits, wall = Limits(max_events, max_sim_ns, timeout_s), WallTime(timeout_s)
    _check_paths(bench, topology, {"components": components, "trace": trace, "out": out, "bundle": bundle})
    if plugins is None:
        plugins = load_plugins()
        for failure in plugins.failures:
            warnings.warn(str(failure), stacklevel=2)
    _check_values(seed, params, set)
    if race_by not in RACE_BY:
        raise UsageError(f"race_by must be {' or '.join(map(repr, RACE_BY))}, not {race_by!r}.")
    for wanted, option in ((verify_data, "--verify-data"), (verify_ops, "--verify-ops")):
        if wanted and not data:
            raise UsageError(f"verifying data needs data; leave out either {option} or --no-data.")
    files = {"trace": trace, "bundle": bundle}
    with same_folder() as here:
        config = configure(plugins, topology, components, tuple(set))
        folder = out_folder(out)
        outputs = {
            "trace": None if trace is None else open_trace(trace, plugins.exporters),
            "out": folder,
            "bundle": bundle_file(bundle, {"topology": topology, "components": components}),
        }
        taken = (bench, topology, components)
        _check_outputs({what: path for what, path in files.items() if path is not None}, folder, taken)
        with wall.spent_on("opening the bench"):
            found = open_bench(bench, plugins.benches)
        given = dict(params or {})
        request = Request(
            bench=found,
            given=given,
            values=found.values(given, here),
            topology=str(topology) if not Path(topology).is_absolute() else Path(topology).name,
            config=config,
            device=device,
            data=data,
            verify_data=verify_data,
            seed=seed,
            limits=limits,
            plugins=plugins,
            inputs=Inputs((*(() if found.sources is None else (found.sources.folder,)), here)),
            explain=explain,
            tcm_map=tcm_map,
            strict_races=strict_races,
            verify_ops=verify_ops,
            race_by=race_by,
            **outputs,  # type: ignore[arg-type]
        )
        if request.out is not None:
            check_room(request.out, found, request.values)
        if request.bundle is not None and found.sources is None and not found.registered:
            raise UsageError(f"a bundle needs a registered bench or a .py file, not the function {found.name!r}.")
        return carry_out(request, on_progress, wall)


def _check_outputs(outputs: Mapping[str, str | Path], out: OutFolder | None, inputs: Iterable[object]) -> None:
    """Raise UsageError where a file would be written over another one of this run."""
    taken = {os.path.realpath(path): path for path in inputs if isinstance(path, str | Path)}
    for what, path in outputs.items():
        if os.path.realpath(path) in taken or (out is not None and out.holds(Path(os.path.realpath(path)))):
            raise UsageError(f"--{what} must be a file of its own, not {str(path)!r}, which this run also uses.")
        taken[os.path.realpath(path)] = path


def _check_paths(bench: object, topology: object, files: Mapping[str, object]) -> None:
    if not callable(bench):
        require_path("bench", bench, "a registered name, the path of a .py file, or a function")
    require_path("topology", topology, "a preset or the path of a file")
    for what, path in files.items():
        if path is not None:
            require_path(what, path, "a path, as text or a Path, or None")


def _check_values(seed: object, params: object, settings: object) -> None:
    if not isinstance(seed, int) or seed < 0:
        raise UsageError(f"the seed must be an integer of at least 0, not {seed!r}; give another --seed.")
    if not isinstance(params, Mapping | None):
        raise UsageError(f"params must be a mapping of names to values, not {params!r}.")
    if isinstance(settings, str | Mapping):
        raise UsageError(f"set must be a list of 'key.path=value' texts, not {settings!r}.")


def require_path(what: str, given: object, must_be: str) -> None:
    """Raise UsageError when `given` cannot be a path."""
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise UsageError(f"{what} must be {must_be}, not {given!r}.")


def configure(
    plugins: Plugins,
    topology: str | Path,
    components: str | Path | Sequence[str | Path] | None = None,
    sets: tuple[str, ...] = (),
) -> Config:
    """Read a topology preset or file with its overlays and settings; raise ConfigError with every problem.

    Parameters given for another implementation, and that the one that holds lacks, are dropped, with a warning.
    """
    from kernbench_core.topology.configuration import load_config
    from kernbench_core.topology.implementations import settle

    presets = {}
    for name, entry in plugins.topologies.items():
        try:
            package, _, resource = entry.target.partition(":")
            presets[name] = Path(str(resources.files(package) / resource))
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            if name == topology:
                raise plugins.topologies.raised(name, error) from error
    overlays = (components,) if isinstance(components, str | Path) else tuple(components or ())
    loaded = load_config(topology, presets=presets, overlays=overlays, sets=sets, defer=True)
    return settle(loaded, plugins.components)


def tell_warnings(graph: Graph) -> None:
    """Warn of what the compiler found; the command line writes it to stderr."""
    for sentence in graph.warnings:
        warnings.warn(sentence, KernbenchWarning, stacklevel=2)


def carry_out(request: Request, on_progress: Callable[[Progress], None] | None, wall: WallTime) -> RunResult:
    """Simulate, verify, write the files; all but the last within the `wall` time."""
    from kernbench_core.compute.executor import DataExecutor
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.topology.compilation import compile_topology
    from kernbench_core.topology.mesh import is_mesh

    began = time.perf_counter()
    if is_mesh(request.config):
        raise ConfigError(
            f"{request.config.at(('mesh',))} is a mesh on its own, which has no PEs to run a bench on; drive it with "
            "'kernbench probe --traffic', or choose another --topology."
        )
    with wall.spent_on("building the machine"):
        graph = compile_topology(request.config, request.plugins.components)
        tell_warnings(graph)
        recorder = _recorder() if request.explain else None
        engine = GraphEngine(
            graph,
            request.plugins.components,
            data=request.data,
            seed=request.seed,
            device=request.device,
            limits=request.limits,
            on_progress=on_progress,
            functions={name: entry.target for name, entry in request.plugins.ops.items()},
            observer=recorder,
            tcm_map=request.tcm_map,
            race_by=request.race_by,
            plugins=request.plugins,
            wall=wall,
            inputs=request.inputs,
        )
    if (request.verify_data or request.verify_ops) and engine.hardware.op_logger is not None:
        engine.hardware.op_logger.sites = {}  # for what is said of wrong data
    try:
        with request.bench.importable():
            engine.run(request.bench.function, request.values, name=request.bench.name)
            executor = DataExecutor(engine.op_log, engine.store, engine.functions)
            with wall.spent_on("computing the data"):
                verification, ops = _verified(request, engine, executor)
    except KeyboardInterrupt:
        raise RunInterrupted(_result(request, engine, recorder, None, began, interrupted=True)) from None
    with doing("summing up the run"):
        result = attrs.evolve(_result(request, engine, recorder, verification, began), op_verification=ops)
    if request.strict_races and result.hazards:
        raise RaceError(result)
    _write_files(request, result, engine.functions)
    return result


def _recorder() -> Recorder:
    from kernbench_core.explain.explanation import Recorder

    return Recorder()


def _write_files(request: Request, result: RunResult, functions: Mapping[str, str]) -> None:
    """Write what is asked for, each file whole or not at all."""
    try:
        if request.trace is not None:
            request.trace.write(result.op_log)
        if request.bundle is not None:
            request.bundle.write(result.manifest, request.bench, request.values, request.inputs.kept)
        if request.out is not None:
            write_out(request.out, result, functions, request.bench, request.values, request.inputs.kept)
    except OSError as error:
        raise UsageError(
            f"the files of --trace, --bundle and --out must be writable, but {error.filename!r} "
            f"failed with {error.strerror!r} after the run had ended well; make room or name another place."
        ) from error
    except KeyboardInterrupt:
        raise RunInterrupted(result) from None


def _verified(
    request: Request, engine: GraphEngine, executor: DataExecutor
) -> tuple[Verification | None, Verification | None]:
    """Verify data and single ops, where that is asked for; an error says which kernel line asked for the op."""
    from kernbench_core.callsite import describe_site

    try:
        if request.verify_data or request.verify_ops:
            on_demand = engine.device.on_demand
            on_demand.confirm(executor, lambda failure: _wrong_data(engine, executor).maker(failure, "It"))
        data = _verify(engine, executor) if request.verify_data else None
        return data, _verify_ops(engine, executor) if request.verify_ops else None
    except ExecutionError as error:
        site = None if error.op_id is None else _sites(engine).get(error.op_id)
        if site is not None:
            error.add_note(f"It is the op of {describe_site(site)}.")
        raise


def _verify(engine: GraphEngine, executor: DataExecutor) -> Verification:
    """Run phase 2 on what the checked tensors need, and compare them."""
    from kernbench_core.compute.verification import Expected
    from kernbench_core.explain.wrong_data import check_names
    from kernbench_core.oplog.description import Access

    expected, told = {}, {}
    for number, (name, each) in enumerate(zip(check_names(engine.expectations), engine.expectations, strict=True)):
        told[str(number)] = name, each
        expected[str(number)] = Expected(Access("", ()), _reference(each), each.rtol, each.atol, value=each.value)
    verification = executor.verify(expected)
    if not verification.found:
        return verification
    return _wrong_data(engine, executor).told(verification, told)


def _wrong_data(engine: GraphEngine, executor: DataExecutor) -> WrongData:
    from kernbench_core.explain.wrong_data import WrongData

    return WrongData(engine.op_log, executor, engine.shared.launches, _sites(engine))


def _verify_ops(engine: GraphEngine, executor: DataExecutor) -> Verification:
    """Compute every op anew, by itself, and compare."""
    from kernbench_core.callsite import describe_site

    sites = _sites(engine)

    def where(record: OpRecord) -> str:
        site = None if record.op_id is None else sites.get(record.op_id)
        return "" if site is None else f" at {describe_site(site)}"

    return executor.verify_ops(where=where)


def _sites(engine: GraphEngine) -> Mapping[OpId, CallSite | None]:
    """Return the kernel line of each op, where it was noted."""
    logger = engine.hardware.op_logger
    return {} if logger is None or logger.sites is None else logger.sites


def _reference(expectation: Expectation) -> Any:
    """Return the expected array; raise KernelError when the bench's own reference raises."""
    try:
        return expectation.array()
    except (KernbenchError, *INTERRUPTS):
        raise
    except BaseException as error:
        raise blamed(error, KernelError)(
            f"the reference of tensor {expectation.name!r} raised {in_words(error)}.\n{user_traceback(error)}"
        ) from error


def _result(
    request: Request,
    engine: GraphEngine,
    recorder: Recorder | None,
    verification: Verification | None,
    began: float,
    *,
    interrupted: bool = False,
) -> RunResult:
    op_log_sha256 = None if interrupted else engine.op_log.sha256()
    manifest = manifest_of(request, op_log_sha256)
    timing, scratchpads = engine.get_timing_result(), engine.device.recorder
    return RunResult(
        bench=request.bench.name,
        params=manifest.params,
        topology=request.topology,
        device=request.device,
        timing=timing,
        wall_s=time.perf_counter() - began,
        verification=verification,
        op_log_sha256=op_log_sha256,
        manifest=manifest.to_json(),
        op_log=engine.op_log,
        store=engine.store,
        interrupted=interrupted,
        explain=None if recorder is None else recorder.explanation(engine.shared.requests),
        tcm_map=None if scratchpads is None else scratchpads.result(timing.total_ns),
        hazards=engine.device.hazards.found(),
        rows=engine.rows,
    )


def manifest_of(request: Request, op_log_sha256: str | None) -> Manifest:
    copied = request.keeps_inputs
    return Manifest(
        bench=describe_bench(request.bench, copied=copied, inputs=request.inputs.kept),
        params=describe_params(request.values, request.given, copied=copied),
        topology=request.topology,
        configuration=dict(request.config.data),
        device=request.device,
        seed=request.seed,
        data=request.data,
        verify_data=request.verify_data,
        verify_ops=request.verify_ops,
        limits=attrs.asdict(request.limits),
        versions=current_versions(),
        plugins=current_plugins(request.plugins),
        op_log_sha256=op_log_sha256,
        race_by=request.race_by,
    )
