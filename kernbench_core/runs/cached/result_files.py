"""The result of a run as files of the cache, and the same result of these files and what was asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_core.cache import NotCacheable
from kernbench_core.host.figures.columns import ColumnTable
from kernbench_core.host.figures.launch import LaunchFigures
from kernbench_core.runs.cached.columns import Arrays, array_at, table_json, table_of
from kernbench_core.runs.cached.records import decode, encode
from kernbench_core.runs.outputs import NoOutputs, Outputs
from kernbench_core.runs.result import RunResult

if TYPE_CHECKING:
    from kernbench_core.runs.manifest import Manifest

#: What of a result the run alone says, or has a form of its own; all else is tables, records and plain values.
_APART: Final = (
    "bench", "params", "topology", "device", "wall_s", "op_log_sha256", "manifest", "_op_log", "_store", "interrupted",
    "timeline", "launches", "outputs", "unwritten", "from_cache", "cache_key", "cache_note", "_all_links",
    "_op_columns",
)  # fmt: skip
_KEPT: Final = tuple(each.name for each in attrs.fields(RunResult) if each.name not in _APART)
#: What of a launch is plain; its machine is left behind.
_LAUNCH: Final = tuple(each.name for each in attrs.fields(LaunchFigures) if each.name[0] != "_")


@attrs.frozen
class Shown:
    """What a run showed while it went on: what it printed to standard output, and the sentences of its warnings."""

    printed: str = ""
    warnings: tuple[str, ...] = ()


def result_files(result: RunResult, shown: Shown) -> dict[str, bytes]:
    """Return the files that a result is kept as; raise NotCacheable for what has no form."""
    arrays = Arrays()
    said: dict[str, Any] = {name: _kept_json(getattr(result, name), arrays) for name in _KEPT}
    said |= {
        "op_log_sha256": result.op_log_sha256,
        "inputs": result.manifest["bench"].get("inputs"),
        "wall_s": result.wall_s,
        "launches": [_launch_json(launch, arrays) for launch in result.launches],
        "ops": table_json(result.ops, arrays),
        "outputs": _outputs_json(result.outputs, arrays),
        "printed": shown.printed,
        "warnings": list(shown.warnings),
    }
    return {"result.json": json.dumps(said, separators=(",", ":")).encode(), "arrays": arrays.data()}


def result_of(
    files: Mapping[str, bytes], bench: str, manifest: Manifest, options: Mapping[str, Any], began: float
) -> tuple[RunResult, Shown]:
    """Return the result that was kept, as the answer to a run of the same manifest, and what that run showed.

    `options` are fields of the result that the run alone says; it was asked for at `began`, of `time.perf_counter`.
    NotCacheable where the files are not such a result.
    """
    try:
        said = json.loads(files["result.json"])
        shown = Shown(said["printed"], tuple(said["warnings"]))
        return _result(said, files["arrays"], bench, manifest, options, began), shown
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise NotCacheable("what the cache has is no result of this version.") from error


def _result(
    said: Mapping[str, Any], data: bytes, bench: str, manifest: Manifest, options: Mapping[str, Any], began: float
) -> RunResult:
    read = {} if said["inputs"] is None else {"inputs": said["inputs"]}
    manifest = attrs.evolve(manifest, bench={**manifest.bench, **read}, op_log_sha256=said["op_log_sha256"])
    kept = {name: _kept_of(said[name], data) for name in _KEPT}
    return RunResult(
        bench=bench,
        params=manifest.params,
        topology=manifest.topology,
        device=manifest.options["device"],
        wall_s=time.perf_counter() - began,
        op_log_sha256=said["op_log_sha256"],
        manifest=manifest.to_json(),
        op_log=None,
        store=None,
        launches=[_launch_of(each, data) for each in said["launches"]],
        outputs=_outputs_of(said["outputs"], data),
        from_cache=True,
        op_columns=[table_of(said["ops"], data)],
        **kept,
        **options,
    )


def _kept_json(value: Any, arrays: Arrays) -> Any:
    return {"@": "table", "of": table_json(value, arrays)} if isinstance(value, ColumnTable) else encode(value)


def _kept_of(said: Any, data: bytes) -> Any:
    return table_of(said["of"], data) if isinstance(said, dict) and said.get("@") == "table" else decode(said)


def _launch_json(launch: LaunchFigures, arrays: Arrays) -> dict[str, Any]:
    fields = {name: encode(getattr(launch, name)) for name in _LAUNCH}
    more = {"_alone": launch._alone, "busiest": encode(launch.busiest), "links": table_json(launch.links, arrays)}
    return {**fields, **more}


def _launch_of(said: Mapping[str, Any], data: bytes) -> LaunchFigures:
    """Return the figures of a launch as those of a copy in another process are."""
    plain = {name: decode(each) for name, each in said.items() if name != "links"}
    return LaunchFigures.of_copy({**plain, "links": table_of(said["links"], data)})


def _outputs_json(outputs: Outputs, arrays: Arrays) -> dict[str, Any] | None:
    if isinstance(outputs, NoOutputs):
        return None
    computed = {name: arrays.add(array) for name, array in outputs.computed.items()}
    return {"shapes": outputs.to_json(), "names": list(outputs.tensors), "computed": computed}


def _outputs_of(said: Mapping[str, Any] | None, data: bytes) -> Outputs:
    if said is None:
        return NoOutputs()
    computed = {name: array_at(data, each) for name, each in said["computed"].items()}
    return Outputs.of_copy(said["names"], computed, said["shapes"])
