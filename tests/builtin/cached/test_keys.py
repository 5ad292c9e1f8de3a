"""Keys of runs: one change of anything that a run depends on is another key, and changed back it is the first again."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import random
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_core.cache import Cache, NotCacheable, trees
from kernbench_core.compute.backends import Backend
from kernbench_core.compute.backends.torch_backend import TorchBackend
from kernbench_core.errors import KernbenchWarning
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.process.interrupt import WallTime
from kernbench_core.runs.bench_run import configure, manifest_of
from kernbench_core.runs.cached import RunKey, Surprises, run_key
from kernbench_core.runs.cached.keys import differences, plain_request
from kernbench_core.runs.options import RunCall
from kernbench_core.runs.request import request_of
from tests.conftest import SOURCE_TREE

_GET, _START = os._Environ.__getitem__, threading.Thread.start

BENCH = '''
"""A bench in a file, with a module beside it and one elsewhere."""
import numpy as np
import beside
import elsewhere

SIZE = {size}

def kernel(x, tl):  # {comment}
    tl.store(x, tl.load(x, shape=(4,)) * beside.FACTOR)

def bench(rt, n: int = {default}, x: "np.ndarray | None" = None):
    """Do {sentence}."""
    y = rt.tensor(np.ones(4, np.float32) if x is None else x, name="y")
    rt.launch(kernel, y, grid=({grid},))
'''
PLUGIN = """
import kernbench_core as kb
import plugin_helper
kernbench_api = 1
def kernbench_benches():
    return [kb.BenchEntry("{name}", "keyed:bench")]
def bench(rt):
    return plugin_helper.VALUE + {plugin}
"""
MACHINE = """base: tiny
cube: {{pes: {pes}}}  # {note}
"""
TEXTS = {
    "bench.py": (BENCH, {"size": 1, "comment": "a", "default": 2, "sentence": "this", "grid": 1}),
    "beside.py": ("FACTOR = {factor}\n", {"factor": 2}),
    "lib/elsewhere.py": ("import deeper\nVALUE = {value}\n", {"value": 1}),
    "lib/deeper.py": ("DEEP = {deep}\n", {"deep": 1}),
    "keyed.py": (PLUGIN, {"name": "keyed", "plugin": 1}),
    "plugin_helper.py": ("VALUE = {helped}\n", {"helped": 1}),
    "machine.yaml": (MACHINE, {"pes": 2, "note": "as ever"}),
}
#: Each option of a run that its result depends on, with another value than the default.
OPTIONS: dict[str, Any] = {
    "device": "sip:0", "seed": 7, "data": False, "verify_data": True, "verify_ops": True, "explain": True,
    "backend": "torch", "tcm_map": True, "race_by": "program", "materialize": "on_demand", "oob": "poison",
    "pipeline_loops": True, "outputs": True, "max_events": 10**9, "max_sim_ns": 1e9, "timeout_s": 600.0,
    "set": ("cube.pes=3",),
    "params": {"n": 5}, "topology": "tiny",
}  # fmt: skip
#: Those that it does not depend on.
OTHERS: dict[str, Any] = {
    "cached": True, "links": "all", "strict_races": True, "strict_python": True, "level": "unit",
    "window": "1 ns..2 ns", "trace": "t.json", "out": "saved", "report": "page.html",
}  # fmt: skip


class Other(Backend):
    """Stands for PyTorch, which may not be installed."""

    name = "torch:cpu"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the folder of all files; what is imported from there is forgotten in the end."""
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path, tmp_path / "lib"):
        monkeypatch.syspath_prepend(str(path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(TorchBackend, "on", lambda device: Other())
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python takes a file of the same second for the same one
    monkeypatch.setattr(trees, "BEGAN_NS", 1 << 63)  # as if each key were made by a process of its own
    (tmp_path / "lib").mkdir()
    for name, (text, values) in TEXTS.items():
        (tmp_path / name).write_text(text.format(**values))
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    yield tmp_path
    _forget()


def _forget() -> None:
    """Forget the modules, as a process that begins anew has none."""
    for name in ("elsewhere", "deeper", "plugin_helper", "beside", "keyed"):
        sys.modules.pop(name, None)


def key_of(folder: Path, plugins: Plugins | None = None, **options: Any) -> RunKey:
    """Return the key of a run of the bench; nothing is run."""
    _forget()
    here = Path.cwd()
    loaded = load_plugins([*SOURCE_TREE, str(folder / "keyed.py")], installed=False) if plugins is None else plugins
    call = RunCall(**{"bench": "bench.py", "topology": "machine.yaml", **options})
    config = configure(loaded, call.topology, call.components, call.set)
    request = plain_request(request_of(call, config, loaded, here, WallTime(None)))
    return run_key(request, manifest_of(request, None), here, Cache(folder / "cache"))


CHANGES = [(file, name) for file, (_, values) in TEXTS.items() for name in values]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(change=st.sampled_from(CHANGES), to=st.integers(3, 9))
def test_one_change_in_a_file_is_another_key(folder: Path, change: tuple[str, str], to: int) -> None:
    """Of the bench, its modules here and elsewhere, theirs, a plug-in, its module, the machine; back it is the first.

    A line that the machine's file merely says otherwise counts where a place in it does.
    """
    before = key_of(folder)
    file, name = change
    text, values = TEXTS[file]
    (folder / file).write_text(text.format(**{**values, name: f"{to}" if name != "name" else f"keyed-{to}"}))
    after = key_of(folder)
    (folder / file).write_text(text.format(**values))
    assert (after.sha256 != before.sha256) == (name != "note")
    told = {"bench.py": "bench", "machine.yaml": "configuration", "beside.py": "bench"}
    for part in differences(after.parts, before.parts):
        assert part in ("bench", "topology", "configuration", "parameters", "plugins") or part.startswith("code of ")
    if file in told and name != "note":
        assert told[file] in differences(after.parts, before.parts)
    assert key_of(folder) == before


def test_each_option_that_changes_the_result_is_in_the_key(folder: Path, plugins: Plugins) -> None:
    """And none of those that do not; together they are all options of a run."""
    before = key_of(folder, plugins)
    keys = {name: key_of(folder, plugins, **{name: value}).sha256 for name, value in OPTIONS.items()}
    assert len({before.sha256, *keys.values()}) == len(keys) + 1
    for name, value in OTHERS.items():
        more = {"trace": "t.json"} if name in ("level", "window") else {}
        assert key_of(folder, plugins, **{name: value, **more}).sha256 == before.sha256, name
    import attrs

    fields = {field.name for field in attrs.fields(RunCall)}
    rest = {"bench", "components", "grid", "bundle", "on_progress", "watcher", "plugins", "timeline"}
    assert fields == {*OPTIONS, *OTHERS, *rest}


@pytest.mark.parametrize("byte", [0, 15])
def test_one_byte_of_an_array_is_another_key(folder: Path, plugins: Plugins, byte: int) -> None:
    """In a file and in memory; and so is another dtype of the same bytes, which `.npy` files do not tell apart."""
    before = key_of(folder, plugins, params={"x": "x.npy"})
    data = bytearray((folder / "x.npy").read_bytes())
    data[-1 - byte] ^= 1
    (folder / "x.npy").write_bytes(data)
    assert differences(key_of(folder, plugins, params={"x": "x.npy"}).parts, before.parts) == ("parameters",)
    made = {
        key_of(folder, plugins, params={"x": np.ones(4, dtype)}).sha256
        for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.int8)
    }
    ones = np.full(4, 56, np.uint8)
    made |= {key_of(folder, plugins, params={"x": ones.view(ml_dtypes.float8_e5m2)}).sha256}
    assert len(made) == 4


def test_a_key_needs_no_machine_of_that_name(folder: Path, plugins: Plugins) -> None:
    """A folder, a name of the machine and a way to say a setting are told in results, and so are others."""
    found = [key_of(folder, plugins)]
    (folder / "other.yaml").write_text((folder / "machine.yaml").read_text())
    found.append(key_of(folder, plugins, topology="other.yaml"))
    found.append(key_of(folder, plugins, set=("cube.pes=3",)))
    found.append(key_of(folder, plugins, components="machine.yaml", topology="tiny"))
    assert len({key.sha256 for key in found}) == 4
    assert differences(found[1].parts, found[0].parts) == ("configuration", "topology")


def test_a_module_that_was_loaded_before_it_was_written_has_no_key(
    folder: Path, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process has what it said before; one that is not loaded yet may be written."""
    key_of(folder, plugins)
    monkeypatch.setattr(trees, "BEGAN_NS", time.time_ns() - 1_000_000)
    time.sleep(0.02)
    (folder / "lib" / "elsewhere.py").write_text("VALUE = 2\n")
    call = RunCall("bench.py", "machine.yaml")
    request = request_of(call, configure(plugins, "tiny"), plugins, Path.cwd(), WallTime(None))
    with pytest.raises(NotCacheable) as caught:
        run_key(request, manifest_of(request, None), Path.cwd(), Cache(folder / "cache"))
    assert str(caught.value) == (
        "module 'elsewhere' must be what its file says, and that was written after this process had begun; start a new "
        "one."
    )


def run(bench: Any, plugins: Plugins) -> kb.RunResult:
    return kb.run(bench, "tiny", cached=True, plugins=plugins)


def test_random_numbers_of_all_are_noticed(folder: Path, plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing seeds them the run is not kept; where the bench does, it is."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(folder / "cache"))

    def unseeded(rt: kb.Runtime) -> None:
        rt.tensor(np.random.rand(4).astype(np.float32))

    def other(rt: kb.Runtime) -> None:
        rt.tensor(np.full(4, random.random(), np.float32))

    def seeded(rt: kb.Runtime) -> None:
        np.random.seed(3)
        rt.tensor(np.random.rand(4).astype(np.float32))

    for bench in (unseeded, other):
        for _ in range(2):
            with pytest.warns(KernbenchWarning) as told:
                assert not run(bench, plugins).from_cache
            sentence = "the program drew random numbers that it did not seed; the run is not kept."
            assert [str(each.message) for each in told] == [sentence]
    assert [run(seeded, plugins).from_cache for _ in range(2)] == [False, True]


def test_a_module_that_is_imported_by_a_name_that_is_made_is_looked_at(
    folder: Path, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNBENCH_CACHE", str(folder / "cache"))
    (folder / "dynamic.py").write_text(
        textwrap.dedent(
            """
            import importlib
            import numpy as np
            again = importlib.import_module("else" + "where")
            def bench(rt):
                module = importlib.import_module("else" + "where") or again
                rt.tensor(np.full(4, module.VALUE, np.float32))
                rt.report(value=module.VALUE)
            """
        )
    )
    seen = []
    for value in (1, 1, 5, 5, 1):
        (folder / "lib" / "elsewhere.py").write_text(f"VALUE = {value}\n")
        _forget()
        result = run("dynamic.py", plugins)
        assert result.rows[0]["value"] == value
        seen.append(result.from_cache)
    assert seen == [False, True, False, True, True]


def test_what_reaches_all_by_name_has_no_key(folder: Path, plugins: Plugins) -> None:
    def bench(rt: kb.Runtime) -> None:
        rt.tensor(np.full(4, eval("1 + 1"), np.float32))

    call = RunCall(bench, "tiny")
    request = request_of(call, configure(plugins, "tiny"), plugins, Path.cwd(), WallTime(None))
    with pytest.raises(NotCacheable) as caught:
        run_key(request, manifest_of(request, None), Path.cwd(), Cache(folder / "cache"))
    assert str(caught.value) == (
        "the bench names eval, and so may name anything else, which no key covers; the run is not kept."
    )


OPENING = '''
import json, os, pathlib
import numpy as np
with open("scale.json") as file:
    SCALE = json.load(file)
def bench(rt):
    """Read files and the environment, each in a way of its own."""
    first = np.load("x.npy").sum()
    second = float(pathlib.Path("text.txt").read_text())
    third = float(os.environ.get("KEYED", "0")) + float("KEYED_2" in os.environ)
    with open("made.txt", "w") as file:
        file.write("made")
    with open("made.txt") as file:
        fourth = len(file.read())
    missing = pathlib.Path("missing.txt")
    try:
        fifth = len(missing.read_text())
    except FileNotFoundError:
        fifth = -1
    rt.tensor(np.full(4, first + second, np.float32))
    rt.report(seen=float(SCALE + first + second + third + fourth + fifth))
'''


def test_what_a_bench_opens_and_asks_the_environment_is_looked_at(
    folder: Path, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is another thing the run is made anew, and is right; what the run has written is its own."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(folder / "cache"))
    monkeypatch.delenv("KEYED", raising=False)
    monkeypatch.delenv("KEYED_2", raising=False)
    (folder / "opening.py").write_text(OPENING)
    (folder / "scale.json").write_text("1")
    (folder / "text.txt").write_text("2")

    def changed(what: Any) -> tuple[float, bool, bool]:
        what()
        first, again = run("opening.py", plugins), run("opening.py", plugins)
        assert first == again == kb.run("opening.py", "tiny", plugins=plugins)
        return float(first.rows[0]["seen"]), first.from_cache, again.from_cache  # type: ignore[arg-type]

    found = [
        changed(lambda: None),
        changed(lambda: (folder / "scale.json").write_text("3")),
        changed(lambda: np.save("x.npy", np.full(4, 2, np.float32))),
        changed(lambda: (folder / "text.txt").write_text("5")),
        changed(lambda: monkeypatch.setenv("KEYED", "7")),
        changed(lambda: monkeypatch.setenv("KEYED_2", "")),
        changed(lambda: (folder / "missing.txt").write_text("four")),
        changed(lambda: monkeypatch.setenv("UNASKED", "1")),
        changed(lambda: (folder / "unread.txt").write_text("1")),
    ]
    assert [seen for seen, _, _ in found] == [10.0, 12.0, 16.0, 19.0, 26.0, 27.0, 32.0, 32.0, 32.0]
    assert [first for _, first, _ in found] == [False] * 7 + [True] * 2
    assert all(again for _, _, again in found)
    assert os._Environ.__getitem__ is _GET and threading.Thread.start is _START


def test_a_file_that_a_bench_reads_and_then_changes_is_read_anew(
    folder: Path, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A counter counts on: what it was when it was read is what counts."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(folder / "cache"))
    (folder / "count.txt").write_text("1")

    def counting(rt: kb.Runtime) -> None:
        count = int(Path("count.txt").read_text())
        Path("count.txt").write_text(str(count + 1))
        rt.tensor(np.full(4, count, np.float32))
        rt.report(count=count)

    assert [run(counting, plugins).rows[0]["count"] for _ in range(3)] == [1, 2, 3]
    (folder / "count.txt").write_text("2")
    assert run(counting, plugins).from_cache and (folder / "count.txt").read_text() == "2"


def test_threads_and_runs_within_runs_do_not_mix_what_they_read(
    folder: Path, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread is watched by itself, an inner run by both; in the end Python's own environment is back."""
    monkeypatch.setenv("KEYED", "1")
    first, outer, inner = Surprises(), Surprises(), Surprises()
    both, over = threading.Barrier(2, timeout=20), threading.Event()

    def other() -> None:
        with first.watched():
            both.wait()
            (folder / "x.npy").read_bytes()
            over.wait(20)

    thread = threading.Thread(target=other)
    thread.start()
    with outer.watched():
        both.wait()
        with inner.watched():
            os.environ.get("KEYED")
        (folder / "machine.yaml").read_text()
        (folder / "made.txt").write_text("made")
        (folder / "made.txt").read_text()
    assert os._Environ.__getitem__ is not _GET  # as the other one is still watched
    (folder / "keyed.py").read_text()
    over.set()
    thread.join()
    assert os._Environ.__getitem__ is _GET and threading.Thread.start is _START
    one = hashlib.sha256(b"1").hexdigest()
    assert inner.reads == {"$KEYED": one}
    machine = hashlib.sha256((folder / "machine.yaml").read_bytes()).hexdigest()
    assert outer.reads == {"$KEYED": one, str(folder / "machine.yaml"): machine}
    assert list(first.reads) == [str(folder / "x.npy")]


WAYS: dict[str, Any] = {
    "numpy, which keeps an open of its own": lambda: int(np.loadtxt("few.txt")),
    "the system's open": lambda: int(os.read(os.open("few.txt", os.O_RDONLY), 9)),
    "for reading and writing": lambda: _read(Path("few.txt").open("r+")),  # noqa: SIM115
    "appended to, and read then": lambda: _appended(),
    "the names in a folder": lambda: 2 * sum(each.startswith("many") for each in os.listdir()),  # noqa: PTH208
    "names by a pattern": lambda: 2 * len(list(Path.cwd().glob("many*"))),
    "the environment in bytes": lambda: int(os.environb[b"FEW"]),
}


def _read(file: IO[str]) -> int:
    with file:
        return int(file.read())


def _appended() -> int:
    with Path("few.txt").open("a") as file:
        file.write(" ")
    return int(Path("few.txt").read_text())


@pytest.mark.parametrize("way", WAYS)
def test_whichever_way_a_program_reads_it_is_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """What is taken note of is what there was: the same where that is the same, and another one where it changed."""

    def told(count: int) -> tuple[int, dict[str, str]]:
        (folder / "few.txt").write_text(str(count))
        monkeypatch.setenv("FEW", str(count))
        for at in range(4):
            (folder / f"many{at}").unlink(missing_ok=True)
        for at in range(count // 2):
            (folder / f"many{at}").touch()
        surprises = Surprises()
        with surprises.watched():
            found = WAYS[way]()
        surprises.check(())
        return found, surprises.reads

    (two, of_two), (four, of_four), (again, of_two_again) = told(2), told(4), told(2)
    assert (two, four, again) == (2, 4, 2)
    assert of_two == of_two_again and of_two.keys() == of_four.keys() and len(of_two) == 1
    assert of_two != of_four


@pytest.mark.parametrize(
    ("learn", "did"),
    [
        (lambda: subprocess.run(["true"], check=True), "ran another program"),
        (lambda: os.system("true"), "ran another program"),
        (lambda: input(), "asked for input"),
        (lambda: threading.Thread(target=Path.cwd).start(), "went on in another thread"),
    ],
    ids=["subprocess", "system", "input", "thread"],
)
def test_what_another_program_or_somebody_tells_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, learn: Any, did: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\n"))
    surprises = Surprises()
    with surprises.watched():
        learn()
    with pytest.raises(NotCacheable) as caught:
        surprises.check(())
    assert str(caught.value) == f"the program {did}; the run is not kept."


def test_what_is_imported_or_made_meanwhile_is_not_among_what_was_read(folder: Path) -> None:
    """Modules are looked at by themselves; a file that the program writes itself says nothing new."""
    (folder / "lately.py").write_text("TOLD = 1")
    surprises = Surprises()
    with surprises.watched():
        importlib.import_module("lately")
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write("1")
            file.flush()
            Path(file.name).read_text()
    assert surprises.reads.keys() <= {"$TMPDIR", "$TEMP", "$TMP"}
