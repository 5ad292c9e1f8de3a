"""Results that depend on what a run has read: kept under a key together with that, and found where it is the same.

Under the key alone lie the latest sets of what runs of it have read: files by path, the names in a folder
as `FOLDER/`, and variables of the environment as `$NAME`, each with a SHA-256, "" for what was not there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kernbench_core.cache import Cache

#: So many sets are remembered for one key.
_MOST_READS: Final = 8
_READS: Final = "reads.json"
_VARIABLE: Final = "$"


def digest_of(place: str) -> str:
    """Return the SHA-256 of a file, of a variable or of the names in a folder, in hex; "" where there is none."""
    if place.startswith(_VARIABLE):
        value = os.environ.get(place.removeprefix(_VARIABLE))
        return "" if value is None else hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
    try:
        if place.endswith(os.sep):
            names = "\0".join(sorted(os.listdir(place)))  # noqa: PTH208
            return hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()
        return hashlib.sha256(Path(place).read_bytes()).hexdigest()
    except OSError:
        return ""


def place_of_variable(name: str) -> str:
    """Return what a variable of the environment is called among what was read."""
    return f"{_VARIABLE}{name}"


def place_of_names(folder: str) -> str:
    """Return what the names in a folder are called among what was read."""
    return f"{folder.rstrip(os.sep)}{os.sep}"


def find(cache: Cache, key: str, here: Path) -> tuple[str, dict[str, bytes]] | None:
    """Return the files that are kept under a key where all that was read is as it was, and what they are kept under."""
    files = cache.get(key)
    if files is None or _READS not in files:
        return None if files is None else (key, files)
    for reads in _sets(files):
        if all(digest_of(place) == sha256 for place, sha256 in reads.items()):
            kept_as = _together(key, here, reads)
            found = cache.get(kept_as)
            if found is not None:
                return kept_as, found
    return None


def keep(
    cache: Cache, key: str, here: Path, reads: Mapping[str, str], files: Mapping[str, bytes], about: Mapping[str, Any]
) -> str | None:
    """Keep files under a key and what was read; return what they are kept under, None where there is no room."""
    if not reads:
        return key if cache.put(key, files, about) else None
    kept_as = _together(key, here, reads)
    if not cache.put(kept_as, files, {**about, "reads": dict(reads)}):
        return None
    before = [each for each in _sets(cache.get(key) or {}) if each != reads]
    listed = json.dumps([dict(reads), *before][:_MOST_READS]).encode()
    cache.put(key, {_READS: listed}, {"kind": "reads", "name": about.get("name", "")})
    return kept_as


def _sets(files: Mapping[str, bytes]) -> list[dict[str, str]]:
    """Return what runs of one key have read, the latest first."""
    try:
        found = json.loads(files.get(_READS, b"[]"))
        return [{str(place): str(sha256) for place, sha256 in each.items()} for each in found]
    except (ValueError, TypeError, AttributeError):
        return []


def _together(key: str, here: Path, reads: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps([key, str(here), sorted(reads.items())]).encode()).hexdigest()
