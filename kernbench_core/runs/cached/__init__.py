"""Runs whose results are kept: what a result depends on as a key, and the result as files of the user's cache.

In: a request, and what carries it out. Out: its result, made now or earlier. `kb.run(cached=True)` calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.runs.cached.keys import NOT_COVERED as NOT_COVERED
    from kernbench_core.runs.cached.keys import RunKey as RunKey
    from kernbench_core.runs.cached.keys import run_key as run_key
    from kernbench_core.runs.cached.lookup import cached_run as cached_run
    from kernbench_core.runs.cached.output import replayed as replayed
    from kernbench_core.runs.cached.sentences import sentence_of as sentence_of
    from kernbench_core.runs.cached.sentences import sentence_of_key as sentence_of_key
    from kernbench_core.runs.cached.surprises import Surprises as Surprises

__getattr__ = door(
    __name__,
    {
        "NOT_COVERED": "keys",
        "RunKey": "keys",
        "Surprises": "surprises",
        "cached_run": "lookup",
        "replayed": "output",
        "run_key": "keys",
        "sentence_of": "sentences",
        "sentence_of_key": "sentences",
    },
)
