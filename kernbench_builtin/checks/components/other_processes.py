"""Whether a model is the same in other processes, built anew from its name, each with a seed of hashes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from kernbench_builtin.checks.chosen_kits import with_kits
from kernbench_builtin.checks.components.component_under_test import ComponentUnderTest, first_difference, log_of
from kernbench_builtin.checks.plugin import KITS
from kernbench_core.errors import in_words
from kernbench_core.plugins import Plugins, PluginSource, Provider, load_plugins
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.testing.kit import CheckFailed

#: What PYTHONHASHSEED is in each process.
_SEEDS: Final = ("0", "1", "random")
#: What a process tells of each model: its log, or why there is none.
_Logs: TypeAlias = Mapping[str, list[str] | str]
_PROGRAM: Final = """import json, sys
request = json.loads(sys.stdin.read())
sys.path[:] = request.pop("path")
from kernbench_builtin.checks.components.other_processes import print_logs
print_logs(**request)
"""
#: Whose kits are taken of several with one name: those that are named.
_NOBODY: Final = Provider("", "", "")


class OtherProcesses:
    """Processes that drive models anew, from their names: all of those that are checked together, once each.

    They are started when the log of the first of the models is asked for.
    """

    def __init__(self, plugins: Plugins, names: Sequence[str]) -> None:
        self._plugins = plugins
        self._names = names
        self._logs: list[_Logs] = []

    def logs(self, name: str) -> dict[str, list[str]]:
        """Return the log of a model by seed of hashes; CheckFailed where a process cannot give it."""
        if not self._logs:
            self._logs = _ask(self._plugins, self._names)
        told = self._logs
        if not all(name in each for each in told):  # one of the others may have ended the process
            told = _ask(self._plugins, (name,))
        found = {}
        for seed, each in zip(_SEEDS, told, strict=True):
            log = each.get(name, "it ended without a word")
            if isinstance(log, str):
                raise CheckFailed(f"a process with PYTHONHASHSEED={seed} must be able to build and drive it, and {log}")
            found[seed] = log
        return found


def logs_the_same_in_another_process(under_test: ComponentUnderTest) -> None:
    """Built anew, here a second time and in processes with other seeds of hashes, it gives the same log."""
    log = log_of(under_test.drives_for("logs_the_same_in_another_process"))
    if told := first_difference(log, log_of(under_test.again)):
        raise CheckFailed(f"in this process, and when it is built anew there, {told}")
    for seed, other in under_test.logs_elsewhere(under_test.name).items():
        if told := first_difference(log, other):
            raise CheckFailed(f"in this process and in one with PYTHONHASHSEED={seed} {told}")


def _ask(plugins: Plugins, names: Sequence[str]) -> list[_Logs]:
    """Start a process for each seed; return their logs."""
    kits = plugins.of(KITS)  # by their vendors: another process may have two of a name
    given = json.dumps({
        "path": [str(Path(place).absolute()) for place in sys.path],
        "sources": [attrs.asdict(source) for source in plugins.sources],
        "names": names,
        "kits": [f"{kits.provider(name).distribution}:{name}" for name in kits if ":" not in name],
    })  # fmt: skip
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for seed in _SEEDS
    ]  # fmt: skip
    for process in processes:
        assert process.stdin is not None, "it is a pipe"
        with process.stdin:
            process.stdin.write(given)
        process.stdin = None
    return [_answer(process) for process in processes]


def _answer(process: subprocess.Popen[str]) -> _Logs:
    """Return what a process says of each model: its log, or why there is none; nothing of one that ends it."""
    out, _ = process.communicate()
    found: dict[str, list[str] | str] = {}
    for line in out.splitlines():
        if line.startswith("{"):
            found.update(json.loads(line))
    return found


def print_logs(names: Sequence[str], sources: Sequence[dict[str, str]], kits: Sequence[str]) -> None:
    """Drive registered models, and print the log of each as JSON, or why there is none; in a process of its own."""
    plugins = with_kits(load_plugins([PluginSource(**source) for source in sources], installed=False), _NOBODY, kits)
    for name in names:
        print(json.dumps({name: _log(name, plugins)}), flush=True)


def _log(name: str, plugins: Plugins) -> list[str] | str:
    try:
        drives = ComponentUnderTest(name, plugins).driven()
        failed = [in_words(drive.error) for drive in drives if drive.error is not None]
        return f"it raised {failed[0]}" if failed else log_of(drives)
    except (*INTERRUPTS, MemoryError):
        raise
    except BaseException as error:
        return f"it raised {in_words(error)}"
