"""Runs from the cache: equal to those that are made, for every kind of run; made anew for whatever is otherwise."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.errors import KernbenchWarning, UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import RaceError

SIZE = {"M": 32, "N": 32, "K": 32}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the folder of the cache."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def told(result: kb.RunResult) -> str:
    """Return what --json prints, but for what differs from run to run."""
    return json.dumps({**result.to_json(), "wall_s": 0, "from_cache": None})


def double(x: Any, y: Any, n: int, tl: Any) -> None:
    at = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(y + at, tl.load(x + at) * 2.0)


def racing(rt: kb.Runtime, n: int = 8) -> None:
    """Have two PEs write one place, report rows, and branch on what was computed."""
    y = rt.empty((n,), "f32", name="y")

    def write(y: Any, tl: Any) -> None:
        tl.store(y + tl.arange(0, n), tl.full((n,), 1.0, "f32") + tl.program_id(0))

    rt.launch(write, y)
    rt.report(size=n, time_ns=1.5, name="first", right=None)
    rt.report(size=np.float32(2), name="second", right=True)


def branching(rt: kb.Runtime, n: int = 8) -> None:
    """Branch on what a kernel computed, and read it on the host."""
    x = rt.tensor(np.arange(n, dtype=np.float32), name="x")

    def kernel(x: Any, tl: Any) -> None:
        if float(tl.sum(tl.load(x + tl.arange(0, n)) * 2.0, axis=0)) > 3:
            tl.store(x + tl.arange(0, n), tl.zeros((n,), "f32"))

    rt.launch(kernel, x, grid=(1,))
    rt.check(x, np.zeros(n, np.float32))
    x.numpy()


def reaching(rt: kb.Runtime) -> None:
    """Reach outside of a tensor."""
    x = rt.tensor(np.arange(4, dtype=np.float32), name="x")

    def kernel(x: Any, tl: Any) -> None:
        tl.store(x + tl.arange(0, 8), tl.load(x + tl.arange(0, 8)))

    rt.launch(kernel, x, grid=(1,))


def wrong(rt: kb.Runtime) -> None:
    """Expect something else of two tensors than what kernels write there."""

    def kernel(x: Any, value: float, tl: Any) -> None:
        tl.store(x + tl.arange(0, 8), tl.full((8,), value, "f32"))

    for name in "xy":
        x = rt.empty((8,), "f32", name=name)
        rt.launch(kernel, x, 1.5, grid=(1,))
        rt.check(x, np.full(8, 2.0, np.float32))


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": ("gemm", {"params": SIZE}),
    "explained": ("gemm", {"params": SIZE, "explain": True, "tcm_map": True, "links": "all"}),
    "verified": ("gemm", {"params": SIZE, "verify_data": True, "verify_ops": True}),
    "wrong": (wrong, {"verify_data": True, "set": ["cube.pes=2"]}),
    "systolic": (
        "gemm",
        {"params": SIZE, "set": {"components.pe_gemm": {"impl": "builtin.pe_gemm_systolic", "params": {}}}},
    ),
    "banks": ("gemm", {"params": SIZE, "set": ["components.hbm_ctrl.impl=builtin.hbm_ctrl_bank"]}),
    "outputs": ("gemm", {"params": SIZE, "outputs": True}),
    "shapes": ("vector-add", {"params": {"n": 64}, "data": False}),
    "hazards": (racing, {"device": "sip:0"}),
    "branches": (branching, {"materialize": "on_demand", "verify_data": True}),
    "outside": (reaching, {"oob": "poison"}),
    "poisoned": (reaching, {"oob": "poison", "explain": True, "race_by": "program", "seed": 3}),
}



@pytest.mark.parametrize("kind", KINDS)
def test_a_result_from_the_cache_is_the_one_that_is_made(kind: str, plugins: Plugins) -> None:
    """By value, as JSON, in its tables and outputs, however often; a fresh one is not from the cache."""
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
        assert {name: array.tobytes() for name, array in again.outputs.items()} == {
            name: array.tobytes() for name, array in made.outputs.items()
        }
        assert not again.outputs["c"].flags.writeable
    with pytest.raises(kb.KernbenchError, match="as a result that was pickled or is from the cache leaves it behind"):
        _ = again.store


def test_a_kernel_alone_has_its_outputs(plugins: Plugins) -> None:
    """Another array, or another element of it, is another run."""
    x = np.arange(64, dtype=np.float32)
    seen = []
    for given in (x, x.copy(), x + 1, np.where(x == 63, 0, x).astype("f4"), x.astype("f2"), x):
        result = kb.launch(double, given, np.zeros(64, given.dtype), 16, topology="tiny", plugins=plugins, cached=True)
        np.testing.assert_array_equal(result.outputs["y"], given * 2)
        seen.append(result.from_cache)
    assert seen == [False, True, False, False, False, True]


def test_races_are_errors_from_the_cache_too(plugins: Plugins) -> None:
    """A run that fails is not kept; one that did not is no excuse."""
    for _ in range(2):
        with pytest.raises(RaceError) as caught:
            kb.run(racing, "tiny", strict_races=True, cached=True, plugins=plugins)
        assert not caught.value.result.from_cache
    kb.run(racing, "tiny", cached=True, plugins=plugins)
    with pytest.raises(RaceError) as caught:
        kb.run(racing, "tiny", strict_races=True, cached=True, plugins=plugins)
    assert caught.value.result.from_cache and len(caught.value.result.hazards) == 1


def noisy(rt: kb.Runtime) -> None:
    """Print, and warn."""
    print("hello", end="")
    print(" there")
    warnings.warn("mind the gap.", KernbenchWarning, stacklevel=1)
    rt.tensor(np.zeros(4, np.float32))


def test_what_a_run_showed_is_shown_again(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    for from_cache in (False, True):
        with pytest.warns(KernbenchWarning, match=r"^mind the gap\.$") as warned:
            result = kb.run(noisy, "tiny", cached=True, plugins=plugins)
        assert (result.from_cache, len(warned)) == (from_cache, 1)
        assert capsys.readouterr().out == "hello there\n"


def test_what_no_key_covers_is_run_each_time(plugins: Plugins) -> None:
    with open(os.devnull) as held:  # noqa: PTH123

        def bench(rt: kb.Runtime) -> None:
            """Read a file that is open."""
            rt.zeros((4,), "f32") if held.read() else rt.tensor(np.zeros(4, np.float32))

        for _ in range(2):
            with pytest.warns(KernbenchWarning) as warned:
                result = kb.run(bench, "tiny", cached=True, plugins=plugins)
            sentence = "the bench's closure 'held' is an _io.TextIOWrapper, which no key covers; the run is not kept."
            assert [str(each.message) for each in warned] == [sentence]
            assert (result.from_cache, result.cache_key, result.cache_note) == (False, None, sentence)


def reading(rt: kb.Runtime, times: int = 1) -> None:
    """Read a file through the runtime."""
    path = rt.input_file("numbers.npy")
    there = path.exists() if hasattr(path, "exists") else Path(path).exists()
    rt.tensor(np.load(path) if there else np.zeros(2, np.float32), name="x")
    rt.report(there=there)


def test_files_that_a_bench_reads_are_looked_at(plugins: Plugins, tmp_path: Path) -> None:
    """Also that one is not there; and what was read before is known again."""

    def run() -> bool:
        result = kb.run(reading, "tiny", cached=True, plugins=plugins)
        assert result == kb.run(reading, "tiny", plugins=plugins)
        assert told(result) == told(kb.run(reading, "tiny", plugins=plugins))
        return result.from_cache

    assert [run(), run()] == [False, True]
    np.save("numbers.npy", np.ones(4, np.float32))
    assert [run(), run()] == [False, True]
    np.save("numbers.npy", np.ones(8, np.float32))
    assert [run(), run()] == [False, True]
    np.save("numbers.npy", np.ones(4, np.float32))
    assert run()
    Path("numbers.npy").unlink()
    assert run()


def test_files_to_be_written_are_written_and_the_result_is_kept(plugins: Plugins, tmp_path: Path) -> None:
    """As the run without them would give it; a timeline is no part of it."""
    options: dict[str, Any] = {"params": SIZE, "cached": True, "plugins": plugins}
    first = kb.run("gemm", "tiny", out="saved", verify_data=True, **options)
    assert first.cache_note == "--out needs a run of its own: this one was made, and its result is kept"
    again = kb.run("gemm", "tiny", verify_data=True, **options)
    assert again.from_cache and again.timeline is None and again.explain is None
    assert again == kb.run("gemm", "tiny", SIZE, verify_data=True, plugins=plugins)
    assert told(again) == told(kb.run("gemm", "tiny", SIZE, verify_data=True, plugins=plugins))
    for more in (
        {"out": "saved"},
        {"report": "page.html"},
        {"trace": "t.json"},
        {"bundle": "b.tar.gz"},
        {"timeline": True},
    ):
        result = kb.run("gemm", "tiny", verify_data=True, **more, **options)
        assert not result.from_cache and result.cache_key == again.cache_key
    assert Path("page.html").exists() and Path("t.json").exists() and Path("b.tar.gz").exists()
    assert kb.run("gemm", "tiny", verify_data=True, **options) == again


def test_a_damaged_entry_is_a_miss(plugins: Plugins, folder: Path) -> None:
    """And so is one that holds something else under a right digest."""
    from kernbench_core.cache import Cache

    first = kb.run("vector-add", "tiny", {"n": 64}, cached=True, plugins=plugins)
    assert first.cache_key is not None
    cache = Cache(folder)
    files = dict(cache.get(first.cache_key) or {})
    for wrong in (
        {}, {"said.json": b"{}"}, {**files, "said.json": b"no JSON"}, {**files, "arrays": b""},
        {**files, "said.json": files["said.json"].replace(b"TimingResult", b"Popen")},
    ):  # fmt: skip
        cache.put(first.cache_key, wrong, {})
        again = kb.run("vector-add", "tiny", {"n": 64}, cached=True, plugins=plugins)
        assert not again.from_cache and again == first
        assert kb.run("vector-add", "tiny", {"n": 64}, cached=True, plugins=plugins).from_cache


def test_a_machine_that_is_held_open_takes_nothing_from_the_cache() -> None:
    with pytest.raises(UsageError) as caught:
        kb.triton("tiny", cached=True)
    assert str(caught.value) == (
        "kb.triton runs its caller's own code between launches, which no key covers; leave out cached=True, or put it "
        "into a file for 'kernbench triton --cached'."
    )


class Awkward(dict[str, int]):
    """A mapping of the user's that cannot be looked through."""

    def items(self) -> Any:
        raise ValueError("not now")


def test_what_fails_while_a_key_is_made_is_not_in_the_way(plugins: Plugins) -> None:
    held = Awkward()

    def bench(rt: kb.Runtime) -> None:
        rt.tensor(np.full(4, len(held), np.float32))

    with pytest.warns(KernbenchWarning) as warned:
        result = kb.run(bench, "tiny", cached=True, plugins=plugins)
    assert result.total_ns > 0 and result.cache_key is None
    told = [str(each.message) for each in warned]
    assert told == ["making its key raised ValueError: not now; the run is not kept."]
