"""What is said of the cache beside a result, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.runs.cached.keys import NOT_COVERED

if TYPE_CHECKING:
    from kernbench_core.runs.result import RunResult

_LETTERS = 12


def sentence_of(result: RunResult, *, verbose: bool) -> str | None:
    """Say that a result is from the cache, and what its key does not cover; that it is kept, if all is to be told."""
    if result.cache_key is None:
        return None
    if result.cache_note:
        return f"{result.cache_note} as {result.cache_key[:_LETTERS]}."
    if result.from_cache or verbose:
        return sentence_of_key(result.cache_key, from_cache=result.from_cache)
    return None


def sentence_of_key(key: str, *, from_cache: bool) -> str:
    """Say of a key that what it stands for is from the cache, or is kept there, and what it does not cover."""
    done = "from the cache" if from_cache else "kept in the cache"
    return f"{done}, {key[:_LETTERS]}, whose key does not cover {', '.join(NOT_COVERED[:-1])} and {NOT_COVERED[-1]}."
