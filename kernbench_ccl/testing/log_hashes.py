"""The op log of a call in a process with a hash seed of its own, as a SHA-256.

A process is started once for each seed and set of plug-ins; it answers a line for each line that it is asked.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import weakref
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import attrs

from kernbench_ccl.measure.machine import Setup, machine_of
from kernbench_ccl.measure.measurement import simulated
from kernbench_ccl.measure.timed_run import TimedCase
from kernbench_ccl.plan.configuration import Settings
from kernbench_ccl.testing.algorithm_under_test import LIMITS
from kernbench_core.errors import in_words
from kernbench_core.plugins import Plugins, PluginSource, load_plugins
from kernbench_core.testing import CheckFailed

SEEDS: Final = (1, 2)
"""The values of PYTHONHASHSEED that logs are compared under."""

_OURS = "kernbench_ccl.testing.log_hashes"


def log_hashes(plugins: Plugins, seed: int, setup: Setup, case: TimedCase) -> tuple[str, str]:
    """Return what identifies the logs of two calls, one after the other; CheckFailed where they do not end."""
    asked = json.dumps({"setup": attrs.asdict(setup), "case": attrs.asdict(case)})
    told = json.loads(_process(seed, plugins.sources).ask(asked))
    if "fault" in told:
        raise CheckFailed(f"in a process with hash seed {seed}: {told['fault']}")
    first, second = told["logs"]
    return first, second


class _Process:
    """A process with a hash seed, which ends when this one does."""

    def __init__(self, seed: int, sources: tuple[PluginSource, ...]) -> None:
        places = [str(Path(place).absolute()) for place in sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {_OURS} import answer; answer()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(places)},
        )  # fmt: skip
        weakref.finalize(self, _end, self._process)
        self.ask(json.dumps([attrs.asdict(source) for source in sources]))

    def ask(self, line: str) -> str:
        """Return the line that answers one."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None and answers is not None
        with suppress(BrokenPipeError):
            asked.write(f"{line}\n")
            asked.flush()
        found = answers.readline()
        if not found:
            _process.cache_clear()
            raise CheckFailed(f"a process that simulates must answer, and one ended with code {self._process.wait()}")
        return found


def _end(process: subprocess.Popen[str]) -> None:
    """End a process, whatever it does."""
    process.kill()
    with suppress(BrokenPipeError):
        process.communicate()


@lru_cache(maxsize=len(SEEDS))
def _process(seed: int, sources: tuple[PluginSource, ...]) -> _Process:
    return _Process(seed, sources)


def answer() -> None:
    """Answer lines of stdin until there are no more: what the other process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks ends this process
    answers, sys.stdout = sys.stdout, sys.stderr
    sources = [PluginSource(**each) for each in json.loads(sys.stdin.readline())]
    plugins = load_plugins(sources, installed=False)
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        try:
            told: dict[str, Any] = {"logs": _logs(json.loads(line), plugins)}
        except BaseException as fault:
            told = {"fault": f"it raised {in_words(fault)}".partition("\n")[0]}
        print(json.dumps(told), file=answers, flush=True)


def _logs(asked: dict[str, Any], plugins: Plugins) -> list[str]:
    given = asked["setup"]
    setup = Setup(**{**given, "sets": tuple(given["sets"])})
    case = TimedCase(**{**asked["case"], "settings": Settings(**asked["case"]["settings"])})
    machine = machine_of(setup, plugins)
    return [simulated(case, machine, plugins, data=True, limits=LIMITS)[0].op_log.sha256() for _ in range(2)]
