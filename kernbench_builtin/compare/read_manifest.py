"""Read what it takes to make a run again: a manifest, and the files that it names, each as it was.

A manifest may be a stranger's: nothing outside of its folder is read, unless it is trusted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.runs.manifest import FORMS, LATER, LIMITS, OPTIONS, SCHEMA, Manifest, array_sha256
from kernbench_core.runs.options import RunOptions, command_options
from kernbench_core.wording import brief, schema_hint

_WORDS: Mapping[Any, str] = {str: "text", int: "an integer", bool: "true or false", dict: "an object", list: "a list",
                             dict | None: "an object or null"}  # fmt: skip


def read_manifest(path: Path) -> Manifest:
    """Read a manifest, or the one inside what `--json` printed; raise UsageError when `path` holds neither."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"manifest {str(path)!r} must be a readable file: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise UsageError(f"manifest {str(path)!r} must be JSON; give the manifest.json of a run's --out.") from None
    for inside in ("result", "manifest"):
        if isinstance(found, dict) and isinstance(found.get(inside), dict):
            found = found[inside]
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        hint = schema_hint(schema, SCHEMA, "give the manifest.json of a run's --out")
        raise UsageError(f"manifest {str(path)!r} must have schema {SCHEMA!r}, not {brief(schema)}; {hint}.")
    missing = [name for name in FORMS if name not in found and name not in LATER]
    if missing:
        raise UsageError(f"manifest {str(path)!r} must hold {', '.join(missing)}; restore it as the run wrote it.")
    faults = list(_faults(found))
    if faults:
        raise UsageError(f"manifest {str(path)!r} must be as a run wrote it, but {'; '.join(faults)}; restore it.")
    fields = {field.name: found[field.name] for field in attrs.fields(Manifest) if field.name in found}
    options = {name: found.get(name, default) for name, default in OPTIONS.items()}
    options |= {name: found["limits"].get(name) for name in LIMITS}
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
    for name, kind in FORMS.items():
        if name in found and not isinstance(found[name], kind):
            yield f"{name} is {found[name]!r}, not {_WORDS.get(kind, 'text or null')}"
    if isinstance(found["seed"], int) and found["seed"] < 0:
        yield f"seed is {found['seed']}, not an integer of at least 0"
    for name in ("race_by", "materialize", "oob"):
        choice, chosen = command_options(RunOptions)[name], found.get(name, OPTIONS[name])
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
        if name not in LIMITS or not isinstance(value, int | float | None):
            yield f"limits.{name} is {value!r}, not the number of one of {', '.join(LIMITS)}"
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
    known = _texts(bench, "name") or (_texts(bench, "kind") and "file" not in bench)
    return known or (_texts(bench, "function") and ":" in bench["function"])


def _items(mapping: object) -> Iterable[tuple[str, object]]:
    return mapping.items() if isinstance(mapping, dict) else ()


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
