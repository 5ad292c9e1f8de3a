"""Runs and commands that are not made again: their answers come from the cache where what they depend on is the same.

A key is of what is known before: machine, arguments, options, code. Beside the answer stand files and variables that
it depends on, with digests, as in a depfile; they are looked at when it is wanted again.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from kernbench_builtin.cache import loaded
from kernbench_builtin.cache.packing import pack, unpack
from kernbench_core.cache import dependencies
from kernbench_core.cache.dependencies import NotCacheable, digest_of, environment_digest, places_of
from kernbench_core.cache.store import Cache
from kernbench_core.errors import KernbenchWarning
from kernbench_core.process.whole_files import is_file, same_folder
from kernbench_core.runs.bench_run import manifest_of

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell
    from kernbench_core.plugins import Plugins
    from kernbench_core.runs.manifest import Manifest
    from kernbench_core.runs.parts import Request
    from kernbench_core.runs.result import RunResult
    from kernbench_core.topology.configuration import Config

#: Characters of a key, and files that an answer depends on, that a sentence names.
_LETTERS, _NAMED = 12, 4
#: One block at a time is recorded: `sys.stdout`, and what hears warnings, are one for all threads.
_ONE: Final = threading.RLock()
_Made = TypeVar("_Made")


@attrs.frozen
class Cached:
    """What the cache has to say of a run: whether it was taken from there, its key, and a sentence.

    `depends` are the files and variables, with their SHA-256, that a result from there depends on.
    """

    hit: bool
    key: str | None
    note: str
    depends: Mapping[str, str] = attrs.field(factory=dict)


def cached_run(request: Request, carry_out: Callable[[], RunResult], ran: Callable[[], Collection[str]]) -> RunResult:
    """Return what the cache has for a request that begins here, else carry it out and keep the result.

    Where it cannot be kept it is carried out, and a warning says why. `ran` then says in which files kernels are.
    """
    began, manifest = time.perf_counter(), manifest_of(request, None)
    given = "".join(f" {name}={value}" for name, value in manifest.params.items() if value is not None)
    about = {"kind": "run", "name": f"{request.bench.name} on {manifest.topology}{given}"}

    def read(result: RunResult) -> dict[str, str]:
        kept = {name: hashlib.sha256(data).hexdigest() for name, data in request.inputs.kept.items()}
        return dict(request.depends) | {place: kept.get(name, "") for name, place in request.inputs.asked.items()}

    result, cached = _answer(
        lambda: _parts_of_run(request, manifest), request.plugins, carry_out, read, about, ran=ran
    )
    if cached.hit:
        result = attrs.evolve(result, wall_s=time.perf_counter() - began)
    elif cached.key is None:
        warnings.warn(cached.note, KernbenchWarning, stacklevel=4)
    return attrs.evolve(result, parts={**result.parts, "cached": cached})


def replayed(
    shell: Shell, command: str, options: Mapping[str, Any], config: Config, make: Callable[[], int]
) -> int:
    """Print what a command with these options printed for the same machine, else call what prints it, and keep that.

    Return the exit code. Files that options name count by what they hold. Only what ends with 0 is kept, with the
    warnings that came then.
    """
    from kernbench_core.runs.text_report import make_console

    before = len(shell.heard)
    with same_folder() as here:
        depends = {place: digest_of(place) for place in places_of(options.get("depends", ()), here)}
        files = {str(path): digest_of(str(path)) for path in _paths(options.values()) if is_file(path)}
        console = make_console(sys.stdout)
        terminal = [console.width, console.is_terminal, console.color_system, console.encoding]
        given = [command, sorted(options.items()), files, terminal]
        exit_code, cached = _answer(
            lambda: _parts(config, shell.plugins, given), shell.plugins, make, lambda code: None if code else depends,
            {"kind": "output", "name": command}, lambda: shell.heard[before:],
        )  # fmt: skip
    if cached.hit or not cached.key:
        shell.note(cached.note)
    return exit_code


def _answer(
    parts_of: Callable[[], Mapping[str, str]], plugins: Plugins, make: Callable[[], _Made],
    depends_of: Callable[[_Made], Mapping[str, str] | None], about: Mapping[str, Any],
    heard: Callable[[], Sequence[str]] = tuple, ran: Callable[[], Collection[str]] = tuple,
) -> tuple[_Made, Cached]:  # fmt: skip
    """Return what is kept under a key of these parts, and show again what it showed, else what is made, and keep that.

    `depends_of` returns what that depends on besides, None where it is not to be kept; `about` says what it is.
    """
    cache, made, note = Cache.of_user(), None, ""
    key: str | None = None
    try:
        parts = parts_of()
        key = _digest(parts)
        found = _current(cache, key)
        if found is not None:
            kept_about, answer, shown = found
            sys.stdout.write(shown["printed"])
            for sentence in shown["warnings"]:
                warnings.warn(sentence, KernbenchWarning, stacklevel=5)
            return answer, Cached(True, key, _sentence(key, kept_about), kept_about["depends"])
        with _recorded() as shown:
            made = make()
        shown["warnings"] = [*dict.fromkeys((*shown["warnings"], *heard()))]
        depends = depends_of(made)
        if depends is not None:
            settled = _settled(plugins, depends, ran())
            told = {**about, "made": time.strftime("%Y-%m-%d %H:%M"), "depends": settled, "parts": parts}
            note = f"kept in the cache as {key[:_LETTERS]}." if cache.put(key, told, pack((made, shown))) else ""
    except NotCacheable as error:
        key, note = None, str(error)
    return make() if made is None else made, Cached(False, key, note)


@contextmanager
def _recorded() -> Iterator[dict[str, Any]]:
    """Give what this thread "printed", and kernbench's own "warnings", when the block has ended well."""
    shown: dict[str, Any] = {}
    thread, printed = threading.get_ident(), list[str]()

    def write(text: str) -> int:
        written: int = plain(text)  # which refuses what is no text
        printed.extend([text] * (threading.get_ident() == thread))
        return written

    with _ONE:
        stream: Any = sys.stdout  # now: who is in the block sends it elsewhere while the machine is built
        plain = stream.write
        heard: list[warnings.WarningMessage] = []
        try:
            stream.write = write  # of this one stream: what prints asks it for all else
            with warnings.catch_warnings(record=True) as heard:
                warnings.filterwarnings("always", category=KernbenchWarning)
                yield shown
        finally:
            stream.write = plain
            for each in heard:
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno, source=each.source)
        ours = [str(each.message) for each in heard if issubclass(each.category, KernbenchWarning)]
        shown.update(printed="".join(printed), warnings=ours)


def _current(cache: Cache, key: str) -> tuple[Mapping[str, Any], Any, Mapping[str, Any]] | None:
    """Return what an entry is, its answer and what that showed, where all it depends on is as it was; else None."""
    found = cache.get(key)
    if found is None or any(digest_of(place) != digest for place, digest in found[0]["depends"].items()):
        return None
    try:
        answer, shown = unpack(found[1])
        return found[0], answer, shown
    except Exception:  # an entry of another version, whatever it lacks
        cache.remove(key)
        return None


def _settled(plugins: Plugins, depends: Mapping[str, str], ran: Collection[str]) -> dict[str, Any]:
    """Return what an answer depends on, modules among that; NotCacheable where it may be otherwise by now."""
    files = loaded.loaded_files(plugins, ran)
    new = [path for path, digest in files.items() if digest is None]
    new += [place for place, digest in depends.items() if digest_of(place) != digest]
    if new:
        raise NotCacheable(
            f"{new[0]!r} must not be written while this process goes on, which may have loaded it before; the answer "
            "is not kept. Start a new process."
        )
    return {**files, **depends}


def _sentence(key: str, about: Mapping[str, Any]) -> str:
    """Say of an answer from the cache when it was made, of what it depends, and that there may be more."""
    bench = "bench, " * (about["kind"] == "run")
    all_have = f"machine, {bench}arguments, options, the code of kernbench and of plug-ins"
    names = [place if place[0] == "$" else Path(place).name for place in about["depends"]]
    names[_NAMED:] = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return (
        f"from the cache ({key[:_LETTERS]}), made {about['made']}: it depends on {', '.join([all_have, *names])}; "
        "what the program reads besides is not covered."
    )


def _parts_of_run(request: Request, manifest: Manifest) -> dict[str, str]:
    """Return the digests of what is known of a run before; NotCacheable for a bench that is no file's."""
    bench = request.bench
    if not bench.registered and bench.sources is None:
        raise NotCacheable(
            f"bench {bench.name!r} must be of a file to be kept, as a function depends on what is in memory; write it "
            "to a file, and give 'FILE.py:FUNCTION'."
        )
    types = {name: str(value.dtype) for name, value in request.values.items() if hasattr(value, "dtype")}
    asked = [[part.NAME, repr(part.options)] for part in request.parts if part.asked]
    files = [] if bench.sources is None else [str(bench.sources.folder), bench.sources.hashes]
    given = [manifest.to_json(), files, types, request.options.outputs, asked, request.backend.device]
    return _parts(request.config, request.plugins, given)


def _parts(config: Config, plugins: Plugins, given: list[Any]) -> dict[str, str]:
    """Return the digests of a configuration with its places, which warnings name, of all our code, and of the rest."""
    places = [(repr(path), place) for path, place in config.places.items()]
    told = [config.data, places, config.sources, config.warnings, sorted(map(repr, config.inherited))]
    code = {f"code of {name}": digest for name, digest in dependencies.code_digests(plugins).items()}
    return {"machine": _digest(told), **code, "given": _digest([*given, environment_digest(), str(Path.cwd())])}


def _digest(value: Any) -> str:
    return dependencies.text_digest(json.dumps(value, default=repr))


def _paths(values: Iterable[Any]) -> Iterator[Path]:
    """Yield what of values may be a path, also behind an equals sign or before a colon."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _paths(value)
        elif isinstance(value, str | Path) and "\0" not in str(value):
            for each in (str(value), str(value).partition("=")[2], str(value).rpartition(":")[0]):
                yield Path(each).absolute()
