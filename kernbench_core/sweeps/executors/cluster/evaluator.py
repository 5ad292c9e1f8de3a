"""A process that evaluates the points of one sweep, one after the other, for whoever started it.

It is asked in lines of JSON on its standard input and answers so on its standard output, the first line saying what is
installed. What a bench prints, and what it does to its process, stays in a process of its own.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any


class EvaluatorEnded(Exception):
    """The process that evaluates points has ended, or was ended; what it wrote is in the log of the worker."""


class Evaluator:
    """A process that evaluates points in the folder `start`, with more variables in its environment."""

    def __init__(self, start: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=start,
            env={**os.environ, **environment},
        )
        try:
            #: What is installed where it runs.
            self.installed: dict[str, Any] = self._answer()
        except EvaluatorEnded:
            self.kill()
            raise

    def evaluate(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of a job; raise EvaluatorEnded where none comes."""
        asked = self._pipe(self._process.stdin)
        try:
            asked.write(json.dumps(job).encode() + b"\n")
            asked.flush()
        except OSError:
            raise EvaluatorEnded from None
        return self._answer()

    def kill(self) -> None:
        """End it at once, and the point that it evaluates."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                self._pipe(pipe).close()
            except OSError:
                continue  # what was not written yet

    def _answer(self) -> dict[str, Any]:
        line = self._pipe(self._process.stdout).readline()
        if not line.endswith(b"\n"):
            raise EvaluatorEnded
        answer: dict[str, Any] = json.loads(line)
        return answer

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None, "both are pipes"
        return pipe


def main() -> None:
    """Evaluate what is asked for on standard input until that ends."""
    from kernbench_core.sweeps.evaluate import evaluate, import_all, warm
    from kernbench_core.sweeps.executors.cluster.sameness import installed
    from kernbench_core.sweeps.executors.local import LocalExecutor

    threading.Thread(target=_end_with_whoever_asks, daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    plugins = warm()
    import_all()
    _answer(answers, installed(plugins))
    with LocalExecutor(1, ahead=0, work=partial(evaluate, plugins=plugins)) as executor:
        for record in executor.run(_asked()):
            _answer(answers, record)


def _end_with_whoever_asks() -> None:
    """End this process once nobody can ask any more, whatever it does then: the process of a point ends with it.

    The thread that started it may end before, so that the kernel cannot be asked to see to it.
    """
    asked = select.poll()
    asked.register(0, 0)  # its other end is closed: that is always told
    asked.poll()
    os._exit(0)


def _asked() -> Iterator[dict[str, Any]]:
    for line in sys.stdin.buffer:
        yield json.loads(line)


def _answer(out: IO[bytes], answer: Mapping[str, Any]) -> None:
    out.write(json.dumps(answer).encode() + b"\n")
    out.flush()


if __name__ == "__main__":
    main()
