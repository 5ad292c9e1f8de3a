"""What a command that was asked to be --cached says of the cache, in a line on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell
    from kernbench_core.runs.result import RunResult


def tell_of_cache(shell: Shell, result: RunResult, *, verbose: bool) -> None:
    """Say that a result is from the cache, and what its key does not cover; or that it is kept, if all is told."""
    if result.cache_note and result.cache_key is not None:
        shell.note(f"{result.cache_note} as {result.cache_key[:12]}.")
    elif result.cache_key is not None and (result.from_cache or verbose):
        tell_key(shell, result.cache_key, from_cache=result.from_cache)


def tell_key(shell: Shell, key: str, *, from_cache: bool) -> None:
    """Say of a key that what it stands for is from the cache, or is kept there, and what it does not cover."""
    from kernbench_core.runs.cached import NOT_COVERED

    done = "from the cache" if from_cache else "kept in the cache"
    shell.note(f"{done}, {key[:12]}, whose key does not cover {', '.join(NOT_COVERED[:-1])} and {NOT_COVERED[-1]}.")
