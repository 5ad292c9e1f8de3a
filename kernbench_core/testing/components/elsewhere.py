"""The logs that processes of their own give, each with a seed of hashes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from kernbench_core.plugins import Plugins
from kernbench_core.testing.kit import CheckFailed

#: What PYTHONHASHSEED is in each process.
SEEDS: Final = ("0", "1", "random")
_PROGRAM: Final = """import json, sys
order = json.loads(sys.stdin.read())
sys.path[:] = order.pop("path")
from kernbench_core.testing.components.process_checks import tell
tell(**order)
"""


class Elsewhere:
    """Processes that drive models anew, from their names: all of those that are checked together, once each.

    They are started when the log of the first of the models is asked for.
    """

    def __init__(self, plugins: Plugins, names: Sequence[str]) -> None:
        self._plugins = plugins
        self._names = names
        self._told: list[Mapping[str, list[str]]] = []

    def logs(self, name: str) -> list[list[str]]:
        """Return the log of a model with each of the `SEEDS`; CheckFailed where a process cannot give it."""
        if not self._told:
            self._told = _ask(self._plugins, self._names)
        told = self._told
        if not all(name in each for each in told):  # one of the others has ended the process
            told = _ask(self._plugins, (name,))
        for seed, each in zip(SEEDS, told, strict=True):
            if not isinstance(each.get(name), list):
                why = each.get(name) or "it ended without a word"
                raise CheckFailed(f"a process with PYTHONHASHSEED={seed} must be able to build and drive it, and {why}")
        return [each[name] for each in told]


def _ask(plugins: Plugins, names: Sequence[str]) -> list[Mapping[str, list[str]]]:
    order = {
        "path": [str(Path(place).absolute()) for place in sys.path],
        "sources": [attrs.asdict(source) for source in plugins.sources],
        "names": names,
    }
    asked = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for seed in SEEDS
    ]  # fmt: skip
    for process in asked:
        assert process.stdin is not None, "it is a pipe"
        with process.stdin:
            process.stdin.write(json.dumps(order))
        process.stdin = None
    return [_answer(process) for process in asked]


def _answer(process: subprocess.Popen[str]) -> Mapping[str, list[str]]:
    """Return what a process says of each model: its log, or why there is none; nothing of one that ends it."""
    out, _ = process.communicate()
    found: dict[str, list[str]] = {}
    for line in out.splitlines():
        if line.startswith("{"):
            found.update(json.loads(line))
    return found
