"""One point of a sweep: a job, plain data, becomes a record, plain data, whatever the bench in it does."""

from __future__ import annotations

import functools
import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from kernbench_builtin.cache.loaded import loaded_files
from kernbench_builtin.sweeps.constraints import with_short_names
from kernbench_builtin.sweeps.objectives import FigureFunctions, measure, named_figures, parse_objective, read_figures
from kernbench_builtin.sweeps.plan import TRITON, SweepPlan, canonical, params_of, settings_of
from kernbench_builtin.sweeps.points import SweepPoint
from kernbench_builtin.sweeps.results import DIFFERS
from kernbench_builtin.sweeps.retimed import RecordingDiffers, result_of, to_retime
from kernbench_core.errors import (
    OUT_OF_MEMORY,
    DeadlockError,
    KernbenchError,
    KernbenchWarning,
    LimitError,
    in_words,
)
from kernbench_core.host.sources import file_and_function
from kernbench_core.process.interrupt import INTERRUPTS

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins
    from kernbench_core.runs.result import RunResult

JOB_SCHEMA: Final = "kernbench.job/1"
POINT_SCHEMA: Final = "kernbench.point/2"
#: Exit code of what is our own fault.
_OWN_FAULT = 7
_WALL = "of wall time"
#: What a run imports when it needs it, as far as laying out its machine does not.
_TAKEN: Final = (
    "kernbench_builtin.explain.verdict", "kernbench_core.compute.executor", "kernbench_core.compute.foreign_records",
    "kernbench_core.compute.verification", "kernbench_core.engine.bound", "kernbench_core.host.host_program",
    "kernbench_core.host.session", "kernbench_core.kernel.tl.language", "kernbench_core.runs.bench_run",
    "kernbench_core.topology.compilation", "numpy.random",
)  # fmt: skip
#: What a record has of a result as it is.
_OF_RESULT: Final = ("op_log_sha256", "cache_key", "cache_note", "from_cache")
STATUSES: Final = ("ok", "wrong", "error", "deadlock", "limit", "timeout")
"""What became of a point. Only "ok" has data that is right, as far as that was looked at."""


def job_of(plan: SweepPlan, point: SweepPoint) -> dict[str, Any]:
    """Return all that it takes to carry out a point."""
    return {
        "schema": JOB_SCHEMA,
        "key": point.key,
        "index": point.index,
        "values": dict(point.values),
        "run": plan.run_of(point.values),
        "objectives": list(plan.objectives),
        "figures_file": plan.figures,
        "cached": plan.cached,
        **({"retime": to_retime(plan, point)} if plan.retime else {}),
    }


def evaluate(
    job: Mapping[str, Any],
    plugins: Plugins | None = None,
    functions: Mapping[str, Callable[..., object]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Carry out one job and return its record; only what ends a process from outside is raised.

    `plugins` are by default those that are installed, loaded once in a process; `functions` are benches that a job may
    name beside those that are registered and those of files. The record has the figures of the run,
    its objectives, and the error where there is one. It is the same wherever and whenever it is made, but for `wall_s`,
    what is said of the cache, and whether a re-timed point was `checked`.
    """
    began = time.perf_counter()
    record = blank_record(job)
    try:
        with _noted(record["warnings"]):
            known = warm() if plugins is None else plugins
            result, record["figures"], how = _result(job, known, functions)
            record |= {name: getattr(result, name) for name in _OF_RESULT} | how
            record["figures"], record["objectives"] = _measured(job, result, record["figures"])
            if record["code"]:  # else no folder keeps the points, and nobody goes on with them
                record["files"] = _files_of(job["run"]["bench"], result, known)
            record["status"] = "ok" if result.right else "wrong"
    except INTERRUPTS:
        raise
    except BaseException as error:
        record |= failure(error)
        if isinstance(error, RecordingDiffers):
            record["timed"] = DIFFERS
    if "retime" in job:
        record["recording"] = hashlib.sha256(canonical(job["retime"]["run"])).hexdigest()
    return {name: _writable(value) for name, value in record.items()} | {"wall_s": time.perf_counter() - began}


def _writable(value: Any) -> Any:
    """Return plain data whose texts any file can hold: halves of surrogates, which a bench may say, written out."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _writable(each) for key, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list) else value


@contextmanager
def _noted(told: list[str]) -> Iterator[None]:
    """Add our own warnings of the block to a list, each once, in place of their being shown."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", KernbenchWarning)
        try:
            yield
        finally:
            ours = (str(each.message) for each in heard if issubclass(each.category, KernbenchWarning))
            told += dict.fromkeys(ours)


def blank_record(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a job of which nothing is known yet."""
    return {
        "schema": POINT_SCHEMA,
        **{name: job[name] for name in ("key", "index", "fidelity", "values") if name in job},
        "status": "error",
        "figures": {},
        "objectives": {objective_of(text).name: None for text in job["objectives"]},
        "error": None,
        "warnings": [],
        "op_log_sha256": None,
        "code": job.get("code", ""),
        "files": {},
        "cache_key": None,
        "cache_note": "",
        "from_cache": False,
        "wall_s": 0.0,
    }


def failure(error: BaseException) -> dict[str, Any]:
    """Return what a record says of an error: what became of the point, and the error's class, exit code and words."""
    if isinstance(error, KernbenchError):
        sentence, code = "\n".join([str(error), *getattr(error, "__notes__", ())]), error.exit_code
    elif isinstance(error, MemoryError):
        sentence, code = f"the memory of this process is exhausted; {OUT_OF_MEMORY}", LimitError.exit_code
    else:
        sentence, code = f"kernbench itself failed with {in_words(error)}; please report it.", _OWN_FAULT
    status = "error"
    if isinstance(error, DeadlockError):
        status = "deadlock"
    elif isinstance(error, LimitError | MemoryError):
        status = "timeout" if _WALL in sentence.partition("\n")[0] else "limit"
    return {"status": status, "error": {"kind": type(error).__name__, "exit_code": code, "sentence": sentence}}


objective_of = functools.cache(parse_objective)
"""Read an objective, each text once in a process."""


def functions_in(path: str) -> FigureFunctions:
    """Read a file of functions, once in a process for as long as it stays as it is; UsageError for what is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return read_figures(path)  # which says so
    return _functions_in(path, found.st_mtime_ns, found.st_size)


@functools.cache
def _functions_in(path: str, written_ns: int, nbytes: int) -> FigureFunctions:
    return read_figures(path)


def import_all(plugins: Plugins | None = None) -> None:
    """Import what a run takes, before processes are forked: else each of them would, with its first point.

    Parts of runs are imported too where `plugins` are known; a worker is told only later which ones a sweep has.
    """
    import importlib

    from kernbench_core.runs.parts import parts_of

    for name in _TAKEN:
        importlib.import_module(name)
    if plugins is not None:
        parts_of(plugins)


@functools.cache
def warm() -> Plugins:
    """Return the plug-ins of this process, loaded once."""
    from kernbench_core.plugins import load_plugins

    return load_plugins()


def _result(
    job: Mapping[str, Any], plugins: Plugins, functions: Mapping[str, Callable[..., object]]
) -> tuple[RunResult, dict[str, Any], dict[str, Any]]:
    """Return the result of what a job asks for, its figures, and what the record says of how it was timed."""
    simulate = functools.partial(_simulated, plugins, functions, job["cached"])
    if "retime" not in job:
        result = simulate(job["run"])
        return result, named_figures(result), {}
    return result_of(job, plugins, simulate)


def _simulated(
    plugins: Plugins, functions: Mapping[str, Callable[..., object]], cached: bool, asked: Mapping[str, Any],
    **more: Any,
) -> RunResult:  # fmt: skip
    """Run what a job asks for."""
    how = {
        "components": asked["components"], "set": settings_of(asked), "plugins": plugins, **asked["options"], **more
    }  # fmt: skip
    if asked["bench"].startswith(TRITON):
        from kernbench_builtin.sweeps.scripts import run_script

        return run_script(asked, how)
    from kernbench_core.runs.bench_run import run

    bench = functions.get(asked["bench"], asked["bench"])
    return run(bench, topology=asked["topology"], params=params_of(asked), cached=cached, **how)


def folder_of(bench: str) -> Path:
    """Return the folder of a bench's file, of what is no file the current one."""
    file = file_and_function(bench.removeprefix(TRITON))
    return Path() if file is None else Path(file[0]).absolute().parent


def _files_of(bench: str, result: RunResult, plugins: Plugins) -> dict[str, str | None]:
    """Return the SHA-256 of what a bench of a file was made of and read, by path from its folder."""
    told: Mapping[str, Any] = result.manifest["bench"]
    if file_and_function(bench.removeprefix(TRITON)) is None:
        return {}
    found = {Path(told["file"]).name: told["sha256"]} if "file" in told else {}
    found |= told.get("modules", {}) | told.get("depends", {})
    folder = folder_of(bench)
    inputs = {name: each["sha256"] for name, each in told.get("inputs", {}).items()}
    found |= {name: digest for name, digest in inputs.items() if (folder / name).is_file()}
    kept: Mapping[str, str] = getattr(result.parts.get("cached"), "depends", {})  # of what this process did not load
    loaded = {**loaded_files(plugins), **kept}
    below = {path: digest for path, digest in loaded.items() if Path(path).is_relative_to(folder)}
    return found | {Path(path).relative_to(folder).as_posix(): digest for path, digest in below.items()}


def _measured(
    job: Mapping[str, Any], result: RunResult, figures: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the figures and the objectives of a run."""
    functions = None if job["figures_file"] is None else functions_in(job["figures_file"])
    values = with_short_names({**job["run"]["set"], **job["run"]["params"], **job["values"]})
    return measure(result, [objective_of(text) for text in job["objectives"]], functions, values, figures)
