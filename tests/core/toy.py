"""A machine that takes no time: stand-ins for compiler, engine and executor, and plug-ins made by hand."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kernbench_core.compute.on_demand import BranchValues, HostReads
from kernbench_core.oplog.log import OpRecord
from kernbench_core.plugins import Plugins, load_plugins
from tests.core.offered import MACHINES, SAVED

engines: list[FakeEngine] = []
plugins: Plugins
timing: Any
verdict: Any

PLUGIN = """
from kernbench_core.plugins import BenchEntry, CommandEntry, RunPartEntry, TopologyEntry
kernbench_api = 1
def kernbench_benches():
    return [BenchEntry("toy", "toy_parts:bench"), BenchEntry("lost", "toy_parts:nothing")]
def kernbench_topologies():
    return [TopologyEntry("one", "toy_parts:one.yaml", "One.")]
def kernbench_run_parts():
    return [RunPartEntry("note", "toy_note:NotePart", "A line on the run.")]
def kernbench_commands():
    return [CommandEntry("hello", "toy_parts:hello", "Say hello.")]
"""
PARTS = '''
import numpy as np
import rich_click as click
def bench(rt, n: int = 3, fail: str = "", a: np.ndarray | None = None):
    """Do nothing, n times."""
    if fail == "interrupt":
        raise KeyboardInterrupt
    if fail:
        import kernbench_core.errors as errors
        raise (getattr(errors, fail, None) or ZeroDivisionError)("it failed.")
    print("the kernel says hello")
    rt.logged.append(n)
@click.command()
@click.argument("name")
def hello(name):
    click.echo(f"hello {name}")
    return int(name) if name.lstrip("-").isdigit() else None
'''
#: A part of runs: what it was asked for, in a file and in the result.
NOTE = '''
from pathlib import Path
from typing import Annotated
import attrs
from kernbench_core.errors import UsageError
from kernbench_core.process.whole_files import check_file, whole_file
from kernbench_core.runs.options import Option, OptionRecord
from kernbench_core.runs.parts import RunPart

@attrs.frozen
class Note:
    words: str
    def to_json(self):
        return {"words": self.words}

@attrs.frozen(kw_only=True)
class NoteOptions(OptionRecord):
    note: Annotated[str | Path | None, Option("Write a line on the run.", "FILE")] = None
    words: Annotated[str, Option("What to write.", "TEXT")] = "well"

class NotePart(RunPart):
    NAME, OPTIONS, SAVES = "note", NoteOptions, ("note.txt",)

    @classmethod
    def wanted(cls, options, call):
        return options.note is not None

    @classmethod
    def check(cls, options, wanted):
        if options.words != "well" and not wanted:
            raise UsageError("--words must come with --note.")

    def __init__(self, options, call, plugins):
        super().__init__(options, call, plugins)
        self.path = check_file("note", Path(options.note), ".txt")

    @property
    def files(self):
        return {"note": self.path}

    def answer(self, session):
        return Note(f"{self.options.words}: {len(session.op_log)}")

    @classmethod
    def show(cls, answer, console, *, verbose=False):
        console.print(answer.words)

    def save(self, folder, answers):
        (folder / "note.txt").write_text(answers["note"].words)

    def end(self, result, answers):
        with whole_file(self.path) as out:
            out.write(answers["note"].words.encode())
'''


def op_record(value: object) -> OpRecord:
    """Return a record that holds what the bench logged."""
    return OpRecord(0.0, 1.0, "sip0.cube0.pe0.pe_math", "math", "log", {"value": value}, op_id=(0, 1))


def save_run(path: Path, op_log: FakeLog, *_: object) -> None:
    """Write one line for each op."""
    path.mkdir()
    (path / "log").write_text("".join(f"[{json.dumps(value)}]\n" for value in op_log.records))


class FakeLog:
    """An op log of plain objects."""

    def __init__(self) -> None:
        self.records: list[object] = []

    def __iter__(self) -> Iterator[OpRecord]:
        return map(op_record, self.records)

    def __len__(self) -> int:
        return len(self.records)

    def sha256(self) -> str:
        return hashlib.sha256(repr(self.records).encode()).hexdigest()


class FakeEngine:
    """Calls the bench with an object that logs, and answers with the hand-made timing."""

    def __init__(self, graph: object, components: object, **options: Any) -> None:
        self.graph, self.options = graph, options
        self.functions = options["functions"]
        self.op_log, self.store = FakeLog(), SimpleNamespace(data=True)
        self.expectations: list[Any] = []
        self.rows: list[Any] = []
        self.hardware = SimpleNamespace(op_logger=None)
        self.shared = SimpleNamespace(requests=[], tensors={}, launches=[])
        self.device = SimpleNamespace(
            recorder=None,
            hazards=SimpleNamespace(found=tuple),
            kernels=SimpleNamespace(outside=None, read_at={}),
            on_demand=SimpleNamespace(confirm=lambda *_: None, branch_values=BranchValues(), host_reads=HostReads()),
        )
        engines.append(self)

    def run(self, bench: Any, params: Any, *, name: str) -> None:
        self.params = params
        bench(SimpleNamespace(logged=self.op_log.records), **params)

    def close(self) -> None:
        """Have nothing suspended."""

    def get_timing_result(self) -> Any:
        return timing


class FakeExecutor:
    """Finds what `verdict` says."""

    computed_by = None

    def __init__(self, log: FakeLog, store: object, functions: object, backend: object) -> None: ...

    def pending_ops(self, values: object) -> int:
        return 0

    def verify(self, expected: object) -> Any:
        return verdict


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, samples: ModuleType) -> None:
    """Put the stand-ins in place for one test, and the plug-in's files into `folder`."""
    global plugins, timing, verdict
    package = folder / "site" / "toy_parts"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PARTS)
    (package / "one.yaml").write_text("system:\n  sips: 1\n")
    (package.parent / "toy_plugin.py").write_text(PLUGIN)
    (package.parent / "toy_note.py").write_text(NOTE)
    monkeypatch.syspath_prepend(package.parent)
    for name in ("toy_plugin", "toy_parts", "toy_note"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr("kernbench_builtin.machines.plugin.kernbench_run_parts")
    plugins = load_plugins(["toy = toy_plugin", MACHINES, SAVED], installed=False)
    timing, verdict = samples.TIMING, samples.RIGHT
    monkeypatch.setattr("kernbench_core.host.session.GraphEngine", FakeEngine)
    importlib.import_module("kernbench_builtin.machines.presets")  # takes the next one by name: not the stand-in
    monkeypatch.setattr("kernbench_core.topology.compilation.compile_topology", lambda config, *_: config)
    monkeypatch.setattr("kernbench_core.compute.executor.DataExecutor", FakeExecutor)
    saver = ModuleType("kernbench_builtin.saved.saved_run")
    saver.save_run = save_run  # type: ignore[attr-defined]
    saver.load_run = lambda path: SimpleNamespace(  # type: ignore[attr-defined]
        op_log=[op_record(*json.loads(line)) for line in (path / "log").read_text().splitlines()]
    )
    monkeypatch.setitem(sys.modules, "kernbench_builtin.saved.saved_run", saver)
