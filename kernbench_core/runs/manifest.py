"""What it takes to run the same thing again: resolved configuration, inputs by hash, versions, plug-ins, seed.

A manifest holds no absolute path: input files are named relative to the manifest, and identified by
their hash. It is plain JSON.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.engine.watchdog import Limits
from kernbench_core.host.sources import BENCH_FUNCTION
from kernbench_core.runs.options import RunOptions, command_options
from kernbench_core.units import finite

if TYPE_CHECKING:
    from kernbench_core.host.bench import Bench
    from kernbench_core.plugins import Plugins
    from kernbench_core.runs.options import RunCall

SCHEMA = "kernbench.manifest/1"
#: Inside the folder of a run: the manifest, and the folder of the bench's file and of the modules beside that.
MANIFEST = "manifest.json"
BENCH = "bench"
#: The folder of the files that the bench read.
INPUTS = "inputs"
#: The folder of arrays that the bench was given.
PARAMS = "params"
#: The options of a run that a manifest keeps, with their defaults; the limits stand in an object of their own.
LIMITS = tuple(field.name for field in attrs.fields(Limits))
OPTIONS: Mapping[str, Any] = {
    name: getattr(attrs.fields(RunOptions), name).default
    for name, option in command_options(RunOptions).items()
    if option.kept and name not in LIMITS
}
#: Those that manifests of earlier versions do not have.
LATER = (
    "verify_ops", "race_by", "materialize", "oob", "pipeline_loops", "placement", "resident", "grid", "changes",
    "backend",
)  # fmt: skip
#: What the fields of a manifest must be, in the order in which they stand there.
FORMS: Mapping[str, Any] = {
    "bench": dict,
    "params": dict,
    "topology": str,
    "configuration": dict,
    **{name: type(default) for name, default in OPTIONS.items() if name not in LATER},
    "limits": dict,
    "versions": dict,
    "plugins": list,
    **{name: type(OPTIONS[name]) for name in LATER if name in OPTIONS},
    "grid": str | None,
    "changes": dict | None,
    "op_log_sha256": str | None,
}
#: The distributions whose version may change what a run computes.
#: What `isbuiltin` is of a dtype that ml_dtypes has registered: numpy writes it, and does not load it.
_REGISTERED = 2
_LIBRARIES = ("attrs", "greenlet", "ml_dtypes", "numpy", "simpy")


@attrs.frozen
class Manifest:
    """One run's recipe, and the SHA-256 of the op log that it gave.

    `bench` is `{"name": …}`, `{"file": …, "sha256": …, "modules": …}` or `{"function": "module:name"}`; `modules`, left
    out where there are none, are SHA-256 of the bench's own modules by path relative to its file's folder. One with a
    `kind` is what a kind of program keeps, and runs again. Each may have `inputs`: files that the bench read, by name,
    as `{"file": …, "sha256": …}`, which is also what a parameter is that is an array. Where a `file` is a copy beside
    the manifest, `given` is the path that the run was given, if it was. `options` are those of `RunOptions` that a
    manifest keeps, by name. `changes` says what was laid over the topology: the name of the `components` file or None,
    and each `set` as `key=value`; None where that is not known.
    """

    bench: Mapping[str, Any]
    params: Mapping[str, Any]
    topology: str
    configuration: Mapping[str, Any]
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    plugins: tuple[Mapping[str, str], ...]
    changes: Mapping[str, Any] | None = None
    op_log_sha256: str | None = None

    @property
    def configuration_sha256(self) -> str:
        """SHA-256 of the resolved configuration in a canonical encoding, in hex."""
        text = json.dumps(self.configuration, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, object]:
        """Return the plain JSON object, schema first."""
        fields = {**attrs.asdict(self, recurse=False), **self.options}
        fields["limits"] = {name: self.options[name] for name in LIMITS}
        fields["plugins"] = [dict(plugin) for plugin in self.plugins]
        return {
            "schema": SCHEMA,
            **{name: fields[name] for name in FORMS if name != "op_log_sha256"},
            "configuration_sha256": self.configuration_sha256,
            "op_log_sha256": self.op_log_sha256,
        }


def kept_options(options: RunOptions) -> dict[str, object]:
    """Return the options of a run that its manifest keeps, by name."""
    return {name: getattr(options, name) for name in (*OPTIONS, *LIMITS)}


def configuration_changes(call: RunCall) -> Mapping[str, Any] | None:
    """Return what a run was told to lay over its topology, None where a command could not say it."""
    if isinstance(call.topology, Mapping):
        return None
    settings = call.set.items() if isinstance(call.set, Mapping) else None
    texts = list(call.set) if settings is None else [f"{key}={_as_yaml(value)}" for key, value in settings]
    return {"components": None if call.components is None else _portable(Path(call.components)), "set": texts}


def _as_yaml(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def current_versions() -> dict[str, str]:
    """Return the versions of Python, kernbench and the libraries that take part in a run."""
    from kernbench_core.package import __version__

    versions = {"python": platform.python_version(), "kernbench": __version__}
    return versions | {library: _version(library) for library in _LIBRARIES}


@cache
def _version(library: str) -> str:
    """Return the version of a library, which files tell that take longer to read than a small run."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def current_plugins(plugins: Plugins) -> tuple[Mapping[str, str], ...]:
    """Return the loaded plug-ins: entry-point name, distribution, version.

    Our own features, `builtin.…`, are not told one by one: they are of one distribution, and what one of them computes
    of a run has its entry, as the bench or a model, in the manifest already.
    """
    told = (each for each in plugins.providers if not (each.is_ours and "." in each.plugin))
    return tuple({"plugin": each.plugin, "distribution": each.distribution, "version": each.version} for each in told)


def describe_bench(bench: Bench, *, copied: bool, inputs: Mapping[str, bytes] | None = None) -> dict[str, object]:
    """Say which bench a run used and what that read; `copied` when the files lie in the folder of the manifest."""
    read = {
        name: {"file": f"{INPUTS}/{name}" if copied else name, "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in sorted((inputs or {}).items())
    }
    return {**_named_bench(bench, copied), **({"inputs": read} if read else {})}


def _named_bench(bench: Bench, copied: bool) -> dict[str, object]:
    own = {} if bench.recipe is None else bench.recipe()
    if bench.sources is not None:
        given = bench.sources.given
        (_, sha256), *modules = bench.sources.hashes.items()
        file = {"file": f"{BENCH}/{given.name}", "given": _portable(given)} if copied else {"file": _portable(given)}
        function = {} if bench.sources.function == BENCH_FUNCTION else {"function": bench.sources.function}
        return {**file, "sha256": sha256, **function, **({"modules": dict(modules)} if modules else {}), **own}
    if own:
        return dict(own)
    if bench.registered:
        return {"name": bench.name}
    return {"function": f"{bench.function.__module__}:{bench.function.__qualname__}"}


def describe_params(values: Mapping[str, Any], given: Mapping[str, Any], *, copied: bool) -> dict[str, Any]:
    """Return the parameters in JSON; `copied` when arrays lie in the folder of the manifest."""
    described: dict[str, Any] = {}
    for name, value in values.items():
        if not hasattr(value, "dtype"):
            described[name] = finite(value) if isinstance(value, float) else value
            continue
        file = {"file": array_file(name)}
        if isinstance(given.get(name), str | Path):
            path = _portable(Path(given[name]))
            file = {**file, "given": path} if copied else {"file": path}
        named = {"dtype": value.dtype.name} if value.dtype.isbuiltin == _REGISTERED else {}
        described[name] = {**file, "sha256": array_sha256(value), "shape": list(value.shape), **named}
    return described


def array_files(values: Mapping[str, object]) -> dict[str, object]:
    """Return the arrays among parameters, by the file in the folder of a manifest that keeps them."""
    return {array_file(name): value for name, value in values.items() if hasattr(value, "dtype")}


def array_file(name: str) -> str:
    """Return the file that keeps an array parameter, relative to the manifest."""
    return f"{PARAMS}/{name}.npy"


def array_sha256(array: Any) -> str:
    """Return the SHA-256 of the `.npy` file that numpy writes for `array`, in hex."""
    digest = hashlib.sha256()
    write_npy(array, digest.update)
    return digest.hexdigest()


def write_npy(array: Any, write: Callable[[bytes], object]) -> None:
    """Write `array` as a `.npy` file through `write`; bf16 and 8-bit floats, which numpy cannot load, as V2 and V1."""
    from numpy.lib import format as npy

    if array.dtype.isbuiltin == _REGISTERED:
        array = array.view(f"V{array.dtype.itemsize}")

    class Out:
        def write(self, chunk: bytes) -> None:
            write(chunk)

    npy.write_array(Out(), array, allow_pickle=False)


def _portable(path: Path) -> str:
    """Return a relative path as it is and only the name of an absolute one: manifests go to other machines."""
    return path.name if path.is_absolute() else path.as_posix()
