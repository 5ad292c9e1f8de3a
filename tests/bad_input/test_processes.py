"""Programs that are in C code for ever, that defend themselves against signals, and that leave something running."""

from __future__ import annotations

import json
import re
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from kernbench_core.process import supervision
from tests.core.forked import soon_ended

BENCH = """
import itertools, resource, subprocess, sys
def kernel(x, how, tl):
    if how in ("C", "Python"):
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        open("other", "w").write(str(other.pid))
        while how == "Python": pass
        sum(itertools.repeat(0))
    while how == "loads":
        tl.load(x, shape=(4,))
def forever():
    while True: pass
def bench(rt, how: str):
    x = rt.zeros((64,))
    open("started", "w").close()
    rt.launch(kernel, x, how, grid=(1,))
    if how == "memory":
        import numpy as np
        resource.setrlimit(resource.RLIMIT_AS, (1 << 36, resource.getrlimit(resource.RLIMIT_AS)[1]))
        np.ones((1 << 37,), np.int8)
    if how == "reference":
        rt.check(x, forever)
"""
RUN = ("run", "k.py", "--topology", "tiny", "-q")
LIMIT = "error: the run reached its limit of {} s of wall time "
END = "; raise --timeout if it is only long.\n"
#: What follows where the session has come to no command of a kernel.
UNSAID = "  what limited it until then cannot be said: no command of a kernel had ended.\n"


@pytest.fixture(autouse=True)
def bench(folder: Any) -> None:
    """Put the bench file into the folder."""
    folder.write("k.py", BENCH)


def limited(place: str, carry_out: Callable[[float], str]) -> str:
    """Return what is told of a limit, in s, that lets a busy host come as far as `place`."""
    told = ""
    for limit_s in (0.5, 2.0, 8.0, 32.0):
        told = carry_out(limit_s)
        if place in told:
            break
    return told.replace(f" {limit_s:g} s ", " {} s ", 1).removesuffix(UNSAID)


def test_the_limit_covers_opening_the_bench(folder: Any) -> None:
    """A file that never comes to its end."""
    folder.write("endless.py", "while True:\n    pass\n")
    outcome = folder.call("run", "endless.py", "--topology", "tiny", "--timeout", "500 ms")
    where = [f"{LIMIT.format(0.5)}while opening the bench, in {folder.path}/endless.py:{line}{END}" for line in (1, 2)]
    assert outcome.err in where
    assert outcome.code == 5


def test_the_limit_covers_building_the_machine(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose __init__ never ends."""
    models = Path(__file__).with_name("hostile_models.py")
    monkeypatch.syspath_prepend(models.parent)
    plugins: Plugins = load_plugins([*own_plugins("builtin"), "hostile = hostile_models"], installed=False)
    choice = ("--set", "components.pe_gemm.impl=hostile.neverbuilt", "--set", "components.pe_gemm.params={}")
    told = limited(
        str(models),
        lambda s: folder.call(*RUN, "-p", "how=", *choice, "--timeout", f"{s} s", plugins=plugins).err,
    )
    assert told.startswith(f"{LIMIT}while building the machine, in {models}:")
    assert told.endswith(END)


def test_the_limit_covers_computing_the_data(folder: Any) -> None:
    """A reference that never returns."""
    line = BENCH.splitlines().index("    while True: pass") + 1
    told = limited(
        f"k.py:{line}",
        lambda s: folder.call(*RUN, "-p", "how=reference", "--verify-data", "--timeout", f"{s} s").err,
    )
    assert told == f"{LIMIT}while computing the data, in {folder.path}/k.py:{line}{END}"


EXPORTER = """
from kernbench_core.plugins import ExporterEntry
def export(op_log, out):
    out.write(b"half")
    while True: pass
kernbench_api = 1
def kernbench_exporters():
    return [ExporterEntry("endless", "endless_exporter:export", (".evil",), "Never end.")]
"""


def test_the_limit_covers_the_exporter_of_a_trace(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a plug-in that never ends; nothing is written."""
    folder.write("endless_exporter.py", EXPORTER)
    monkeypatch.syspath_prepend(folder.path)
    plugins = load_plugins([*own_plugins("builtin"), "endless = endless_exporter"], installed=False)
    files = ("--trace", "t.evil", "--out", "o")
    told = limited(
        "writing", lambda s: folder.call(*RUN, "-p", "how=", *files, "--timeout", f"{s} s", plugins=plugins).err
    )
    assert told == f"{LIMIT}while writing the trace, in {folder.path}/endless_exporter.py:5{END}"
    assert folder.files() == {"k.py", "started", "endless_exporter.py"}


@pytest.mark.parametrize(
    ("how", "line", "where"),
    [
        ("C", "        sum(itertools.repeat(0))", "in {}, in code that no interrupt ends"),
        ("Python", '        while how == "Python": pass', " events in {}, which never returned to the simulator"),
    ],
    ids=["C", "Python"],
)
def test_what_never_returns_is_ended_with_what_it_started(
    folder: Any, how: str, line: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 5, the line, and no orphan."""
    monkeypatch.setattr(supervision, "GRACE_S", 1.0)
    ends = []

    def carry_out(limit_s: float) -> str:
        process = folder.fork(*RUN, "-p", f"how={how}", "--timeout", f"{limit_s} s")
        out, err = process.communicate(timeout=240)
        ends.append((process.returncode, out))
        return str(err)

    where = where.format(f"{folder.path}/k.py:{BENCH.splitlines().index(line) + 1}")
    told = limited(where, carry_out)
    assert told.startswith(LIMIT) and told.endswith(f"{where}{END}")
    assert ends[-1] == (5, "")
    assert soon_ended(int((folder.path / "other").read_text()))


@pytest.mark.parametrize(
    ("sent", "code", "limit"),
    [
        # Alone and by SIGINT: test_stops.py
        pytest.param(signal.SIGTERM, 143, (), id="alone-SIGTERM"),
        pytest.param(signal.SIGINT, 130, ("--timeout", "1000 s"), id="supervised-SIGINT"),
        pytest.param(signal.SIGTERM, 143, ("--timeout", "1000 s"), id="supervised-SIGTERM"),
    ],
)
def test_signals_end_a_run_with_what_was_done(
    folder: Any, sent: signal.Signals, code: int, limit: tuple[str, ...]
) -> None:
    """SIGTERM does what Ctrl-C does, with its own exit code; both reach the run from the process that was started."""
    process = folder.fork("run", "k.py", "--topology", "tiny", "-p", "how=loads", "--out", "o", *limit)
    _wait_for(folder.path / "started")
    process.send_signal(sent)
    out, err = process.communicate(timeout=240)
    assert process.returncode == code
    # where the signal meets a line of the kernel, that is named
    assert re.fullmatch(r"(note: the run was interrupted in \S+k\.py:\d+\.\n)?", err), err
    assert "\ninterrupted: everything here covers only what ran; --out is not written\n" in out
    assert folder.files() == {"k.py", "started"}


@pytest.mark.parametrize(
    ("sent", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
    ids=["SIGINT", "SIGTERM"],
)  # fmt: skip
def test_signals_before_anything_ran_are_told(folder: Any, sent: signal.Signals, code: int, word: str) -> None:
    """In a sentence, and in the object of --json, with the exit code of the process."""
    folder.write("slow.py", "import time\nopen('started', 'w').close()\ntime.sleep(1000)\n")
    process = folder.fork("run", "slow.py", "--topology", "tiny", "--json")
    _wait_for(folder.path / "started")
    process.send_signal(sent)
    out, err = process.communicate(timeout=240)
    told = f"{word} while opening the bench."
    assert (process.returncode, err.strip()) == (code, f"error: {told}")
    assert json.loads(out) == {"schema": "kernbench.error/1", "exit_code": code, "problems": [told]}


def test_want_of_memory_is_a_limit(folder: Any) -> None:
    """Exit code 5, with the line, and nothing left."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        outcome = folder.call(*RUN, "-p", "how=memory", "--out", "o")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    told = "error: bench 'k' raised MemoryError: Unable to allocate 128. GiB for an array "
    assert outcome.err.startswith(told), outcome.err
    line = BENCH.splitlines().index("        np.ones((1 << 37,), np.int8)") + 1
    assert f'File "{folder.path}/k.py", line {line}, in bench' in outcome.err
    assert (outcome.code, outcome.out, folder.files()) == (5, "", {"k.py", "started"})


def test_a_killed_supervisor_takes_the_run_with_it(folder: Any) -> None:
    """Nothing is left that has the pipes."""
    process = folder.fork(*RUN, "-p", "how=loads", "--timeout", "1000 s")
    _wait_for(folder.path / "started")
    process.kill()
    process.communicate(timeout=240)  # else somebody has its end of the pipes
    assert process.returncode == -signal.SIGKILL


def test_a_run_that_is_killed_says_so(folder: Any) -> None:
    """With a limit, whose keeper sees it; the exit code is that of a shell."""
    folder.write("end.py", "import os\ndef bench(rt):\n    os.kill(os.getpid(), 9)\n")
    process = folder.fork("run", "end.py", "--topology", "tiny", "--json", "--timeout", "1000 s")
    out, err = process.communicate(timeout=240)
    told = (
        "the process of the run was killed by signal 9 (Killed): by the program in it, by somebody else, or by the "
        "system where memory is exhausted."
    )
    assert (process.returncode, err) == (137, f"error: {told}\n")
    assert json.loads(out) == {"schema": "kernbench.error/1", "exit_code": 137, "problems": [told]}


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 240
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.3)
