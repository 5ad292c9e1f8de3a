"""Run again what a manifest describes, and compare the op logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_builtin.compare.read_manifest import (
    check_sha256,
    differences,
    input_file,
    input_path,
    plugin_differences,
    read_manifest,
)
from kernbench_builtin.compare.saved_result import RESULT, read_json
from kernbench_builtin.saved.run_folder import OP_LOG
from kernbench_core.errors import ConfigError, KernbenchError, UsageError
from kernbench_core.host.bench import Bench
from kernbench_core.host.inputs import Inputs
from kernbench_core.host.programs import RecordedProgram, open_kind, open_program
from kernbench_core.host.sources import BENCH_FUNCTION, Sources, read_sources
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.process.interrupt import WallTime
from kernbench_core.process.whole_files import same_folder
from kernbench_core.runs.backends import open_backend
from kernbench_core.runs.bench_run import carry_out, manifest_of
from kernbench_core.runs.manifest import INPUTS, MANIFEST, Manifest, current_plugins
from kernbench_core.runs.options import RunCall, require_path
from kernbench_core.runs.parts import Request, RunPart, checker_of_ops, parts_of
from kernbench_core.runs.result import RunResult
from kernbench_core.values.dtypes import numpy_dtype

if TYPE_CHECKING:
    from kernbench_core.engine.watchdog import Progress
    from kernbench_core.oplog.log import OpLog


@attrs.frozen
class Rerun:
    """A run made again from its manifest: its result, whether the op log is the same, and what differs in words."""

    result: RunResult
    same: bool
    differences: tuple[str, ...]


def rerun(
    manifest: str | Path,
    *,
    trust: bool = False,
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    plugins: Plugins | None = None,
) -> Rerun:
    """Run again what `manifest`, or the one in that folder of a run, describes and compare the op logs; write nothing.

    It runs registered benches, and files in the folder of the manifest; others, and functions, with `trust` only.
    `timeout_s` is the limit on wall time, as of `kb.run`; by default that of the run.

    Raise UsageError when the manifest, or an input file that it names, is missing or has changed, and RunInterrupted,
    with the partial result, for Ctrl-C.

    >>> result = kb.run("vector-add", "tiny", {"n": 64}, out="first")
    >>> again = kb.rerun("first/manifest.json")
    >>> again.same, again.differences
    (True, ())
    """
    require_path("manifest", manifest, "the path of a file, as text or a Path")
    plugins = plugins or load_plugins()
    path = Path(manifest)
    path = path / MANIFEST if path.is_dir() else path
    with same_folder() as here:
        old = read_manifest(path)
        try:
            wall = WallTime(old.options["timeout_s"] if timeout_s is None else timeout_s)
            made: list[tuple[Request, RunResult]] = []

            def make(bench: Bench) -> RunResult:
                with wall.spent_on("opening the bench"):
                    request = _request(path, old, bench, trust, plugins, here)
                made.append((request, carry_out(request, on_progress, wall)))
                return made[-1][1]

            if "kind" in old.bench:
                _run_by_kind(path, old, trust, plugins, make)
            else:
                with wall.spent_on("opening the bench"):
                    bench = open_program(_recorded_bench(path, old, trust, plugins), plugins)
                make(bench)
        except KernbenchError as error:
            missing = [f"  since then, {told}" for told in plugin_differences(old, current_plugins(plugins))]
            if isinstance(error, ConfigError):
                raise type(error)(*error.problems, *missing) from None
            for told in missing:
                error.add_note(told)
            raise
        request, result = made[-1]
        new = manifest_of(request, result.op_log_sha256)
        same = new.op_log_sha256 == old.op_log_sha256
        saved = here / path.parent / OP_LOG
        models = _model_differences(here / path, old.op_log_sha256, getattr(result, "models", {}))
        found = [*models, *differences(old, new), *(() if same else _first_difference(saved, result.op_log))]
        return Rerun(result, same, tuple(found))


def _run_by_kind(
    path: Path, old: Manifest, trust: bool, plugins: Plugins, make: Callable[[Bench], RunResult]
) -> None:
    """Have a kind of program run again what it kept of a run."""
    kind = open_kind(plugins.programs, old.bench["kind"])

    def read() -> Sources:
        return _recorded_file(path, old.bench, trust)

    recorded = RecordedProgram(old.bench, old.params, old.options, old.configuration, read, trust)
    kind.run_again(recorded, make, plugins)


def _request(path: Path, old: Manifest, bench: Bench, trust: bool, plugins: Plugins, here: Path) -> Request:
    """Check what a manifest describes, and return what is to be run."""
    from kernbench_core.topology.configuration import Config

    given = {
        name: _array_of(path, name, value, trust) if isinstance(value, dict) else value
        for name, value in old.params.items()
    }
    options = RunCall(bench.name, **old.options)
    measuring = (part for part in parts_of(plugins) if part.meter is not RunPart.meter)  # a bench may ask for figures
    return Request(
        options=options,
        bench=bench,
        given=given,
        values=bench.values(given, here),
        topology=old.topology,
        config=Config(old.configuration, {}, (path.name,)),
        plugins=plugins,
        backend=open_backend(plugins, old.options["backend"]),
        parts=tuple(part(part.OPTIONS(), options, plugins) for part in measuring),
        kept_parts=tuple(part.NAME for part in parts_of(plugins) if part.KEPT),
        inputs=_inputs(path, old, bench, trust, here),
        changes=old.changes,
        check_ops=checker_of_ops(plugins) if old.options["verify_ops"] else None,
    )


def _array_of(path: Path, name: str, entry: Mapping[str, str], trust: bool) -> Any:
    """Return the file of a parameter, or its array where a `.npy` file does not say of which dtype that is."""
    file = input_file(path, entry, f"the file of parameter {name!r}", trust)
    if "dtype" not in entry:
        return file
    import numpy as np

    numpy_dtype("bf16")  # from then on numpy knows all dtypes of ml_dtypes by their names
    return np.load(file, allow_pickle=False).view(np.dtype(entry["dtype"]))


def _inputs(path: Path, old: Manifest, bench: Bench, trust: bool, here: Path) -> Inputs:
    """Return where the bench finds the files that it read in the run of the manifest."""
    recorded = {
        name: (here / input_file(here / path, entry, f"the file {name!r} that the bench read", trust)).absolute()
        for name, entry in old.bench.get("inputs", {}).items()
    }
    own = () if bench.sources is None else (bench.sources.folder,)
    return Inputs(((here / path.parent / INPUTS).absolute(), *own, here), recorded)


def _model_differences(path: Path, op_log_sha256: str | None, models: Mapping[str, str]) -> Iterator[str]:
    """Say which models have other code now, as far as the result of the run is kept, with the manifest or beside it."""
    for file in (path, path.parent / RESULT):
        with suppress(UsageError):
            found = read_json(file)
            found = found["result"] if isinstance(found.get("result"), dict) else found
            before = found.get("models")
            if isinstance(before, dict) and found.get("op_log_sha256") == op_log_sha256:
                changed = (name for name in sorted(models) if before.get(name, models[name]) != models[name])
                yield from (f"the code of {name} is not what it was." for name in changed)
                return


def _first_difference(saved: Path, op_log: OpLog) -> Iterable[str]:
    """Yield a sentence about the first op that differs from the log saved in `saved`, if there is one."""
    from kernbench_builtin.saved.saved_run import load_run

    if not saved.is_dir():
        return
    before = load_run(saved).op_log
    for index, (was, now) in enumerate(zip(before, op_log, strict=False)):
        for name in ("t_start", "component_id", "op_name", "op_id", "stage_of", "t_end", "params"):
            old, new = getattr(was, name), getattr(now, name)
            if name == "params":
                old, new = ({key: repr(value) for key, value in params.items()} for params in (old, new))
            if old != new:
                yield f"the first op that differs is number {index}: {name} was {old} and is {new}, in {now}."
                return
    if len(before) != len(op_log):
        yield f"the log had {len(before)} ops and has {len(op_log)}, the first {min(len(before), len(op_log))} alike."


def _recorded_bench(
    path: Path, manifest: Manifest, trust: bool, plugins: Plugins
) -> str | Sources | Callable[..., Any]:
    """Return the bench that a manifest names, as `open_program` takes it; UsageError for one that is not trusted."""
    recorded = manifest.bench
    if "file" in recorded:
        return _recorded_file(path, recorded, trust)
    if "name" in recorded:
        plugins.benches[recorded["name"]]  # a path would be taken as such
        return str(recorded["name"])
    named = recorded["function"]
    if not trust:
        raise UsageError(
            f"manifest {str(path)!r} names the function {named!r}, which may do anything; look at it, and give --trust "
            "to run it."
        )
    module, _, qualname = named.partition(":")
    found: Any = None
    try:
        found = import_module(module)
        for name in qualname.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        found = None
    if not callable(found):
        raise UsageError(
            f"manifest {str(path)!r} names the bench function {named!r}, which must be importable; install its module, "
            "or run where it lies."
        )
    function: Callable[..., Any] = found
    return function


def _recorded_file(manifest: Path, recorded: Mapping[str, Any], trust: bool) -> Sources:
    """Read a bench's file and own modules; UsageError where one is not in place or not what it was."""
    what = "the script" if "kind" in recorded else "the bench file"
    path = input_path(manifest, recorded["file"], what, trust)
    sources = read_sources(path, recorded.get("function", BENCH_FUNCTION))
    (_, found), *modules = sources.hashes.items()
    check_sha256(what, path, recorded["sha256"], found)
    now = dict(modules)
    for name, sha256 in recorded.get("modules", {}).items():
        what = f"the module {name!r} of the bench"
        place = (Path(recorded["file"]).parent / name).as_posix()
        check_sha256(what, input_path(manifest, place, what, trust), sha256, now.get(name, sha256))
    return sources
