"""Runs from the cache: equal to those that are made, for every kind of run; made anew for what is said to count."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import ml_dtypes
import numpy as np
import pytest

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
PLAIN = "def bench(rt):\n    rt.zeros((4,), 'f32')\n"
BENCHES = Path(__file__).with_name("benches.py")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the folder of the cache; each run is as if it were made by a process of its own."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python takes a file of the same second for the same one
    forget_executed()
    yield tmp_path / "cache"
    for name, module in list(sys.modules.items()):
        if str(tmp_path) in str(getattr(module, "__file__", "")):
            del sys.modules[name]


def told(result: kb.RunResult) -> str:
    """Return what --json prints, but for what differs from run to run."""
    return json.dumps({**result.to_json(), "wall_s": 0, "from_cache": None})


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "explained": ("gemm", {"params": SIZE, "explain": True, "tcm_map": True, "links": "all"}),
    "verified": ("gemm", {"params": SIZE, "verify_data": True, "verify_ops": True}),
    "wrong": (f"{BENCHES}:wrong", {"verify_data": True, "set": ["cube.pes=2"]}),
    "banks": ("gemm", {"params": SIZE, "set": ["components.hbm_ctrl.impl=builtin.hbm_ctrl_bank"]}),
    "outputs": ("gemm", {"params": SIZE, "outputs": True}),
    "shapes": ("vector-add", {"params": {"n": 64}, "data": False}),
    "hazards": (f"{BENCHES}:racing", {"device": "sip:0"}),
    "branches": (f"{BENCHES}:branching", {"materialize": "on_demand", "verify_data": True}),
    "poisoned": (f"{BENCHES}:racing", {"params": {"reach": 9}, "oob": "poison", "explain": True, "race_by": "program"}),
    "shaken": ("gemm", {"params": SIZE, "shake": 3, "shake_seed": 5}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_from_the_cache_is_the_one_that_is_made(kind: str, plugins: Plugins) -> None:
    """By value, as JSON, in its tables and outputs; a fresh one is not from the cache."""
    bench, options = KINDS[kind]
    run = partial(kb.run, bench, "tiny", plugins=plugins, **options)
    made, first, again = run(), run(cached=True), run(cached=True)
    assert [each.from_cache for each in (made, first, again)] == [False, False, True]
    assert made.cache_key is None and first.cache_key == again.cache_key is not None
    assert made == first == again and made.verified == {"wrong": False}.get(kind, made.verified)
    looks: tuple[Callable[[kb.RunResult], Any], ...] = (
        told, hash, repr, attrgetter("ops", "links", "masked_share", "verified"),
        lambda each: str([each.launches, each.hazards, [launch.links for launch in each.launches]]),
        lambda each: attrs.evolve(each, wall_s=1.0)._repr_html_(),
        lambda each: [(name, each.outputs[name].tobytes()) for name in each.outputs] if options.get("outputs") else [],
    )  # fmt: skip
    for look in looks:
        assert look(made) == look(first) == look(again)
    if made.hazards:
        with pytest.raises(RaceError) as caught:
            run(cached=True, strict_races=True)
        assert caught.value.result.from_cache
    with pytest.raises(kb.KernbenchError, match="as pickled and cached results do not include it"):
        _ = again.store


BENCH = """
import importlib, os, pathlib
import numpy as np
import kernbench as kb
import beside, elsewhere
OWN = 1

@kb.depends("da[t]a", "$SCALE")
def bench(rt, n: int = 1, x: "np.ndarray | None" = None, y: "np.ndarray | None" = None):
    later = [importlib.import_module(name).VALUE for name in ("sub.by_name", "zipped", "keyed")]
    texts = [path.read_text() for path in sorted(pathlib.Path("da[t]a").iterdir())]
    numbers = pathlib.Path(rt.input_file("numbers.txt")).read_text()
    found = [OWN, beside.VALUE, elsewhere.VALUE, later, texts, numbers, os.environ["SCALE"], x.tolist()]
    rt.report(found=str(found), drawn=rt.rng.random())
    rt.zeros((n,), "f32")
"""
FLOATS = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz  # in a .npy file numpy spells both V1
PLUGIN = "kernbench_api = 1\nVALUE = {}\ndef kernbench_benches():\n    return []\n"


def test_whatever_is_changed_the_answer_is_the_fresh_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One input after the other; beside each run from the cache stands one that asks no cache."""
    at, asked = tmp_path, dict[str, Any](seed=1, params={"n": 1, "x": "x.npy"})
    changes: dict[str, Callable[[int], object]] = {
        "bench": lambda to: (at / "bench.py").write_text(BENCH.replace("OWN = 1", f"OWN = {to}")),
        "beside": lambda to: (at / "beside.py").write_text(f"VALUE = {to}"),
        "elsewhere": lambda to: (at / "lib/elsewhere.py").write_text(f"VALUE = {to}"),
        "imported while it runs": lambda to: (at / "sub/by_name.py").write_text(f"VALUE = {to}"),
        "in a zip file": lambda to: zipfile.ZipFile(at / "lib.zip", "w").writestr("zipped.py", f"VALUE = {to}"),
        "data": lambda to: (at / f"da[t]a/.{to}").write_text(f"{to}"),
        "read": lambda to: (at / "numbers.txt").write_text(f"{to}"),
        "array": lambda to: np.save(at / "x.npy", np.full(2, to, np.float32)),
        "plug-in": lambda to: (at / "keyed.py").write_text(PLUGIN.format(to)),
        "variable": lambda to: monkeypatch.setenv("SCALE", f"{to}"),
        "option": lambda to: asked.update(seed=to),
        "argument": lambda to: asked["params"].update(n=to),
        "dtype": lambda to: asked["params"].update(y=np.zeros(2, FLOATS[to - 1])),
        "where Python looks": lambda to: monkeypatch.setenv("PYTHONPATH", f"{to}"),
    }
    for name in ("lib", "sub", "da[t]a"):
        (at / name).mkdir()
    for name in ("lib", "lib.zip"):
        monkeypatch.syspath_prepend(str(at / name))

    def run(**more: Any) -> kb.RunResult:
        for name in ("elsewhere", "sub.by_name", "sub", "zipped", "keyed", "beside"):
            sys.modules.pop(name, None)
        sys.path_importer_cache.clear()
        return kb.run("bench.py", "tiny", plugins=plugins, **asked, **more)

    def load() -> Plugins:
        return load_plugins([*SOURCE_TREE, str(at / "keyed.py")], installed=False)

    for change in changes.values():
        change(1)
    plugins = load()
    run(cached=True)
    for name, change in changes.items():
        assert run(cached=True).from_cache, name
        change(2)
        plugins = load() if name == "plug-in" else plugins
        fresh, kept, again = run(), run(cached=True), run(cached=True)
        assert (kept.from_cache, again.from_cache) == (False, True), name
        assert told(fresh) == told(kept) == told(again), name


#: Each option of a run that its result depends on, with another value than the default.
OPTIONS: dict[str, Any] = {
    "device": "sip:0", "seed": 7, "data": False, "verify_data": True, "verify_ops": True, "explain": True,
    "tcm_map": True, "race_by": "program", "materialize": "on_demand", "oob": "poison", "pipeline_loops": False,
    "placement": "blocks", "outputs": True, "resident": "all",
    "max_events": 10**9, "max_sim_ns": 1e9, "timeout_s": 600.0, "set": ("cube.pes=2",),
    "params": {"n": 128}, "topology": "default", "depends": ("$SCALE",), "shake": 3, "shake_seed": 5,
}  # fmt: skip
#: Those that it does not depend on, or that make a run of its own.
OTHERS = {
    "links", "strict_races", "strict_python", "level", "window", "trace", "out", "report", "cached",
    "on_progress", "watcher", "plugins", "timeline", "bench", "grid", "components", "backend", "engine", "record",
    "what_if",
}  # fmt: skip


def test_each_option_that_changes_the_result_makes_another_run(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"bench": "vector-add", "topology": "tiny", "params": {"n": 64}, "cached": True}
    keys = {
        kb.run(**{**asked, **more}, plugins=plugins).cache_key
        for more in [{}, *({"shake": 3 * (name == "shake_seed"), name: value} for name, value in OPTIONS.items())]
    }
    assert len(keys) == len(OPTIONS) + 1
    records = (RunCall, *(part.OPTIONS for part in parts_of(plugins)))
    assert {field.name for record in records for field in attrs.fields(record)} == {*OPTIONS, *OTHERS}


def test_a_bench_that_is_no_files_is_run_each_time(plugins: Plugins) -> None:
    sentence = (
        "bench '<lambda>' must be of a file to be kept, as a function depends on what is in memory; write it to a "
        "file, and give 'FILE.py:FUNCTION'."
    )
    for _ in range(2):
        with pytest.warns(KernbenchWarning) as warned:
            result = kb.run(lambda rt: rt.zeros((4,), "f32"), "tiny", cached=True, plugins=plugins)
        told = [str(each.message) for each in warned]
        assert (told, result.from_cache, result.cache_key, result.cache_note) == ([sentence], False, None, sentence)
    with pytest.raises(UsageError, match="must submit something to the device") as caught:
        kb.run(lambda rt: None, "tiny", cached=True, plugins=plugins)
    assert caught.value.__context__ is None  # it is no cause of it that nothing is kept


def test_what_was_written_after_the_process_began_is_not_kept(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own code, and a module that may be loaded as it was before, though it looks old, as what `cp -p` writes."""
    lately, run = tmp_path / "lately.py", partial(kb.run, "b.py", "tiny", cached=True, plugins=plugins)
    monkeypatch.syspath_prepend(str(tmp_path))
    lately.write_text("")
    os.utime(lately, (1, 1))
    (tmp_path / "b.py").write_text(f"{PLAIN}    __import__('lately')\n")
    for began, sentence in {
        0: "the code of 'kernbench_builtin' must be what its files say, and '.*' was written after this process had "
           "begun; start a new one.",
        lately.stat().st_ctime_ns - 1: f"'{lately}' must not be written while this process goes on, which may have "
           "loaded it before; the answer is not kept. Start a new process.",
    }.items():  # fmt: skip
        monkeypatch.setattr(dependencies, "IMPORTED_NS", began)
        monkeypatch.setattr(dependencies, "_LAST", [])
        with pytest.warns(KernbenchWarning) as warned:
            assert run().cache_key is None
        assert len(warned) == 1 and re.fullmatch(sentence, str(warned[0].message))
    monkeypatch.setattr(dependencies, "IMPORTED_NS", time.time_ns())
    assert run().cache_key is not None and not dependencies.is_new("gone")


def test_a_hit_says_when_it_was_made_and_of_what_it_depends(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = ModuleType("__mp_main__")  # as processes that were started have it: the command, and no module of the bench
    main.__file__ = str(tmp_path / "b.py")
    monkeypatch.setitem(sys.modules, "__mp_main__", main)
    (tmp_path / "b.py").write_text("import kernbench\n@kernbench.depends('t.csv', '$SCALE')\n" + PLAIN)
    found = [kb.run("b.py", "tiny", cached=True, plugins=plugins, depends=["more.txt"]) for _ in range(2)][1]
    about, _ = Cache.of_user().get(found.cache_key or "") or ({}, None)
    depends = list(about["depends"])  # modules of tests that ran before are among them, but nothing of ours
    assert not [place for place in depends if place.startswith(f"{Path(kb.__file__).parents[1]}/kernbench_")]
    names = [place for place in depends if place.startswith((str(tmp_path), "$"))]
    assert names == [str(tmp_path / "t.csv"), "$SCALE", str(tmp_path / "more.txt")]
    assert re.fullmatch(
        rf"from the cache \({(found.cache_key or '')[:12]}\), made 20[-0-9: ]+: it depends on machine, bench, "
        r"arguments, options, the code of kernbench and of plug-ins, .*; what the program reads besides is not "
        r"covered\.",
        found.cache_note,
    )


def test_a_kernel_of_a_module_that_was_loaded_by_hand_counts(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all of its file, which is in no list of modules; as any other, it must be older than the process."""
    (tmp_path / "kernels").mkdir()
    file, text = tmp_path / "kernels/mine.py", "N = 1\ndef kernel(x, tl):\n    tl.store(x, N * tl.zeros((4,), 'f32'))\n"
    file.write_text(text)
    (tmp_path / "b.py").write_text(
        "import runpy\ndef bench(rt):\n"
        "    rt.launch(runpy.run_path('kernels/mine.py')['kernel'], rt.empty((4,), 'f32'), grid=(1,))\n"
    )
    run = partial(kb.run, "b.py", "tiny", cached=True, plugins=plugins)
    assert [run().from_cache for _ in range(2)] == [False, True]
    file.write_text(text.replace("1", "2"))
    assert [run().from_cache for _ in range(2)] == [False, True]
    monkeypatch.setattr(dependencies, "IMPORTED_NS", file.stat().st_ctime_ns - 1)
    (tmp_path / "b.py").write_text((tmp_path / "b.py").read_text() + "\n")  # which is read anew each time
    with pytest.warns(KernbenchWarning, match=rf"^'{file}' must not be written while this process goes on"):
        assert run().cache_key is None


ALGORITHM = (Path(kb.__file__).parents[1] / "kernbench_ccl/algorithms/ring_all_reduce.py").read_text()


def test_an_algorithm_of_a_file_counts_with_its_own_modules(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is executed by kernbench, and its modules are not left in sys.modules; one of the user's folder is, with ~."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "ours.py").write_text(f"import amount\n{ALGORITHM}")
    (tmp_path / "amount.py").write_text("N = 1")
    params: dict[str, Any] = {"size": "1 KiB", "algo": "./ours.py"}
    run = partial(kb.run, "collective", "default", params, cached=True, plugins=plugins, depends=["~/mine.txt"])
    for path, text in (("amount.py", "N = 2"), ("ours.py", f"import amount\n#\n{ALGORITHM}"), ("mine.txt", "")):
        assert [run().from_cache, run().from_cache][1]
        (tmp_path / path).write_text(text)
        assert not run().from_cache
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/ours.py").write_text(ALGORITHM)
    monkeypatch.chdir("sub")  # where the same name is another file
    assert not run().from_cache


def test_what_a_run_showed_is_shown_again(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """What it printed, and its warnings; of runs in threads each has its own."""
    Path("say.py").write_text(
        "import contextlib, sys, time, warnings\nfrom kernbench_core.errors import KernbenchWarning\n"
        "def bench(rt, n: int = 1):\n    with contextlib.redirect_stdout(sys.stderr):\n        time.sleep(n / 20)\n"
        "    print('n is', n, end='')\n    print(' or so')\n    rt.zeros((n + 1,), 'f32')\n"
        "    n or warnings.warn('mind the gap.', KernbenchWarning, stacklevel=1)\n"
    )
    for from_cache in (False, True):
        with pytest.warns(KernbenchWarning, match=r"^mind the gap\.$") as warned:
            result = kb.run("say.py", "tiny", {"n": 0}, cached=True, plugins=plugins)
        assert (result.from_cache, len(warned), capsys.readouterr().out) == (from_cache, 1, "n is 0 or so\n")
    calls = [partial(kb.run, "say.py", "tiny", {"n": n}, cached=True, plugins=plugins) for n in (1, 2, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernbenchWarning)
        with ThreadPoolExecutor() as pool:
            assert not any(made.from_cache for made in pool.map(lambda call: call(), calls))
        capsys.readouterr()
        for n, call in enumerate(calls, 1):
            assert call().from_cache and capsys.readouterr().out == f"n is {n} or so\n"


def test_a_run_that_writes_files_or_has_no_room_is_made(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is kept, and nothing is kept of it."""
    options: dict[str, Any] = {"params": SIZE, "cached": True, "plugins": plugins}
    writes = ({"out": "saved"}, {"report": "page.html"}, {"trace": "t.json"}, {"timeline": True})
    assert [kb.run("gemm", "tiny", **more, **options).cache_key for more in writes] == [None] * 4
    assert [kb.run("gemm", "tiny", **options).from_cache for _ in range(2)] == [False, True]
    assert kb.run("gemm", "tiny", report="again.html", **options).from_cache is False
    assert all(Path(name).exists() for name in ("saved", "page.html", "t.json", "again.html"))
    monkeypatch.setenv("KERNBENCH_CACHE_BYTES", "10")
    with pytest.warns(KernbenchWarning, match=r"^nothing is kept in the cache: .* is more than 10 B, all in '"):
        assert kb.run("gemm", "tiny", **options, seed=9).cache_note == ""


def test_an_entry_that_is_no_result_is_a_miss(plugins: Plugins, folder: Path) -> None:
    """Also one that names a class of others."""
    run = partial(kb.run, "vector-add", "tiny", {"n": 64}, cached=True, plugins=plugins)
    first = run()
    about, said = Cache(folder).get(first.cache_key or "") or ({}, b"")
    timing = b"kernbench_core.host.timing:TimingResult"
    assert timing in said
    others = (said.replace(timing, name) for name in (b"subprocess:Popen", b"kernbench_core.package:time"))
    for other in (b"", b"{}", b"[1]", b"no JSON", *others):
        Cache(folder).put(first.cache_key or "", about, other)
        again = run()
        assert not again.from_cache and again == first and run().from_cache
