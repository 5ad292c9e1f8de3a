"""The examples of exported names, for tests that try them: with core alone, and with the presets."""

from __future__ import annotations

import doctest
from typing import Any

import kernbench_core as kb

#: Those whose examples run a bench on a preset, which core itself does not have: tests/test_public_names.py tries them.
RUN_A_BENCH = {
    "ConfigError",
    "DataExecutor",
    "GraphEngine",
    "Interleave",
    "KernelError",
    "KitEntry",
    "Replicate",
    "RunResult",
    "Shard",
    "UsageError",
    "compile_topology",
    "run",
}


def example_of(name: str) -> doctest.DocTest:
    """Return the examples of an exported thing's own docstring."""
    (found,) = doctest.DocTestFinder(recurse=False).find(getattr(kb, name), f"kb.{name}", False, globs={"kb": kb})
    return found


def try_example(name: str) -> dict[str, Any]:
    """Run the example of an exported thing, which must print what it shows; return the names that it leaves."""
    example = example_of(name)
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(example, out=said.append, clear_globs=False)
    assert failed == 0, "".join(said)
    return example.globs
