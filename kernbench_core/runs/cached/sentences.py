"""What is said of the cache beside a result, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.cache import Cache
from kernbench_core.runs.cached.keys import NOT_COVERED, differences

if TYPE_CHECKING:
    from kernbench_core.runs.result import RunResult

_LETTERS = 12


def sentence_of(result: RunResult, *, verbose: bool) -> str | None:
    """Say that a result is from the cache, and what its key does not cover; that it is kept, if all is to be told."""
    if result.cache_key is None:
        return None
    if result.cache_note:
        return f"{result.cache_note} as {result.cache_key[:_LETTERS]}."
    if result.from_cache:
        return sentence_of_key(result.cache_key, from_cache=True)
    return f"{sentence_of_key(result.cache_key, from_cache=False)}{_since(result.cache_key)}" if verbose else None


def _since(key: str) -> str:
    """Say in which parts a key differs from the one of the same name that was used last; "" where there is none."""
    runs = [entry for entry in Cache.of_user().entries() if entry.about is not None and "parts" in entry.about]
    own = next((entry.about for entry in runs if entry.key == key), None)
    same = [entry.about for entry in runs if own is not None and entry.key != key and entry.about]
    last = next((about for about in same if own is not None and about.get("name") == own.get("name")), None)
    if own is None or last is None:
        return ""
    found = differences(own["parts"], last["parts"]) or ("what it reads",)
    return f" The last one of this name differs in {', '.join(found)}."


def sentence_of_key(key: str, *, from_cache: bool) -> str:
    """Say of a key that what it stands for is from the cache, or is kept there, and what it does not cover."""
    done = "from the cache" if from_cache else "kept in the cache"
    return f"{done}, {key[:_LETTERS]}, whose key does not cover {', '.join(NOT_COVERED[:-1])} and {NOT_COVERED[-1]}."
