"""Whatever a plug-in, bench or kernel raises, wherever it does: exit code 6, and whose fault it is."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.plugins import Plugins, load_plugins, own_plugins

#: The plug-in: `fail(place)` raises where a file says so; each entry is broken in its own way.
PLUGIN = """
import asyncio, pathlib, sys
import click
from kernbench_core.component import ComponentBase
from kernbench_core.plugins.entries import *

class Own(BaseException): pass

def fail(place):
    where, how = (pathlib.Path(__file__).parent / "fault").read_text().split()
    if where == place:
        raise {"ValueError": ValueError, "SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt,
               "GeneratorExit": GeneratorExit, "CancelledError": asyncio.CancelledError, "MemoryError": MemoryError,
               "RecursionError": RecursionError, "BrokenPipeError": BrokenPipeError, "Own": Own}[how]("mine")

fail("import")

class Model(ComponentBase):
    def __init__(self, node, hardware):
        fail("__init__")
        super().__init__(node, hardware)
    def connect(self):
        fail("connect")
        super().connect()
    def overhead(self, msg):
        fail("overhead")
        return 1.0
class Process(ComponentBase):
    def run(self, env, msg):
        yield env.timeout(1)
        fail("run")
class Rubbish(ComponentBase):
    PARAMS = ("servers",)

def export(op_log, out):
    fail("exporter")
    out.write(b"{}")
@click.command()
def command():
    fail("command")
def kernel(x, tl):
    fail("kernel")
    tl.store(x, tl.dot(tl.load(x, shape=(16, 16)), tl.load(x, shape=(16, 16))))
def bench(rt):
    fail("bench")
    x = rt.zeros((256,))
    rt.launch(kernel, x, grid=(1,))
    rt.check(x, lambda: fail("reference"))

kernbench_api = 1
def kernbench_components():
    fail("hook")
    return [ComponentEntry(f"acme.{name.lower()}", f"acme_plugin:{name}", "pe_gemm", "Break.")
            for name in ("Model", "Process", "Rubbish", "Missing")]
def kernbench_exporters(): return [ExporterEntry("acme", "acme_plugin:export", (".acme",), "Break.")]
def kernbench_topologies(): return [TopologyEntry("acme", "acme_presets:x.yaml", "Break.")]
def kernbench_commands():
    return [CommandEntry("acme", "acme_plugin:command", "Break."), CommandEntry("five", "acme_plugin:five", "Break.")]
def kernbench_benches():
    return [BenchEntry(name, f"acme_{name}:bench") for name in ("lazy", "good", "number")]
five = 5
"""
LAZY = "from acme_plugin import bench, fail\nfail('lazy')\n"
PRESETS = "from acme_plugin import fail\nfail('preset')\n"
FILE = "from acme_plugin import bench, fail\nfail('file')\n"
TINY = ("--topology", "tiny")
SMALL = ("run", "vector-add", *TINY, "-q", "-p", "n=64")
ON = (*TINY, "-q", "--set", "components.pe_gemm.params={}", "--set")
MODEL, PROCESS = "components.pe_gemm.impl=acme.model", "components.pe_gemm.impl=acme.process"
#: Where it is raised, the command that comes there, and whose the fault is said to be.
PLACES = {
    "__init__": (("run", "good", *ON, MODEL), "sip0.cube0.pe0.pe_gemm: acme_plugin.Model.__init__ raised "),
    "connect": (("run", "good", *ON, MODEL), "sip0.cube0.pe0.pe_gemm: acme_plugin.Model.connect raised "),
    "overhead": (("run", "good", *ON, MODEL), "sip0.cube0.pe0.pe_gemm: acme_plugin.Model raised "),
    "run": (("run", "good", *ON, PROCESS), "sip0.cube0.pe0.pe_gemm: acme_plugin.Process raised "),
    "exporter": ((*SMALL, "--trace", "t.acme"), "exporter 'acme' of acme 1.5 raised "),
    "preset": (("run", "gemm", "--topology", "acme"), "topology preset 'acme' of acme 1.5 must have its file beside "),
    "command": (("acme",), "command 'acme' of acme 1.5 raised "),
    "kernel": (("run", "good", "--topology", "tiny"), "{folder}/acme_plugin.py:12: "),
    "bench": (("run", "good", "--topology", "tiny"), "bench 'good' raised "),
    "reference": (("run", "good", "--topology", "tiny", "--verify-data"), "the reference of tensor "),
    "lazy": (("run", "lazy", *TINY), "bench 'lazy' of acme 1.5 must be importable from 'acme_lazy:bench', but that "),
    "file": (("run", "file.py", "--topology", "tiny"), "bench file 'file.py' must run to its end, but it raised "),
}
RAISED = ("ValueError", "SystemExit", "GeneratorExit", "CancelledError", "RecursionError", "Own")


@pytest.fixture
def acme(folder: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Plugins]:
    """Give a function that loads the builtin plug-in and one of a distribution acme 1.5, and says where it raises."""
    modules = {"plugin": PLUGIN, "lazy": LAZY, "good": "from acme_plugin import bench\n", "number": "bench = 5\n"}
    for name, text in modules.items():
        folder.write(f"acme_{name}.py", text)
    (folder.path / "acme_presets").mkdir()
    folder.write("acme_presets/__init__.py", PRESETS)
    folder.write("file.py", FILE)
    monkeypatch.syspath_prepend(str(folder.path))

    class Distribution:
        metadata = {"Name": "acme", "Version": "1.5"}  # noqa: RUF012

    points = [
        importlib.metadata.EntryPoint(name, module, "kernbench")._for(dist)  # type: ignore[attr-defined]
        for name, module, dist in (
            ("acme", "acme_plugin", Distribution()),
            *((*text.split(" = "), importlib.metadata.distribution("kernbench")) for text in own_plugins("builtin")),
        )
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)

    def load(place: str, how: str) -> Plugins:
        folder.write("fault", f"{place} {how}")
        for module in [module for module in sys.modules if module.startswith("acme_")]:
            del sys.modules[module]
        return load_plugins()

    yield load
    for module in [module for module in sys.modules if module.startswith("acme_")]:
        del sys.modules[module]


@pytest.mark.parametrize("how", RAISED)
@pytest.mark.parametrize("place", PLACES)
def test_what_is_raised_is_the_fault_of_who_raised_it(
    folder: Any, acme: Callable[[str, str], Plugins], place: str, how: str
) -> None:
    """Exit code 6, its place, its class and its text; nobody says that kernbench itself failed."""
    args, whose = PLACES[place]
    outcome = folder.call(*args, plugins=acme(place, how))
    _, error, told = outcome.err.rpartition("error: ")  # what a model leaves out of the file is a warning before it
    assert told.startswith(whose.format(folder=folder.path)), outcome.err
    assert error
    assert f"{how}: mine" in outcome.err
    assert (outcome.code, outcome.out, outcome.left) == (6, "", frozenset())
    if place in ("__init__", "connect"):
        assert outcome.err.endswith("\nThe model is of acme 1.5.\n")


def test_a_broken_pipe_of_a_command_is_its_own(folder: Any, acme: Callable[[str, str], Plugins]) -> None:
    """That of standard output never comes so far; it is told with the lines of the plug-in alone."""
    outcome = folder.call("acme", plugins=acme("command", "BrokenPipeError"))
    told, *lines = outcome.err.splitlines()
    assert told == "error: command 'acme' of acme 1.5 raised BrokenPipeError: mine; repair or reinstall acme."
    assert [line.rpartition(" in ")[2] for line in lines if line.startswith("  File")] == ["command", "fail"]
    assert outcome.code == 6


@pytest.mark.parametrize("how", RAISED)
@pytest.mark.parametrize("place", ["import", "hook"])
def test_a_plug_in_that_cannot_be_loaded_is_left_out(
    folder: Any, acme: Callable[[str, str], Plugins], place: str, how: str
) -> None:
    """One line; what does not need it goes on."""
    outcome = folder.call(*SMALL, plugins=acme(place, how))
    warned, place, end = re.split(r"( \(acme_plugin\.py:\d+\))", outcome.err)
    assert (warned, end) == (f"warning: plug-in 'acme' (acme 1.5) is left out: {how}: mine", ".\n") and place
    assert (outcome.code, outcome.left) == (0, frozenset())


@pytest.mark.parametrize(("how", "code"), [("KeyboardInterrupt", 130), ("MemoryError", 5)])
@pytest.mark.parametrize("place", PLACES)
def test_ctrl_c_and_want_of_memory_keep_their_exit_codes(
    folder: Any, acme: Callable[[str, str], Plugins], place: str, how: str, code: int
) -> None:
    """Wherever they come."""
    args, _ = PLACES[place]
    outcome = folder.call(*args, plugins=acme(place, how))
    assert (outcome.code, outcome.left) == (code, frozenset())
    assert "kernbench itself failed" not in outcome.err


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("five",), 6, "error: command 'five' of acme 1.5 must be a click command, not 5; repair or reinstall acme.\n"),
        (("run", "number", "--topology", "tiny"), 6, "error: bench 'number' of acme 1.5 must be a function "
         "bench(rt, …), not 5; repair or reinstall acme.\n"),
        (("run", "good", *ON, "components.pe_gemm.impl=acme.rubbish"), 3, "--set components.pe_gemm.impl=acme.rubbish: "
         "components.pe_gemm.impl must be usable, not 'acme.rubbish': component 'acme.rubbish' of acme 1.5 must be a "
         "ComponentBase class whose PARAMS is a tuple of Param, not <class 'acme_plugin.Rubbish'>; repair "
         "'acme_plugin:Rubbish'.\n"),
        (SMALL, 0, ""),
    ],
)  # fmt: skip
def test_what_is_not_what_it_must_be_is_named(
    folder: Any, acme: Callable[[str, str], Plugins], args: tuple[str, ...], code: int, told: str
) -> None:
    """And disturbs nobody who does not use it."""
    outcome = folder.call(*args, plugins=acme("nowhere", "ValueError"))
    assert (outcome.code, outcome.err) == (code, told)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("ExporterEntry('acme', 'a:b', '.acme', 'Break.')", "suffixes of exporter 'acme' must be a tuple of texts, not "
         "'.acme'"),
        ("ExporterEntry('acme', 'a:b', ('.acme',), 'Break.', 'time')", "takes of exporter 'acme' must be 'op_log' or "
         "'timeline', not 'time'"),
        ("ExporterEntry('acme', 5, ('.acme',), 'Break.')", "target of exporter 'acme' must be a text, not 5"),
    ],
)  # fmt: skip
def test_a_hook_that_returns_rubbish_leaves_its_plug_in_out(
    folder: Any, acme: Callable[[str, str], Plugins], entry: str, told: str
) -> None:
    """With what must be where."""
    path = Path(folder.path / "acme_plugin.py")
    path.write_text(path.read_text().replace("[ExporterEntry(", f"[{entry}, ExporterEntry("))
    outcome = folder.call(*SMALL, plugins=acme("nowhere", "ValueError"))
    assert (outcome.code, outcome.err) == (0, f"warning: plug-in 'acme' (acme 1.5) is left out: {told}.\n")
