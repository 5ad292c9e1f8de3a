"""Commands that are no runs, from the cache: what they printed, under a key of their options, files and machine."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_core.cache import Cache, NotCacheable, computing_code
from kernbench_core.host.sources import read_sources
from kernbench_core.runs.cached.keys import configuration_digest, python_digest
from kernbench_core.runs.cached.recording import Shown, recorded
from kernbench_core.runs.manifest import current_plugins, current_versions

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins
    from kernbench_core.topology.configuration import Config

#: What may be the name of a file in the text of another one.
_FILE_NAME: Final = re.compile(r"[\w./+~-]+\.(?:py|ya?ml|json|csv|npy|txt)\b")
_MOST_BYTES: Final = 64 << 20


@attrs.frozen
class Replay:
    """What a command printed, the key that it is kept under, and whether it was printed before."""

    exit_code: int
    key: str
    from_cache: bool


def replayed(
    command: str,
    options: Mapping[str, Any],
    config: Config,
    plugins: Plugins,
    make: Callable[[], int],
    heard: Callable[[], Sequence[str]] = tuple,
    cache: Cache | None = None,
) -> Replay:
    """Print what a command with these options printed for the same machine, else call what prints it, and keep that.

    Files that options name, and files that these name, count by what they hold. What `make` returns is an exit code;
    only what ends with 0 is kept, with the warnings that it gave and those that `heard` tells of then. Raise
    NotCacheable, and print nothing, where there is no key.
    """
    cache = Cache.of_user() if cache is None else cache
    code = dict(computing_code(plugins, cache).digests)
    parts = [
        command, sorted((name, repr(value)) for name, value in options.items()), configuration_digest(config),
        sorted(named_files(options.values()).items()), sorted(code.items()), current_versions(),
        [dict(each) for each in current_plugins(plugins)], python_digest(), _terminal(), os.path.abspath(""),  # noqa: PTH100
    ]  # fmt: skip
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    found = _found(cache, key)
    if found is not None:
        found.show()
        return Replay(0, key, True)
    with recorded() as shown:
        exit_code = make()
    with suppress(NotCacheable):
        if exit_code == 0 and dict(computing_code(plugins, cache, closely=True).digests) == code:
            seen = shown()
            told = attrs.asdict(attrs.evolve(seen, warnings=tuple(dict.fromkeys((*seen.warnings, *heard())))))
            cache.put(key, {"shown.json": json.dumps(told).encode()}, {"kind": "output", "name": command})
    return Replay(exit_code, key, False)


def _found(cache: Cache, key: str) -> Shown | None:
    files = cache.get(key)
    if files is None:
        return None
    try:
        return Shown.of(json.loads(files["shown.json"]))
    except (KeyError, ValueError, TypeError):
        return None


def named_files(values: Iterable[Any]) -> dict[str, str]:
    """Return the SHA-256 of the files that options name, and of those that these name; own modules among them."""
    found: dict[str, str] = {}
    waiting = [Path(text) for text in _texts(values)]
    while waiting:
        path = waiting.pop()
        place = os.path.abspath(path)  # noqa: PTH100
        if place in found or len(place) > 4096 or not path.is_file():
            continue
        if path.stat().st_size > _MOST_BYTES:
            raise NotCacheable(f"file {str(path)!r} is too large for a key; what is printed is not kept.")
        data = path.read_bytes()
        found[place] = hashlib.sha256(data).hexdigest()
        if path.suffix == ".py":
            sources = read_sources(path)
            found |= {f"{sources.folder}/{name}": sha256 for name, sha256 in sources.hashes.items()}
        elif path.suffix in (".yaml", ".yml"):
            names = set(_FILE_NAME.findall(data.decode("utf-8", "replace")))
            waiting += [base / name for name in names for base in (path.parent, Path())]
    return found


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield the texts among values that may be paths, also behind an equals sign or before a colon."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _texts(value)
        elif isinstance(value, str | Path) and value and "\0" not in str(value):
            text = str(value)
            yield from (text, text.partition("=")[2] or text, text.rpartition(":")[0] or text)


def _terminal() -> list[Any]:
    """Return what of the terminal changes what is printed."""
    from kernbench_core.runs.text_report import make_console

    console = make_console(sys.stdout)
    return [console.width, console.is_terminal, console.color_system, console.encoding]
