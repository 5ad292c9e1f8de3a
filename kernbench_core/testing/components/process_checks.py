"""Whether a model is the same in another process, built anew from its name and parameters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from kernbench_core.errors import in_words
from kernbench_core.testing.components.subject import ComponentUnderTest, first_difference
from kernbench_core.testing.kit import CheckFailed, NotApplicable

_SEEDS: Final = ("0", "1", "random")


def logs_the_same_under_every_hash_seed(subject: ComponentUnderTest) -> None:
    """Processes with PYTHONHASHSEED 0, 1 and random give one log: nothing depends on the order of a set."""
    subject.course_for("logs_the_same_under_every_hash_seed")
    first, *others = logs_elsewhere(subject)
    for seed, log in zip(_SEEDS[1:], others, strict=True):
        if told := first_difference(first, log):
            raise CheckFailed(f"with PYTHONHASHSEED={_SEEDS[0]} and {seed} {told}")


def logs_the_same_in_another_process(subject: ComponentUnderTest) -> None:
    """Built anew from its name and parameters, here a second time and in another process, it gives the same log."""
    course = subject.course_for("logs_the_same_in_another_process")
    logs = logs_elsewhere(subject)
    if any(log != logs[0] for log in logs):
        raise NotApplicable("its log depends on the seed of hashes, as logs_the_same_under_every_hash_seed tells")
    if told := first_difference(course.log, subject.drive().log):
        raise CheckFailed(f"in this process, and when it is built anew there, {told}")
    if told := first_difference(course.log, logs[0]):
        raise CheckFailed(f"in this process and in another {told}")


def logs_elsewhere(subject: ComponentUnderTest) -> list[list[str]]:
    """Return the log of the drive in processes of their own, one for each seed; they are asked once."""
    if subject.elsewhere is None:
        asked = [_ask(subject, seed) for seed in _SEEDS]
        subject.elsewhere = [_answer(process, seed) for process, seed in zip(asked, _SEEDS, strict=True)]
    return subject.elsewhere


def _ask(subject: ComponentUnderTest, seed: str) -> subprocess.Popen[str]:
    order = {
        "path": [str(Path(place).absolute()) for place in sys.path],
        "sources": [attrs.asdict(source) for source in subject.plugins.sources],
        "name": subject.name,
        "kind": subject.kind,
    }
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    program = "import json, sys; order = json.loads(sys.argv[1]); sys.path[:] = order.pop('path')\n" \
        "from kernbench_core.testing.components.process_checks import tell; tell(**order)"  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(order)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _answer(process: subprocess.Popen[str], seed: str) -> list[str]:
    out, err = process.communicate()
    if process.returncode:
        last = (err.strip().splitlines() or ["nothing on stderr"])[-1]
        raise CheckFailed(f"a process with PYTHONHASHSEED={seed} must be able to build it anew, and ended with {last}")
    found: list[str] = json.loads(out.splitlines()[-1])
    return found


def tell(name: str, kind: str, sources: Sequence[dict[str, str]]) -> None:
    """Drive a registered model, and print its log as JSON; what a process of its own does."""
    from kernbench_core.plugins import PluginSource, load_plugins

    plugins = load_plugins([PluginSource(**source) for source in sources], installed=False)
    course = ComponentUnderTest(name, plugins, kind).drive()
    if course.error is not None:
        raise SystemExit(f"it raised {in_words(course.error)}")
    print(json.dumps(course.log))
