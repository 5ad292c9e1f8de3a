"""What `auto` takes for the calls of ranks where no table holds: what simulations beside the run found, once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_ccl.distributed as dist
import kernbench_core as kb
from kernbench_ccl.measure import time_collective
from kernbench_ccl.measure.trials import AlgorithmTrial
from kernbench_ccl.plan.trial_choice import TrialTime
from kernbench_core.plugins import load_plugins

PLUGINS = load_plugins()
SETS = ["system.sips=3", "system.network.bandwidth=37GB/s", "cube.pes=2"]
COUNT = 512


def bench(rt: Any, said: str = "", calls: int = 1) -> None:
    """All-reduce over all ranks as often as is said."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(set=[said] if said else [])
        for _ in range(calls):
            x = rt.tensor(np.full(COUNT, rank, "f2"))
            dist.all_reduce(x)
            rt.check(x, np.full(COUNT, 3, "f2"))

    dist.spawn(program, 3)


def ran(said: str = "", calls: int = 1) -> kb.RunResult:
    """Run it on a machine that is in no table."""
    return kb.run(
        bench, "tiny", {"said": said, "calls": calls}, set=SETS, plugins=PLUGINS, verify_data=True
    )


@pytest.fixture(name="trials")
def _trials(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keep nothing in the cache, and list the algorithms that are tried."""
    monkeypatch.setenv("KERNBENCH_CACHE_BYTES", "0")
    tried: list[str] = []
    run = AlgorithmTrial.run

    def counted(trial: AlgorithmTrial, *given: Any) -> Any:
        tried.append(trial.algorithm.name)
        return run(trial, *given)

    monkeypatch.setattr(AlgorithmTrial, "run", counted)
    return tried


def test_the_run_is_that_of_the_algorithm_that_is_fastest_here(trials: list[str]) -> None:
    """Bit for bit, as if it had been named; of several calls the simulations are made once, and told."""
    found = ran(calls=2)
    size = COUNT * 2
    times = {
        name: time_collective("all_reduce", [size], "tiny", algo=name, set=SETS, check=False)[0].out_of_place.time_ns
        for name in sorted(trials)
    }
    best = min(times, key=lambda name: times[name])
    assert len(trials) == len(set(trials)) == 5
    assert found.warnings == (
        f"dist.all_reduce: auto took {best} for 3 ranks here, by closed forms, checked by 5 short simulations of up to "
        "1 KiB.",
    )
    named = ran(f"collectives.all_reduce={best}", calls=2)
    assert (named.op_log_sha256, named.timing.total_ns) == (found.op_log_sha256, found.timing.total_ns)
    assert named.warnings == () and len(trials) == 5


def test_the_packages_table_is_not_of_some_of_the_pes(trials: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that it was measured on: with all PEs it holds, with some algorithms are tried."""
    calls: dict[str, int] = {}
    monkeypatch.setattr(AlgorithmTrial, "run", lambda trial, *_: trials.append("") or TrialTime(1.0, 0.0))

    def program(rank: int, rt: kb.Runtime, pes: list[int] | None) -> None:
        dist.init_process_group(pes=pes)
        dist.all_reduce(rt.zeros((COUNT,), "f16"))

    def asked(rt: kb.Runtime) -> None:
        for name, pes in (("all", None), ("some", [0])):
            dist.spawn(program, args=(pes,))
            calls[name] = len(trials)

    kb.run(asked, "default", set=["system.sips=2"], plugins=PLUGINS)
    assert calls == {"all": 0, "some": 5}


def test_what_the_cache_holds_changes_no_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Cold, then warm: the same op log and the same words."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path))
    cold, warm = ran(), ran()
    assert (cold.op_log_sha256, cold.warnings) == (warm.op_log_sha256, warm.warnings)


def test_nothing_is_simulated_where_ccl_yaml_says_so(trials: list[str]) -> None:
    """The nearest measurement counts then, and nothing is noted."""
    assert ran("auto.simulate=off").warnings == ()
    assert trials == []
