"""Runs and commands that are not made again: their answers come from the cache where what they depend on is the same.

A key is of what is known before: machine, arguments, options, code. Beside the answer stand files and variables that
it depends on, with digests, as in a depfile; they are looked at when it is wanted again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_builtin.cache.packing import pack, unpack
from kernbench_builtin.cache.showing import recorded, show
from kernbench_core.cache import dependencies
from kernbench_core.cache.dependencies import NotCacheable, digest_of, environment_digest, places_of
from kernbench_core.cache.store import Cache
from kernbench_core.errors import KernbenchWarning

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins
    from kernbench_core.runs.manifest import Manifest
    from kernbench_core.runs.parts import Request
    from kernbench_core.runs.result import RunResult
    from kernbench_core.topology.configuration import Config

#: Characters of a key, and files that an answer depends on, that a sentence names.
_LETTERS, _NAMED = 12, 4


@attrs.frozen
class Cached:
    """What the cache has to say of a run: whether it was taken from there, its key, and a sentence."""

    hit: bool
    key: str | None
    note: str


def cached_run(request: Request, here: Path, manifest: Manifest, carry_out: Callable[[], RunResult]) -> RunResult:
    """Return what the cache has for a request that begins in the folder `here`, else carry it out and keep the result.

    `manifest` is that of the request without files. Where it cannot be kept it is carried out, and a warning says why.
    Where files are to be written, or somebody watches, it is carried out, too, and its result is kept.
    """
    began, cache = time.perf_counter(), Cache.of_user()
    try:
        parts = _parts_of_run(request, manifest, here)
    except NotCacheable as why:
        return _not_kept(carry_out(), why)
    key = _digest(parts)
    wants = bool(request.files) or not all(part.REPEATABLE for part in request.parts)
    found = None if wants else _current(cache, key)
    if found is not None:
        about, (result, shown) = found
        show(shown)
        answer: RunResult = attrs.evolve(result, all_links=request.options.links == "all")
        return attrs.evolve(_with(answer, Cached(True, key, _sentence(key, about))), wall_s=time.perf_counter() - began)
    with recorded() as shown:
        made = carry_out()
    about = {"kind": "run", "name": f"{made.bench} on {made.topology}", "params": dict(manifest.params)}
    told = {part.NAME for part in request.parts if part.asked and part.REPEATABLE}
    answers = {name: answer if name in told else None for name, answer in made.parts.items()}
    result = attrs.evolve(made, parts=answers, asked=tuple(name for name in made.asked if name in told))
    try:
        kept = _keep(cache, key, _read_by(request), request.plugins, (result, shown), {**about, "parts": parts})
    except NotCacheable as why:
        return _not_kept(made, why)
    return _with(made, Cached(False, key, f"kept in the cache as {key[:_LETTERS]}." if kept else ""))


def replayed(
    command: str, options: Mapping[str, Any], config: Config, plugins: Plugins, make: Callable[[], int],
    heard: Callable[[], Sequence[str]] = tuple,
) -> tuple[int, str]:  # fmt: skip
    """Print what a command with these options printed for the same machine, else call what prints it, and keep that.

    Return the exit code, and what is to be said of the cache. Files that options name count by what they hold. Only
    what ends with 0 is kept, with the warnings that it gave and those that `heard` tells of then.
    """
    from kernbench_core.runs.text_report import make_console

    cache = Cache.of_user()
    try:
        parts = _parts_of_machine(config, plugins)
    except NotCacheable as why:
        return make(), str(why)
    depends = {place: digest_of(place) for place in places_of(options.get("depends", ()), Path.cwd())}
    named = sorted(path for path in map(os.path.abspath, _texts(options.values())) if Path(path).is_file())
    files = [[path, digest_of(path)] for path in named]
    console = make_console(sys.stdout)
    terminal = [console.width, console.is_terminal, console.color_system, console.encoding]
    key = _digest([command, sorted(options.items()), files, parts, environment_digest(), terminal, str(Path.cwd())])
    found = _current(cache, key)
    if found is not None:
        show(found[1])
        return 0, _sentence(key, found[0])
    with recorded() as shown:
        exit_code = make()
    if exit_code:
        return exit_code, ""
    shown["warnings"] = [*dict.fromkeys((*shown["warnings"], *heard()))]
    try:
        _keep(cache, key, depends, plugins, shown, {"kind": "output", "name": command, "parts": parts})
    except NotCacheable as why:
        return 0, str(why)
    return 0, ""


def _current(cache: Cache, key: str) -> tuple[Mapping[str, Any], Any] | None:
    """Return what is kept under a key, what it is first, where all that it depends on is as it was; else None."""
    found = cache.get(key)
    if found is None or any(digest_of(place) != digest for place, digest in found[0]["depends"].items()):
        return None
    try:
        return found[0], unpack(found[1])
    except Exception:  # an entry of another version, whatever it lacks
        cache.remove(key)
        return None


def _keep(
    cache: Cache, key: str, depends: Mapping[str, str], plugins: Plugins, answer: Any, about: Mapping[str, Any]
) -> bool:
    """Keep an answer with what it depends on, modules among that; return whether there is room for it.

    NotCacheable where what it depends on may be otherwise by now.
    """
    loaded = dependencies.loaded_files(plugins)
    new = [path for path, digest in loaded.items() if digest is None]
    new += [place for place, digest in depends.items() if digest_of(place) != digest]
    if new:
        raise NotCacheable(
            f"{new[0]!r} must not be written while this process goes on, which may have loaded it before; the answer "
            "is not kept. Start a new process."
        )
    return cache.put(key, pack(answer), {**about, "made_ns": time.time_ns(), "depends": {**loaded, **depends}})


def _not_kept(result: RunResult, why: NotCacheable) -> RunResult:
    warnings.warn(str(why), KernbenchWarning, stacklevel=5)
    return _with(result, Cached(False, None, str(why)))


def _with(result: RunResult, cached: Cached) -> RunResult:
    return attrs.evolve(result, parts={**result.parts, "cached": cached})


def _sentence(key: str, about: Mapping[str, Any]) -> str:
    """Say of an answer from the cache when it was made, of what it depends, and that there may be more."""
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(about["made_ns"] / 1e9))
    bench = "bench, " * (about["kind"] == "run")
    all_have = f"machine, {bench}arguments, options, the code of kernbench and of plug-ins"
    names = [place if place[0] == "$" else Path(place).name for place in about["depends"]]
    names[_NAMED:] = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return (
        f"from the cache ({key[:_LETTERS]}), made {made}: it depends on {', '.join([all_have, *names])}; what the "
        "program reads besides is not covered."
    )


def _parts_of_run(request: Request, manifest: Manifest, here: Path) -> dict[str, str]:
    """Return the digests of what is known of a run before; NotCacheable for a bench that is no file's."""
    bench, options = request.bench, request.options
    if not bench.registered and bench.sources is None:
        raise NotCacheable(
            f"bench {bench.name!r} must be of a file to be kept, as a function depends on what is in memory; write it "
            "to a file, and give 'FILE.py:FUNCTION'."
        )
    told = manifest.to_json()
    types = {name: str(value.dtype) for name, value in request.values.items() if hasattr(value, "dtype")}
    device = request.backend.device
    files = [] if bench.sources is None else [str(bench.sources.folder), bench.sources.hashes]
    return _parts_of_machine(request.config, request.plugins) | {
        "bench": _digest([told.pop("bench"), files, str(here)]),
        "arguments": _digest([told.pop("params"), types]),
        "versions": _digest([told.pop("versions"), told.pop("plugins"), environment_digest()]),
        "options": _digest([told, options.outputs, _requested_parts(request), device]),
    }


def _requested_parts(request: Request) -> list[list[str]]:
    """Return what parts of the run are asked for, with their options."""
    return [[part.NAME, repr(part.options)] for part in request.parts if part.asked and part.REPEATABLE]


def _parts_of_machine(config: Config, plugins: Plugins) -> dict[str, str]:
    """Return the digests of a configuration, with the places of its keys, which warnings name, and of all our code."""
    places = [(repr(path), place) for path, place in config.places.items()]
    told = [config.data, places, config.sources, config.warnings, sorted(map(repr, config.inherited))]
    code = dependencies.code_digests(plugins).items()
    return {"machine": _digest(told), **{f"code of {name}": digest for name, digest in code}}


def _read_by(request: Request) -> dict[str, str]:
    """Return what the bench read through the runtime and what it says that it reads, with digests; "" for nothing."""
    kept = {name: hashlib.sha256(data).hexdigest() for name, data in request.inputs.kept.items()}
    return dict(request.depends) | {place: kept.get(name, "") for name, place in request.inputs.asked.items()}


def _digest(value: Any) -> str:
    return dependencies.text_digest(json.dumps(value, default=repr))


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield the texts among values that may be paths, also behind an equals sign or before a colon."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _texts(value)
        elif isinstance(value, str | Path) and "\0" not in str(value):
            yield from (str(value), str(value).partition("=")[2], str(value).rpartition(":")[0])
