"""What it takes to run the same thing again: resolved configuration, inputs by hash, versions, plug-ins, seed.

A manifest holds no absolute path: input files are named relative to the manifest, and identified by
their hash. It is plain JSON.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.engine.watchdog import Limits
from kernbench_core.errors import UsageError
from kernbench_core.host.sources import BENCH_FUNCTION
from kernbench_core.runs.options import RunOptions, command_options
from kernbench_core.units import finite
from kernbench_core.wording import brief, schema_hint

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
_LIMITS = tuple(field.name for field in attrs.fields(Limits))
_OPTIONS: Mapping[str, Any] = {
    name: getattr(attrs.fields(RunOptions), name).default
    for name, option in command_options(RunOptions).items()
    if option.kept and name not in _LIMITS
}
#: Those that manifests of earlier versions do not have.
_LATER = ("verify_ops", "race_by", "materialize", "oob", "pipeline_loops", "grid", "changes", "backend")
_WORDS: Mapping[Any, str] = {str: "text", int: "an integer", bool: "true or false", dict: "an object", list: "a list",
                             dict | None: "an object or null"}  # fmt: skip
#: What the fields of a manifest must be, in the order in which they stand there.
_FORMS: Mapping[str, Any] = {
    "bench": dict,
    "params": dict,
    "topology": str,
    "configuration": dict,
    **{name: type(default) for name, default in _OPTIONS.items() if name not in _LATER},
    "limits": dict,
    "versions": dict,
    "plugins": list,
    **{name: type(_OPTIONS[name]) for name in _LATER if name in _OPTIONS},
    "grid": str | None,
    "changes": dict | None,
    "op_log_sha256": str | None,
}
#: The distributions whose version may change what a run computes.
_LIBRARIES = ("attrs", "greenlet", "ml_dtypes", "numpy", "simpy")


@attrs.frozen
class Manifest:
    """One run's recipe, and the SHA-256 of the op log that it gave.

    `bench` is `{"name": …}`, `{"file": …, "sha256": …, "modules": …}` or `{"function": "module:name"}`; `modules`, left
    out where there are none, are SHA-256 of the bench's own modules by path relative to its file's folder. Each may
    have `inputs`: files that the bench read, by name, as `{"file": …, "sha256": …}`, which is also what a parameter is
    that is an array. Where a `file` is a copy beside the manifest, `given` is the path that the run was given, if it
    was. `options` are those of `RunOptions` that a manifest keeps, by name. `changes` says what was laid
    over the topology: the name of the `components` file or None, and each `set` as `key=value`; None where that is not
    known.
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
        fields["limits"] = {name: self.options[name] for name in _LIMITS}
        fields["plugins"] = [dict(plugin) for plugin in self.plugins]
        return {
            "schema": SCHEMA,
            **{name: fields[name] for name in _FORMS if name != "op_log_sha256"},
            "configuration_sha256": self.configuration_sha256,
            "op_log_sha256": self.op_log_sha256,
        }


def read_manifest(path: Path) -> Manifest:
    """Read a manifest, or the one inside what `--json` printed; raise UsageError when `path` holds neither."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"manifest {str(path)!r} must be a readable file: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise UsageError(f"manifest {str(path)!r} must be JSON; give the manifest.json of a run's --out.") from None
    if isinstance(found, dict) and isinstance(found.get("manifest"), dict):
        found = found["manifest"]
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        hint = schema_hint(schema, SCHEMA, "give the manifest.json of a run's --out")
        raise UsageError(f"manifest {str(path)!r} must have schema {SCHEMA!r}, not {brief(schema)}; {hint}.")
    missing = [name for name in _FORMS if name not in found and name not in _LATER]
    if missing:
        raise UsageError(f"manifest {str(path)!r} must hold {', '.join(missing)}; restore it as the run wrote it.")
    faults = list(_faults(found))
    if faults:
        raise UsageError(f"manifest {str(path)!r} must be as a run wrote it, but {'; '.join(faults)}; restore it.")
    fields = {field.name: found[field.name] for field in attrs.fields(Manifest) if field.name in found}
    options = {name: found.get(name, default) for name, default in _OPTIONS.items()}
    options |= {name: found["limits"].get(name) for name in _LIMITS}
    manifest = Manifest(**{**fields, "options": options, "plugins": tuple(found["plugins"])})
    recorded = found.get("configuration_sha256", manifest.configuration_sha256)
    if recorded != manifest.configuration_sha256:
        raise UsageError(
            f"manifest {str(path)!r} must hold the configuration of SHA-256 {str(recorded)[:12]}…, not "
            f"{manifest.configuration_sha256[:12]}…; to run a changed configuration, use kernbench run --set."
        )
    return manifest


def _faults(found: Mapping[str, object]) -> Iterator[str]:
    """Say which fields do not have the form that `Manifest.to_json` gives them."""
    for name, kind in _FORMS.items():
        if name in found and not isinstance(found[name], kind):
            yield f"{name} is {found[name]!r}, not {_WORDS.get(kind, 'text or null')}"
    if isinstance(found["seed"], int) and found["seed"] < 0:
        yield f"seed is {found['seed']}, not an integer of at least 0"
    for name in ("race_by", "materialize", "oob"):
        choice, chosen = command_options(RunOptions)[name], found.get(name, _OPTIONS[name])
        if isinstance(chosen, str) and chosen not in choice.choices:
            yield f"{name} is {chosen!r}, not {choice.choice}"
    if isinstance(found["bench"], dict) and not (_texts(found["bench"], "file", "sha256") or _one_name(found["bench"])):
        yield f"bench is {found['bench']!r}, not a name, a function, or a file with its sha256"
    function = found["bench"].get("function", "") if isinstance(found["bench"], dict) else ""
    if not isinstance(function, str):
        yield f"bench.function is {function!r}, not the name of a function"
    for name, value in _items(found["bench"].get("inputs") if isinstance(found["bench"], dict) else None):
        if not (isinstance(value, dict) and _texts(value, "file", "sha256")):
            yield f"bench.inputs.{name} is {value!r}, not a file with its sha256"
    modules = found["bench"].get("modules", {}) if isinstance(found["bench"], dict) else {}
    if not (isinstance(modules, dict) and _texts(modules, *modules)):
        yield f"bench.modules is {modules!r}, not SHA-256 by file"
    for name, value in _items(found["params"]):
        if isinstance(value, list) or (isinstance(value, dict) and not _texts(value, "file", "sha256")):
            yield f"params.{name} is {value!r}, not a plain value or a file with its sha256"
    changes = found.get("changes")
    if isinstance(changes, dict) and not _are_changes(changes):
        yield f"changes is {changes!r}, not the name of a components file and a list of settings"
    for name, value in _items(found["limits"]):
        if name not in _LIMITS or not isinstance(value, int | float | None):
            yield f"limits.{name} is {value!r}, not the number of one of {', '.join(_LIMITS)}"
    for plugin in found["plugins"] if isinstance(found["plugins"], list) else ():
        if not (isinstance(plugin, dict) and _texts(plugin, "plugin", "distribution", "version")):
            yield f"plugins has {plugin!r}, not a plugin with distribution and version"


def _texts(entry: Mapping[str, Any], *names: str) -> bool:
    """Return whether all these are texts; one with a NUL could not be the name of a file."""
    return all(isinstance(entry.get(name), str) and "\0" not in entry[name] + name for name in names)


def _are_changes(found: Mapping[str, Any]) -> bool:
    given = found.get("set")
    return isinstance(found.get("components"), str | None) and isinstance(given, list) and _all_texts(given)


def _all_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _one_name(bench: Mapping[str, Any]) -> bool:
    return _texts(bench, "name") or (_texts(bench, "function") and ":" in bench["function"])


def _items(mapping: object) -> Iterable[tuple[str, object]]:
    return mapping.items() if isinstance(mapping, dict) else ()


def kept_options(options: RunOptions) -> dict[str, object]:
    """Return the options of a run that its manifest keeps, by name."""
    return {name: getattr(options, name) for name in (*_OPTIONS, *_LIMITS)}


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
    if bench.sources is not None:
        given = bench.sources.given
        (_, sha256), *modules = bench.sources.hashes.items()
        file = {"file": f"{BENCH}/{given.name}", "given": _portable(given)} if copied else {"file": _portable(given)}
        function = {} if bench.sources.function == BENCH_FUNCTION else {"function": bench.sources.function}
        return {**file, "sha256": sha256, **function, **({"modules": dict(modules)} if modules else {})}
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
        described[name] = {**file, "sha256": array_sha256(value), "shape": list(value.shape)}
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
    """Write `array` as a `.npy` file through `write`."""
    from numpy.lib import format as npy

    class Out:
        def write(self, chunk: bytes) -> None:
            write(chunk)

    npy.write_array(Out(), array, allow_pickle=False)


def input_path(manifest: Path, file: str, what: str, trust: bool) -> Path:
    """Return the path of a file that a manifest names; UsageError when it is gone, or elsewhere and not trusted."""
    path = manifest.parent / file
    if not (trust or path.resolve().is_relative_to(manifest.parent.resolve())):
        raise UsageError(
            f"{what} must be in the folder of the manifest, not at {str(path)!r}; look at that file, and give --trust "
            "to use it."
        )
    if not path.is_file():
        raise UsageError(f"{what} must be at {str(path)!r}; put the file there, or run with --out to keep a copy.")
    return path


def input_file(manifest: Path, entry: Mapping[str, str], what: str, trust: bool = False) -> Path:
    """Return the path of an input that a manifest names; raise UsageError as `input_path`, and when it has changed."""
    path = input_path(manifest, entry["file"], what, trust)
    if path.suffix == ".npy":
        import numpy as np

        try:
            found = array_sha256(np.load(path, allow_pickle=False))
        except (ValueError, EOFError, OSError, AttributeError):
            found = hashlib.sha256(path.read_bytes()).hexdigest()
    else:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    check_sha256(what, path, entry["sha256"], found)
    return path


def check_sha256(what: str, path: Path, recorded: str, found: str) -> None:
    """Raise UsageError when a file is not what the manifest was made with."""
    if found != recorded:
        raise UsageError(
            f"{what} at {str(path)!r} must have SHA-256 {recorded[:12]}…, not {found[:12]}…; "
            "restore the file that the manifest was made with."
        )


def differences(old: Manifest, new: Manifest) -> tuple[str, ...]:
    """Say what differs between two manifests of what should be the same run, one sentence each."""
    found = [
        f"{name} was {old.versions.get(name, 'absent')} and is {new.versions.get(name, 'absent')}."
        for name in sorted({*old.versions, *new.versions})
        if old.versions.get(name) != new.versions.get(name)
    ]
    found += plugin_differences(old, new.plugins)
    modules = [manifest.bench.get("modules", {}) for manifest in (old, new)]
    found += [f"the module {name!r} of the bench was absent and is present." for name in modules[1].keys() - modules[0]]
    if old.configuration_sha256 != new.configuration_sha256:
        found.append("the resolved configuration differs.")
    if old.op_log_sha256 != new.op_log_sha256:
        found.append(f"op_log_sha256 was {old.op_log_sha256} and is {new.op_log_sha256}.")
    return tuple(found)


def plugin_differences(old: Manifest, plugins: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Say which plug-ins are not those of a manifest, one sentence each."""
    before, after = ({entry["plugin"]: entry for entry in those} for those in (old.plugins, plugins))
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield f"plug-in {name!r} was {_provider(before.get(name))} and is {_provider(after.get(name))}."


def _provider(entry: Mapping[str, str] | None) -> str:
    return "absent" if entry is None else f"{entry['distribution']} {entry['version']}".strip()


def _portable(path: Path) -> str:
    """Return a relative path as it is and only the name of an absolute one: manifests go to other machines."""
    return path.name if path.is_absolute() else path.as_posix()
