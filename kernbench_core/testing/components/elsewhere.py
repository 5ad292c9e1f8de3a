"""The logs that processes of their own give, each with a seed of hashes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from kernbench_core.plugins import Plugins
from kernbench_core.registry import Provider
from kernbench_core.testing.kit import CheckFailed

#: What PYTHONHASHSEED is in each process.
SEEDS: Final = ("0", "1", "random")
#: What a process tells of each model: its log (a text says why there is none), and what it read from outside.
_Told: TypeAlias = Mapping[str, Mapping[str, list[str]]]
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
        self._told: list[_Told] = []

    def logs(self, name: str) -> list[list[str]]:
        """Return the log of a model with each of the `SEEDS`; CheckFailed where a process cannot give it."""
        logs = [each.get(name, {}).get("log") for each in self._of(name)]
        for seed, log in zip(SEEDS, logs, strict=True):
            if not isinstance(log, list):
                why = log or "it ended without a word"
                raise CheckFailed(f"a process with PYTHONHASHSEED={seed} must be able to build and drive it, and {why}")
        return [log for log in logs if log is not None]

    def reads(self, name: str) -> list[str]:
        """Return what a model read besides parameters and messages, a clause each, as the first process saw it."""
        return self._of(name)[0].get(name, {}).get("reads", [])

    def _of(self, name: str) -> list[_Told]:
        if not self._told:
            self._told = _ask(self._plugins, self._names)
        if not all(name in each for each in self._told):  # one of the others has ended the process
            return _ask(self._plugins, (name,))
        return self._told


def _ask(plugins: Plugins, names: Sequence[str]) -> list[_Told]:
    order = {
        "path": [str(Path(place).absolute()) for place in sys.path],
        "sources": [attrs.asdict(source) for source in plugins.sources],
        "names": names,
        "kits": [f"{giver.distribution}:{name}" for name, giver in _givers(plugins) if ":" not in name],
    }
    asked = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for seed in SEEDS
    ]  # fmt: skip
    for number, process in enumerate(asked):
        assert process.stdin is not None, "it is a pipe"
        with process.stdin:
            process.stdin.write(json.dumps({**order, "looks": number == 0}))
        process.stdin = None
    return [_answer(process) for process in asked]


def _givers(plugins: Plugins) -> list[tuple[str, Provider]]:
    """Return the kits that plug-ins give, and who gives each: another process may have two of a name."""
    givers = [(name, plugins.kits.provider(name)) for name in plugins.kits]
    return [pair for pair in givers if pair[1].plugin != "core"]


def _answer(process: subprocess.Popen[str]) -> _Told:
    """Return what a process says of each model: its log, or why there is none; nothing of one that ends it."""
    out, _ = process.communicate()
    found: dict[str, Mapping[str, list[str]]] = {}
    for line in out.splitlines():
        if line.startswith("{"):
            found.update(json.loads(line))
    return found
