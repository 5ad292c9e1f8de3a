"""Runs from the cache: equal to those that are made, for every kind of run; made anew for what is said to count."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_core.cache import dependencies
from kernbench_core.cache.store import Cache
from kernbench_core.errors import KernbenchWarning, UsageError
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs.bench_run import RaceError
from kernbench_core.runs.options import RunCall
from kernbench_core.runs.parts import parts_of
from tests.conftest import SOURCE_TREE, forget_executed

SIZE = {"M": 32, "N": 32, "K": 32}
BENCHES = Path(__file__).with_name("benches.py")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the folder of the cache; each run is as if it were made by a process of its own."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python takes a file of the same second for the same one
    forget_executed()
    before = set(sys.modules)
    yield tmp_path / "cache"
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def told(result: kb.RunResult) -> str:
    """Return what --json prints, but for what differs from run to run."""
    return json.dumps({**result.to_json(), "wall_s": 0, "from_cache": None})


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("gemm", {"params": SIZE}),
    "explained": ("gemm", {"params": SIZE, "explain": True, "tcm_map": True, "links": "all"}),
    "verified": ("gemm", {"params": SIZE, "verify_data": True, "verify_ops": True}),
    "wrong": (f"{BENCHES}:wrong", {"verify_data": True, "set": ["cube.pes=2"]}),
    "banks": ("gemm", {"params": SIZE, "set": ["components.hbm_ctrl.impl=builtin.hbm_ctrl_bank"]}),
    "outputs": ("gemm", {"params": SIZE, "outputs": True}),
    "shapes": ("vector-add", {"params": {"n": 64}, "data": False}),
    "hazards": (f"{BENCHES}:racing", {"device": "sip:0"}),
    "branches": (f"{BENCHES}:branching", {"materialize": "on_demand", "verify_data": True}),
    "poisoned": (f"{BENCHES}:reaching", {"oob": "poison", "explain": True, "race_by": "program", "seed": 3}),
    "shaken": ("gemm", {"params": SIZE, "shake": 3, "shake_seed": 5}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_from_the_cache_is_the_one_that_is_made(kind: str, plugins: Plugins) -> None:
    """By value, as JSON, in its tables and outputs; a fresh one is not from the cache."""
    bench, options = KINDS[kind]
    made = kb.run(bench, "tiny", plugins=plugins, **options)
    first = kb.run(bench, "tiny", plugins=plugins, cached=True, **options)
    again = kb.run(bench, "tiny", plugins=plugins, cached=True, **options)
    assert [each.from_cache for each in (made, first, again)] == [False, False, True]
    assert made.cache_key is None and first.cache_key == again.cache_key is not None
    assert made == first == again and hash(made) == hash(again)
    assert told(made) == told(first) == told(again)
    assert made.ops == again.ops and made.links == again.links and made.masked_share == again.masked_share
    assert [launch.links for launch in made.launches] == [launch.links for launch in again.launches]
    assert repr(made) == repr(again) and made.verified == again.verified == {"wrong": False}.get(kind, made.verified)
    assert attrs.evolve(made, wall_s=1.0)._repr_html_() == attrs.evolve(again, wall_s=1.0)._repr_html_()
    assert str(made.launches) == str(again.launches) and str(made.hazards) == str(again.hazards)
    if options.get("outputs"):
        assert {name: each.tobytes() for name, each in again.outputs.items()} == {
            name: each.tobytes() for name, each in made.outputs.items()
        }
        assert not again.outputs["c"].flags.writeable
    with pytest.raises(kb.KernbenchError, match="as a result that was pickled or is from the cache leaves it behind"):
        _ = again.store


BENCH = """
import importlib, os, pathlib, runpy
import numpy as np
import kernbench
import kernbench_core as kb
import beside
import elsewhere
OWN = 1

@kb.depends("data/*.csv", "$SCALE")
def bench(rt, n: int = 1, x: "np.ndarray | None" = None):
    texts = [path.read_text() for path in sorted(pathlib.Path("data").glob("*.csv"))]
    numbers = rt.input_file("numbers.txt")
    found = pathlib.Path(numbers).read_text() if os.path.exists(numbers) else "none"
    by_name, zipped = importlib.import_module("sub.by_name"), importlib.import_module("zipped")
    x = [] if x is None else x.tolist()
    rt.report(own=OWN, beside=beside.VALUE, elsewhere=elsewhere.VALUE, by_name=by_name.VALUE, zipped=zipped.VALUE,
              data=str(texts), scale=os.environ.get("SCALE", "-"), read=found, n=n, x=str(x),
              plugin=importlib.import_module("keyed").VALUE, option=str(rt.rng.random()))
    rt.zeros((n,), "f32")
"""
PLUGIN = "kernbench_api = 1\nVALUE = {}\ndef kernbench_benches():\n    return []\n"


def zip_with(path: Path, text: str) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("zipped.py", text)


#: What may be changed: how, in a folder, to another number.
CHANGES: dict[str, Callable[[Path, int], object]] = {
    "bench": lambda at, to: (at / "bench.py").write_text(BENCH.replace("OWN = 1", f"OWN = {to}")),
    "beside": lambda at, to: (at / "beside.py").write_text(f"VALUE = {to}"),
    "elsewhere": lambda at, to: (at / "lib/elsewhere.py").write_text(f"VALUE = {to}"),
    "imported while it runs": lambda at, to: (at / "sub/by_name.py").write_text(f"VALUE = {to}"),
    "in a zip file": lambda at, to: zip_with(at / "lib.zip", f"VALUE = {to}"),
    "data": lambda at, to: (at / "data" / f"{to % 2}.csv").write_text(f"{to}"),
    "read": lambda at, to: (at / "numbers.txt").write_text(f"{to}"),
    "array": lambda at, to: np.save(at / "x.npy", np.full(2, to, np.float32)),
    "plug-in": lambda at, to: (at / "keyed.py").write_text(PLUGIN.format(to)),
}


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from([*CHANGES, "variable", "option", "argument"]), st.integers(1, 3)),
        min_size=4,
        max_size=8,
    )
)
def test_whatever_is_changed_the_answer_is_the_fresh_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, int]]
) -> None:
    """Each step changes an input, maybe back; beside each run from the cache stands one that asks no cache."""
    for name in ("lib", "sub", "data"):
        (tmp_path / name).mkdir(exist_ok=True)
    for name in ("lib", "lib.zip"):
        monkeypatch.syspath_prepend(str(tmp_path / name))
    monkeypatch.setenv("SCALE", "1")
    asked: dict[str, Any] = {"seed": 1, "params": {"n": 1, "x": "x.npy"}}
    for change in CHANGES.values():
        change(tmp_path, 1)

    def run(**more: Any) -> kb.RunResult:
        for name in ("elsewhere", "sub.by_name", "sub", "zipped", "keyed", "beside"):
            sys.modules.pop(name, None)
        sys.path_importer_cache.clear()
        return kb.run("bench.py", "tiny", plugins=plugins, **asked, **more)

    def load() -> Plugins:
        return load_plugins([*SOURCE_TREE, str(tmp_path / "keyed.py")], installed=False)

    plugins = load()
    run(cached=True)
    assert run(cached=True).from_cache
    for name, to in steps:
        if name == "variable":
            monkeypatch.setenv("SCALE", f"{to}")
        elif name == "option":
            asked["seed"] = to
        elif name == "argument":
            asked["params"] = {"n": to, "x": "x.npy"}
        else:
            CHANGES[name](tmp_path, to)
        plugins = load() if name == "plug-in" else plugins
        fresh, kept = run(), run(cached=True)
        assert kept == fresh and told(kept) == told(fresh), name
        assert run(cached=True).from_cache


#: Each option of a run that its result depends on, with another value than the default.
OPTIONS: dict[str, Any] = {
    "device": "sip:0", "seed": 7, "data": False, "verify_data": True, "verify_ops": True, "explain": True,
    "tcm_map": True, "race_by": "program", "materialize": "on_demand", "oob": "poison", "pipeline_loops": False,
    "placement": "blocks",
    "outputs": True, "max_events": 10**9, "max_sim_ns": 1e9, "timeout_s": 600.0, "set": ("cube.pes=2",),
    "params": {"n": 128}, "topology": "default", "depends": ("$SCALE",), "shake": 3, "shake_seed": 5,
}  # fmt: skip
#: What an option needs beside it to change anything.
BESIDE: dict[str, dict[str, Any]] = {"shake_seed": {"shake": 3}}
#: Those that it does not depend on, or that make a run of its own.
OTHERS = {
    "links", "strict_races", "strict_python", "level", "window", "trace", "out", "report", "cached",
    "on_progress", "watcher", "plugins", "timeline", "bench", "grid", "components", "backend",
}  # fmt: skip


def test_each_option_that_changes_the_result_makes_another_run(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"bench": "vector-add", "topology": "tiny", "params": {"n": 64}, "cached": True}
    keys = {
        kb.run(**{**asked, **more}, plugins=plugins).cache_key
        for more in [{}, *({name: value, **BESIDE.get(name, {})} for name, value in OPTIONS.items())]
    }
    assert len(keys) == len(OPTIONS) + 1
    records = (RunCall, *(part.OPTIONS for part in parts_of(plugins)))
    assert {field.name for record in records for field in attrs.fields(record)} == {*OPTIONS, *OTHERS}
    Path("b.py").write_text("import numpy as np\ndef bench(rt, x: np.ndarray):\n    rt.zeros((4,), 'f32')\n")
    made = {
        kb.run("b.py", "tiny", {"x": np.zeros(4, dtype)}, cached=True, plugins=plugins).cache_key
        for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz)
    }
    assert len(made) == 2  # of the same .npy file: numpy spells both V1
    before = dependencies.environment_digest()
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert dependencies.environment_digest() != before


def test_a_bench_that_is_no_files_is_run_each_time(plugins: Plugins) -> None:
    def bench(rt: kb.Runtime) -> None:
        """Say nothing."""
        rt.tensor(np.zeros(4, np.float32))

    for _ in range(2):
        with pytest.warns(KernbenchWarning) as warned:
            result = kb.run(bench, "tiny", cached=True, plugins=plugins)
        sentence = (
            "bench 'bench' must be of a file to be kept, as a function depends on what is in memory; write it to a "
            "file, and give 'FILE.py:FUNCTION'."
        )
        assert [str(each.message) for each in warned] == [sentence]
        assert (result.from_cache, result.cache_key, result.cache_note) == (False, None, sentence)
    with pytest.raises(UsageError, match="must submit something to the device") as caught:
        kb.run(lambda rt: None, "tiny", cached=True, plugins=plugins)
    assert caught.value.__context__ is None  # it is no cause of it that nothing is kept


@pytest.mark.parametrize("of_core", [False, True])
def test_what_was_written_after_the_process_began_is_not_kept(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_core: bool
) -> None:
    """A module that may be loaded as it was before; the code of kernbench itself."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(dependencies, "_LAST", [])
    (tmp_path / "lately.py").write_text("")
    (tmp_path / "b.py").write_text("def bench(rt):\n    __import__('lately')\n    rt.zeros((4,), 'f32')\n")
    new = str(Path(kb.__file__).parent / "package.py" if of_core else tmp_path / "lately.py")
    monkeypatch.setattr(dependencies, "_is_new", lambda path: path == new)
    with pytest.warns(KernbenchWarning) as warned:
        assert kb.run("b.py", "tiny", cached=True, plugins=plugins).cache_key is None
    assert [str(each.message) for each in warned] == [
        f"the code of 'kernbench_core' must be what its files say, and {new!r} was written after this process had "
        "begun; start a new one."
        if of_core
        else f"{new!r} must not be written while this process goes on, which may have loaded it before; the answer is "
        "not kept. Start a new process."
    ]


def test_a_folder_is_what_its_files_hold_whatever_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "of [all]"
    folder.mkdir()
    digests = [dependencies.digest_of(str(folder))]
    for name, text in (("a", "1"), ("a", "2"), (".b", "")):
        (folder / name).write_text(text)
        digests.append(dependencies.digest_of(str(folder)))
    assert len(set(digests)) == 4 and digests[0] == ""


def test_new_is_what_was_written_or_put_in_place_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it looks old, as what `cp -p` writes; what is gone is not."""
    file = tmp_path / "file"
    file.write_text("")
    os.utime(file, (1, 1))
    for since, is_new in ((-1, True), (1, False)):
        monkeypatch.setattr(dependencies, "IMPORTED_NS", file.stat().st_ctime_ns + since)
        assert dependencies._is_new(str(file)) == is_new
    assert not dependencies._is_new(f"{file}.gone")


def test_a_hit_says_when_it_was_made_and_of_what_it_depends(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = ModuleType("__mp_main__")  # as processes that were started have it: the command, and no module of the bench
    main.__file__ = str(tmp_path / "b.py")
    monkeypatch.setitem(sys.modules, "__mp_main__", main)
    (tmp_path / "b.py").write_text(
        "import kernbench_core as kb\n@kb.depends('t.csv', '$SCALE')\ndef bench(rt):\n    rt.zeros((4,), 'f32')\n"
    )
    found = [kb.run("b.py", "tiny", cached=True, plugins=plugins, depends=["more.txt"]) for _ in range(2)][1]
    about, _ = Cache.of_user().get(found.cache_key or "") or ({}, None)
    importlib.import_module("kernbench")  # which is ours, and no module of the bench
    depends = list(about["depends"])  # modules of tests that ran before are among them
    assert not [place for place in depends if place.startswith(f"{Path(kb.__file__).parents[1]}/kernbench_")]
    names = [place for place in depends if place.startswith((str(tmp_path), "$"))]
    assert names == [str(tmp_path / "t.csv"), "$SCALE", str(tmp_path / "more.txt")]
    assert found.cache_note.startswith(f"from the cache ({(found.cache_key or '')[:12]}), made 20")
    assert found.cache_note.endswith("; what the program reads besides is not covered.")
    told = "it depends on machine, bench, arguments, options, the code of kernbench and of plug-ins, "
    assert told in found.cache_note


ALGORITHM = (Path(kb.__file__).parents[1] / "kernbench_ccl/algorithms/ring_all_reduce.py").read_text()


def test_an_algorithm_of_a_file_counts_with_its_own_modules(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is executed by kernbench, and its modules are not left in sys.modules; one of the user's folder is, with ~."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "ours.py").write_text(f"import amount\n{ALGORITHM}")
    (tmp_path / "amount.py").write_text("N = 1")
    options: dict[str, Any] = {"cached": True, "plugins": plugins, "depends": ["~/mine.txt"]}
    params = {"size": "1 KiB", "algo": "./ours.py"}
    for path, text in (("amount.py", "N = 2"), ("ours.py", f"import amount\n#\n{ALGORITHM}"), ("mine.txt", "")):
        runs = [kb.run("collective", "default", params, **options) for _ in range(2)]
        assert runs[1].from_cache
        (tmp_path / path).write_text(text)
        assert not kb.run("collective", "default", params, **options).from_cache
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/ours.py").write_text(ALGORITHM)
    monkeypatch.chdir("sub")  # where the same name is another file
    assert not kb.run("collective", "default", params, **options).from_cache


def test_no_room_is_no_entry(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_CACHE_BYTES", "10")
    with pytest.warns(KernbenchWarning, match=r"^nothing is kept in the cache: .* is more than 10 B, all in '"):
        assert kb.run("vector-add", "tiny", {"n": 64}, cached=True, plugins=plugins).cache_note == ""


def test_races_are_errors_from_the_cache_too(plugins: Plugins) -> None:
    """A run that fails is not kept; one that did not is no excuse."""
    racing: dict[str, Any] = {"bench": f"{BENCHES}:racing", "topology": "tiny", "cached": True, "plugins": plugins}
    for from_cache in (False, False, True):
        if from_cache:
            kb.run(**racing)
        with pytest.raises(RaceError) as caught:
            kb.run(strict_races=True, **racing)
        assert caught.value.result.from_cache == from_cache and len(caught.value.result.hazards) == 1


def test_what_a_run_showed_is_shown_again(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    for from_cache in (False, True):
        with pytest.warns(KernbenchWarning, match=r"^mind the gap\.$") as warned:
            result = kb.run(f"{BENCHES}:noisy", "tiny", cached=True, plugins=plugins)
        assert (result.from_cache, len(warned)) == (from_cache, 1)
        assert capsys.readouterr().out == "hello there\n"


def test_threads_are_recorded_apart(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """Each run's print is its own, and nobody is warned."""
    (Path("say.py")).write_text("def bench(rt, n: int = 1):\n    print('n is', n)\n    rt.zeros((n,), 'f32')\n")
    calls = [lambda n=n: kb.run("say.py", "tiny", {"n": n}, cached=True, plugins=plugins) for n in (1, 2, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernbenchWarning)
        threads = [threading.Thread(target=call) for call in calls]
        [each.start() for each in threads]
        [each.join() for each in threads]
        capsys.readouterr()
        for n, call in enumerate(calls, 1):
            assert call().from_cache and capsys.readouterr().out == f"n is {n}\n"


def test_a_run_that_writes_files_or_is_watched_is_made(plugins: Plugins) -> None:
    """Whatever is kept, and nothing is kept of it."""
    options: dict[str, Any] = {"params": SIZE, "cached": True, "plugins": plugins}
    writes = ({"out": "saved"}, {"report": "page.html"}, {"trace": "t.json"}, {"timeline": True})
    assert [kb.run("gemm", "tiny", **more, **options).cache_key for more in writes] == [None] * 4
    assert [kb.run("gemm", "tiny", **options).from_cache for _ in range(2)] == [False, True]
    assert kb.run("gemm", "tiny", report="again.html", **options).from_cache is False
    assert all(Path(name).exists() for name in ("saved", "page.html", "t.json", "again.html"))


def test_an_entry_that_is_no_result_is_a_miss(plugins: Plugins, folder: Path) -> None:
    """Also one that names a class of others."""
    first = kb.run("vector-add", "tiny", {"n": 64}, cached=True, plugins=plugins)
    assert first.cache_key is not None
    about, said = Cache(folder).get(first.cache_key) or ({}, b"")
    timing = b"kernbench_core.host.timing:TimingResult"
    assert timing in said
    others = (said.replace(timing, name) for name in (b"subprocess:Popen", b"kernbench_core.package:time"))
    for other in (b"", b"{}", b"[1]", b"no JSON", *others):
        Cache(folder).put(first.cache_key, about, other)
        again = kb.run("vector-add", "tiny", {"n": 64}, cached=True, plugins=plugins)
        assert not again.from_cache and again == first
        assert kb.run("vector-add", "tiny", {"n": 64}, cached=True, plugins=plugins).from_cache
