"""Run again what a manifest describes, and compare the op logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.bench import open_bench
from kernbench_core.errors import UsageError
from kernbench_core.manifest import Manifest, differences, input_file, read_manifest
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.result import RunResult
from kernbench_core.run_files import OP_LOG
from kernbench_core.runs import Request, carry_out, manifest_of, require_path

if TYPE_CHECKING:
    from kernbench_core.oplog import OpLog
    from kernbench_core.watchdog import Progress


@attrs.frozen
class Rerun:
    """A run made again from its manifest: its result, whether the op log is the same, and what differs in words."""

    result: RunResult
    same: bool
    differences: tuple[str, ...]


def rerun(
    manifest: str | Path,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    plugins: Plugins | None = None,
) -> Rerun:
    """Run again what `manifest` describes and compare the op logs; write nothing.

    Raise UsageError when the manifest, or an input file that it names, is missing or has changed, and RunInterrupted,
    with the partial result, for Ctrl-C.
    """
    from kernbench_core.config import Config
    from kernbench_core.watchdog import Limits

    require_path("manifest", manifest, "the path of a file, as text or a Path")
    path = Path(manifest)
    old = read_manifest(path)
    plugins = plugins or load_plugins()
    bench = open_bench(_recorded_bench(path, old), plugins.benches)
    given = {
        name: input_file(path, value, f"the file of parameter {name!r}") if isinstance(value, dict) else value
        for name, value in old.params.items()
    }
    request = Request(
        bench=bench,
        given=given,
        values=bench.values(given),
        topology=old.topology,
        config=Config(old.configuration, {}, (path.name,)),
        device=old.device,
        data=old.data,
        verify_data=old.verify_data,
        verify_ops=old.verify_ops,
        seed=old.seed,
        limits=Limits(**old.limits),  # type: ignore[arg-type]
        trace=None,
        out=None,
        plugins=plugins,
    )
    result = carry_out(request, on_progress)
    new = manifest_of(request, result.op_log_sha256)
    same = new.op_log_sha256 == old.op_log_sha256
    found = [*differences(old, new), *(() if same else _first_difference(path.parent / OP_LOG, result.op_log))]
    return Rerun(result, same, tuple(found))


def _first_difference(saved: Path, op_log: OpLog) -> Iterable[str]:
    """Yield a sentence about the first op that differs from the log saved in `saved`, if there is one."""
    from kernbench_core.oplog_file import load_run

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


def _recorded_bench(path: Path, manifest: Manifest) -> str | Path | Callable[..., Any]:
    """Return the bench that a manifest names, as `open_bench` takes it."""
    recorded = manifest.bench
    if "file" in recorded:
        return input_file(path, recorded, "the bench file")
    if "name" in recorded:
        return recorded["name"]
    module, _, qualname = recorded["function"].partition(":")
    found: Any = None
    try:
        found = import_module(module)
        for name in qualname.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        found = None
    if not callable(found):
        raise UsageError(
            f"manifest {str(path)!r} names the bench function {recorded['function']!r}, which must be importable."
        )
    function: Callable[..., Any] = found
    return function
