"""The result of a run as files of the cache, and the same result of these files and what was asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
class RunAnswer:
    """What a result has of the run that it answers: its names, its manifest, and what its printed form is to hold."""

    bench: str
    params: Mapping[str, Any]
    topology: str
    device: str
    manifest: Mapping[str, Any]
    cache_key: str | None
    all_links: bool = False

    @classmethod
    def of(cls, bench: str, manifest: Manifest, said: Mapping[str, Any], key: str, *, all_links: bool) -> RunAnswer:
        """Return what a run of this manifest is answered with, of what is `said` of the result that is kept."""
        read = {} if said["inputs"] is None else {"inputs": said["inputs"]}
        made = attrs.evolve(manifest, bench={**manifest.bench, **read}, op_log_sha256=said["op_log_sha256"])
        told = made.params, made.topology, made.options["device"], made.to_json()
        return cls(bench, *told, key, all_links)


def pack(said: Mapping[str, Any], arrays: Arrays) -> dict[str, bytes]:
    """Return the files of what is said in JSON, and of its arrays."""
    return {"said.json": json.dumps(said, separators=(",", ":")).encode(), "arrays": arrays.data()}


@contextmanager
def unpacked(files: Mapping[str, bytes]) -> Iterator[tuple[Any, bytes]]:
    """Give what was said, and the bytes of arrays, to a block that makes something of them.

    NotCacheable where the files, or what the block finds in them, are not as this version writes them.
    """
    try:
        yield json.loads(files["said.json"]), files["arrays"]
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise NotCacheable("what the cache has is no result of this version.") from error


def result_json(result: RunResult, arrays: Arrays) -> dict[str, Any]:
    """Return a result as JSON, with its tables among the arrays; raise NotCacheable for what has no form."""
    return {
        **{name: _kept_json(getattr(result, name), arrays) for name in _KEPT},
        "op_log_sha256": result.op_log_sha256,
        "inputs": result.manifest["bench"].get("inputs"),
        "launches": [launch_json(launch, arrays) for launch in result.launches],
        "ops": table_json(result.ops, arrays),
        "outputs": _outputs_json(result.outputs, arrays),
    }


def result_of(said: Mapping[str, Any], data: bytes, answer: RunAnswer, began: float) -> RunResult:
    """Return the result that was kept as an answer to what was asked at `began`, of `time.perf_counter`."""
    kept = {name: _kept_of(said[name], data) for name in _KEPT}
    return RunResult(
        **{field.name: getattr(answer, field.name) for field in attrs.fields(RunAnswer)},
        wall_s=time.perf_counter() - began,
        op_log_sha256=said["op_log_sha256"],
        op_log=None,
        store=None,
        launches=[launch_of(each, data) for each in said["launches"]],
        outputs=_outputs_of(said["outputs"], data),
        from_cache=True,
        op_columns=[table_of(said["ops"], data)],
        **kept,
    )


def _kept_json(value: Any, arrays: Arrays) -> Any:
    return {"@": "table", "of": table_json(value, arrays)} if isinstance(value, ColumnTable) else encode(value)


def _kept_of(said: Any, data: bytes) -> Any:
    return table_of(said["of"], data) if isinstance(said, dict) and said.get("@") == "table" else decode(said)


def launch_json(launch: LaunchFigures, arrays: Arrays) -> dict[str, Any]:
    """Return the figures of a launch as JSON, its links among the arrays."""
    fields = {name: encode(getattr(launch, name)) for name in _LAUNCH}
    more = {"_alone": launch._alone, "busiest": encode(launch.busiest), "links": table_json(launch.links, arrays)}
    return {**fields, **more}


def launch_of(said: Mapping[str, Any], data: bytes) -> LaunchFigures:
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
