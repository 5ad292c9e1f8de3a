"""The logs that processes of their own give, each with a seed of hashes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from kernbench_builtin.checks.plugin import KITS
from kernbench_core.plugins import Plugins
from kernbench_core.testing.kit import CheckFailed, NotApplicable

#: What PYTHONHASHSEED is in each process.
SEEDS: Final = ("0", "1", "random")
#: With which parameters models are driven: as their plug-in gives them, and others. Logs are told under these names.
GIVEN: Final = "given"
VARIED: Final = "varied"
#: What is driven first in each process: the second shows what is left of other parameters, and so does the first.
_ORDERS: Final = ((GIVEN, VARIED), (VARIED, GIVEN), (GIVEN,))
#: What a process tells of each model: its logs (a text says why there is none), and what it read from outside.
_Logs: TypeAlias = Mapping[str, Mapping[str, list[str] | str]]
_PROGRAM: Final = """import json, sys
request = json.loads(sys.stdin.read())
sys.path[:] = request.pop("path")
from kernbench_builtin.checks.components.process_checks import print_logs
print_logs(**request)
"""


class OtherProcesses:
    """Processes that drive models anew, from their names: all of those that are checked together, once each.

    They are started when the log of the first of the models is asked for.
    """

    def __init__(self, plugins: Plugins, names: Sequence[str]) -> None:
        self._plugins = plugins
        self._names = names
        self._logs: list[_Logs] = []
        self._plain: _Logs | None = None

    def logs(self, name: str) -> list[list[str]]:
        """Return the log of a model with each of the `SEEDS`; CheckFailed where a process cannot give it.

        The second process has driven it with other parameters before. Where that one's log differs, another process
        with this seed, that has not, is asked.
        """
        logs = [each.get(name, {}).get(GIVEN) for each in self._of(name)]
        if logs[1] != logs[0]:
            logs[1] = self._undisturbed(name)
        for seed, log in zip(SEEDS, logs, strict=True):
            if not isinstance(log, list):
                why = log or "it ended without a word"
                raise CheckFailed(f"a process with PYTHONHASHSEED={seed} must be able to build and drive it, and {why}")
        return [log for log in logs if isinstance(log, list)]

    def log_after_others(self, name: str) -> list[str]:
        """Return the log of a model that was driven with other parameters before; why there is none in its place."""
        return _lines(self._of(name)[1].get(name, {}).get(GIVEN))

    def varied(self, name: str) -> tuple[tuple[str, list[str]], tuple[str, list[str]]]:
        """Return what the other parameters are, and the log with them: when first driven, and after those given.

        Raises:
            NotApplicable: it was not driven with others, and why.
        """
        after, before = (_lines(each.get(name, {}).get(VARIED)) for each in self._of(name)[:2])
        if len(before) < 2:
            raise NotApplicable(before[0])
        return (before[0], before[1:]), (after[0], after[1:] or after)

    def reads(self, name: str) -> list[str]:
        """Return what a model read besides parameters and messages, a clause each, as the first process saw it."""
        return _lines(self._of(name)[0].get(name, {}).get("reads", []))

    def _of(self, name: str) -> list[_Logs]:
        if not self._logs:
            self._logs = _ask(self._plugins, self._names, zip(SEEDS, _ORDERS, strict=True))
        for told, order in zip(self._logs, _ORDERS, strict=True):
            if not all(what in told.get(name, {}) for what in order):  # one of the others may have ended the process
                return _ask(self._plugins, (name,), zip(SEEDS, _ORDERS, strict=True))
        return self._logs

    def _undisturbed(self, name: str) -> list[str] | str | None:
        if self._plain is None:
            (self._plain,) = _ask(self._plugins, self._names, [(SEEDS[1], (GIVEN,))])
        told = self._plain
        if name not in told:
            (told,) = _ask(self._plugins, (name,), [(SEEDS[1], (GIVEN,))])
        return told.get(name, {}).get(GIVEN)


def _lines(told: list[str] | str | None) -> list[str]:
    """Return a log; of what is none its one line."""
    return told if isinstance(told, list) else [told or "it ended without a word"]


def _ask(plugins: Plugins, names: Sequence[str], processes: Iterable[tuple[str, Sequence[str]]]) -> list[_Logs]:
    """Start a process for each seed and order; return their logs. The first one watches what is read."""
    kits = plugins.of(KITS)  # by their vendors: another process may have two of a name
    given = {
        "path": [str(Path(place).absolute()) for place in sys.path],
        "sources": [attrs.asdict(source) for source in plugins.sources],
        "names": names,
        "kits": [f"{kits.provider(name).distribution}:{name}" for name in kits if ":" not in name],
    }
    asked = [
        (subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ), order)
        for seed, order in processes
    ]  # fmt: skip
    for number, (process, order) in enumerate(asked):
        assert process.stdin is not None, "it is a pipe"
        with process.stdin:
            process.stdin.write(json.dumps({**given, "watch_reads": number == 0, "order": order}))
        process.stdin = None
    return [_answer(process) for process, _ in asked]


def _answer(process: subprocess.Popen[str]) -> _Logs:
    """Return what a process says of each model: its log, or why there is none; nothing of one that ends it."""
    out, _ = process.communicate()
    found: dict[str, dict[str, list[str] | str]] = {}
    for line in out.splitlines():
        if line.startswith("{"):
            for name, told in json.loads(line).items():
                found.setdefault(name, {}).update(told)
    return found
