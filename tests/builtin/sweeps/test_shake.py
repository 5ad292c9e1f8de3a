"""`--shake`: median and spread of runs on machines that are the same within a thousandth."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import kernbench as kb
from kernbench_builtin.machines.perturbation import WITHIN, perturbed
from kernbench_builtin.native import timing
from kernbench_builtin.sweeps.shake import ShakePart
from kernbench_builtin.sweeps.shaken import Shaken
from kernbench_core.cli import main
from kernbench_core.errors import ExecutionError, KernelError, UsageError
from kernbench_core.host.session import GraphEngine
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.spread import NOT_KNOWN, TimeSpread
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.units import format_time

SMALL = {"M": 64, "N": 64, "K": 64}


@pytest.fixture
def shaken(plugins: Plugins) -> Callable[..., Shaken]:
    """Give what makes a small run, shaken three times unless told otherwise, and returns that answer."""

    def make(**options: Any) -> Shaken:
        found = kb.run("gemm", "tiny", SMALL, data=False, plugins=plugins, **{"shake": 3, **options}).part(Shaken)
        assert found is not None
        return found

    return make


def test_it_is_what_engines_on_them_say(plugins: Plugins, shaken: Callable[..., Shaken]) -> None:
    """Machines made here, each with an engine of its own, and not by what looks on at runs."""
    graph = compile_topology(configure(plugins, "tiny"), plugins)
    times = []
    for at in range(3):
        engine = GraphEngine(perturbed(graph, plugins.components, f"7.{at}", WITHIN), plugins.components, data=False)
        engine.run(plugins.benches.load("gemm"), SMALL)
        times.append(engine.get_timing_result())
    found = shaken(shake_seed=7)
    assert found.total == TimeSpread.of(time.total_ns for time in times)
    for name, spread in found.phases.items():
        assert spread == TimeSpread.of(time.phases[name] for time in times)


def test_a_recorded_run_gives_what_runs_on_each_machine_give(
    shaken: Callable[..., Shaken], plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them is run where the recording holds; all are where it does not, or nothing records."""
    def timed(rt: kb.Runtime) -> None:
        rt.launch(lambda x, tl: tl.store(x, tl.load(x, shape=(64,), dtype="f32") + 1.0), rt.zeros((64,), "f32"))
        assert rt.now >= 0

    if timing.library_file() is None:
        pytest.skip("the native engine was not compiled")
    simulate = ShakePart._shaken

    def first_alone(part: ShakePart, job: Any) -> dict[str, Any]:
        assert job == {"index": 0}  # which is compared
        return simulate(part, job)

    with monkeypatch.context() as patch:
        patch.setattr(ShakePart, "_shaken", first_alone)
        again = shaken(shake=5)
        with pytest.raises(ExecutionError, match="without a result"):
            kb.run(timed, "tiny", shake=3, plugins=plugins)
    monkeypatch.setattr(timing, "library_file", lambda: None)
    assert shaken(shake=5) == again
    assert kb.run(timed, "tiny", shake=3, plugins=plugins).shake.total.runs == 3


def test_a_seed_gives_one_answer_and_the_run_is_as_it_was(plugins: Plugins, shaken: Callable[..., Shaken]) -> None:
    plain = kb.run("gemm", "tiny", SMALL, data=False, plugins=plugins)
    first = kb.run("gemm", "tiny", SMALL, data=False, shake=3, plugins=plugins)
    assert first.op_log_sha256 == plain.op_log_sha256
    assert first.shake == shaken() != shaken(shake_seed=1)
    assert first.shake.run_ns == plain.total_ns
    assert first.shake.total.median_ns == pytest.approx(plain.total_ns, rel=WITHIN)
    assert 0 < first.shake.total.width_ns < 2 * WITHIN * plain.total_ns
    assert plain.shake is None


def test_the_command_line_tells_median_and_spread(
    plugins: Plugins, shaken: Callable[..., Shaken], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "gemm", "--topology", "tiny", "--no-data", *(f"-p{name}=64" for name in SMALL)]
    assert main([*arguments, "--shake", "3"], plugins) == 0
    total, kernel = shaken().total, shaken().phases["kernel"]
    told = f"shaken 3 times within 0.1%: total time {total}\n  kernel {kernel}\n"
    assert told in capsys.readouterr().out
    assert main([*arguments, "-q", "--shake", "3"], plugins) == 0
    line = " ".join(capsys.readouterr().out.split())  # which is as wide as a terminal
    assert line.startswith("gemm on tiny: ") and line.endswith(f", shaken 3 times within 0.1%: median {total}")
    assert main([*arguments, "--json", "--shake"], plugins) == 0
    assert json.loads(capsys.readouterr().out)["shake"]["total"]["runs"] == 8


def test_a_seed_without_runs_is_refused(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """It would say nothing."""
    assert main(["run", "gemm", "--topology", "tiny", "--shake-seed", "5"], plugins) == 2
    told = "--shake-seed must be given with --shake, not alone; add that, or leave it out."
    assert capsys.readouterr().err == f"error: {told}\n"


def test_a_run_that_is_beyond_all_of_the_others_says_so() -> None:
    spread = TimeSpread(100.0, 99.0, 101.0, 8)
    assert Shaken(spread, {}, 99.0, 0, WITHIN).beyond == ""
    assert Shaken(spread, {}, 98.0, 0, WITHIN).beyond == (
        "the run itself, 98 ns, is shorter than all of them; the median says more"
    )
    assert "longer" in Shaken(spread, {}, 102.0, 0, WITHIN).beyond


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_runs_have_no_spread(count: int, shaken: Callable[..., Shaken]) -> None:
    with pytest.raises(UsageError, match=f"^shake must be 3 runs or more, for a spread, not {count}.$"):
        shaken(shake=count)


def test_what_fails_fails_in_its_own_words(plugins: Plugins) -> None:
    def kernel(tl):  # type: ignore[no-untyped-def]
        raise ValueError("mine")

    def bench(rt: kb.Runtime) -> None:
        rt.launch(kernel)

    with pytest.raises(KernelError, match="mine"):
        kb.run(bench, "tiny", shake=3, plugins=plugins)


def test_points_of_a_sweep_are_shaken(plugins: Plugins, shaken: Callable[..., Shaken]) -> None:
    """Each has the figures that its own run has; the options stand in the plan."""
    params = {"M": 64, "N": 64, "K": [64, 65]}
    done = kb.sweep("gemm", "tiny", params, data=False, shake=3, shake_seed=2, plugins=plugins)
    figures, total = done.records[0]["figures"], shaken(shake_seed=2).total
    assert (figures["shaken.median_ns"], figures["shaken.spread_ns"]) == (total.median_ns, total.width_ns)
    assert done.alike == ()
    assert done.plan.options == {"data": False, "shake": 3, "shake_seed": 2}


def test_a_sweep_says_what_its_spreads_say(
    plugins: Plugins, shaken: Callable[..., Shaken], capsys: pytest.CaptureFixture[str]
) -> None:
    """A tile beyond the matrix changes nothing."""
    words = ["sweep", "gemm", "--topology", "tiny", "--no-data", "-p", "M=64", "-p", "N=64", "--objective", "time"]
    assert main([*words, "-p", "K=64,128", "--shake", "3"], plugins) == 0
    best = "best: #0 (K=64); 1.05 times as fast as the slowest\n"
    assert f"{best}not told apart from it by their spread: none\n" in capsys.readouterr().out
    assert main([*words, "-p", "K=64", "-p", "tile_m=64,128", "--shake", "3"], plugins) == 0
    out = capsys.readouterr().out
    equal = "equal best: #0 (tile_m=64), #1\n"
    assert f"{equal}not told apart from them by their spread: none\ntile_m changed no time\n" in out
    rows = [line.split("  ") for line in out.splitlines() if line[:1] in ("#", "0")]
    head, first = ([cell.strip() for cell in row if cell] for row in rows)
    total = shaken().total
    assert head[-2:] == ["median", "spread"]
    assert first[-2:] == [format_time(total.median_ns), format_time(total.width_ns)]
    assert main([*words, "-p", "K=64,128"], plugins) == 0
    assert f"{best}{NOT_KNOWN}\n" in capsys.readouterr().out
    assert main([*words, "-p", "K=64"], plugins) == 0
    assert NOT_KNOWN not in capsys.readouterr().out


def test_programs_that_share_values_in_python_run_on_each_machine(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who takes what depends on times, which no recording can know: the run that is compared differs."""

    def queue(rt: kb.Runtime) -> None:
        todo, x = iter(range(37)), rt.zeros((64 * 37,), "f32")

        def kernel(x: Any, tl: Any) -> None:
            for at in todo:
                here = x + at * 64 + tl.arange(0, 64)
                tl.store(here, tl.load(here) + 1.0)

        rt.launch(kernel, x)

    asked: dict[str, Any] = {"shake": 4, "set": {"cube.noc.latency": "100 ns"}, "plugins": plugins}
    found = kb.run(queue, "tiny", **asked).shake
    monkeypatch.setattr(timing, "library_file", lambda: None)
    assert kb.run(queue, "tiny", **asked).shake == found
