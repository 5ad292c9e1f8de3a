"""Sweeps on a real scheduler and real workers of this machine, which end and come back while points run."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import kernbench_core as kb
from kernbench_builtin.sweeps import SweepPlan, planned, run_planned
from kernbench_builtin.sweeps.axes import read_axis
from kernbench_builtin.sweeps.executors.cluster.executor import ClusterError
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins, load_plugins
from tests.loopback_cluster import REPO, LoopbackCluster
from tests.sweep_rig import MarkedSweeps

Client: Any = pytest.importorskip("distributed").Client
POINTS = 12
COMMAND = "import sys; from kernbench_core.cli import main; sys.exit(main())"


@contextmanager
def _two_workers(folder: Path) -> Iterator[LoopbackCluster]:
    """Give a scheduler with two workers of one thread each."""
    folder.mkdir()
    with LoopbackCluster(folder) as cluster:
        cluster.start_scheduler()
        cluster.start_worker("a")
        cluster.start_worker("b")
        yield cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LoopbackCluster]:
    """A cluster of a test that ends what is in it."""
    with _two_workers(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    """The one cluster of all tests that end nothing in it."""
    with _two_workers(tmp_path_factory.mktemp("lasting") / "cluster") as cluster:
        yield cluster


@pytest.fixture
def shared(lasting: LoopbackCluster) -> Iterator[LoopbackCluster]:
    """That cluster; workers that a test adds go with it."""
    yield lasting
    added = set(lasting.workers) - {"a", "b"}
    for name in added:
        lasting.kill_worker(name)
    with Client(lasting.address, set_as_default=False) as client:
        while len(client.nthreads()) > 2:
            time.sleep(0.01)


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    """The installed plug-ins, as workers load these."""
    if not importlib.metadata.entry_points(group="kernbench"):
        pytest.skip("kernbench is not installed")
    return load_plugins()


@pytest.fixture
def sweeps(tmp_path: Path, plugins: Plugins) -> MarkedSweeps:
    """Sweeps, of which that in folder "whole" ran here."""
    sweeps = MarkedSweeps(tmp_path, POINTS, plugins, busy_s=0.05)
    sweeps.run("whole")
    sweeps.forget()
    return sweeps


def test_points_are_the_same_on_a_cluster(sweeps: MarkedSweeps, shared: LoopbackCluster) -> None:
    sweeps.run("s", processes=None, scheduler=shared.address)
    assert sweeps.content("s") == sweeps.content("whole")
    assert sweeps.runs == dict.fromkeys(range(1, POINTS + 1), 1)


def test_a_worker_that_is_killed_costs_no_point(sweeps: MarkedSweeps, cluster: LoopbackCluster) -> None:
    told: list[int] = []

    def record_ended(record: Mapping[str, Any]) -> None:
        told.append(record["values"]["n"])
        if len(told) == 4:
            cluster.kill_worker("a")
        if len(told) == 6:
            cluster.start_worker("c")

    sweeps.run("s", processes=None, scheduler=cluster.address, on_record=record_ended)
    assert sorted(told) == list(range(1, POINTS + 1))
    assert sweeps.content("s") == sweeps.content("whole")
    again = {n for n, runs in sweeps.runs.items() if runs > 1}
    assert not again & set(told[:4])
    assert len(again) <= 2  # the one that it evaluated, and the one that it had waiting


def _command(sweeps: MarkedSweeps, folder: str, *more: str) -> subprocess.Popen[str]:
    plan = sweeps.plan
    asked = ["sweep", plan.bench, "--topology", "tiny", "-p", f"n=1..{POINTS}:lin:{POINTS}", "-o", folder]
    asked += more
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", COMMAND, *asked], cwd=sweeps.base, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(REPO)},
    )  # fmt: skip


def test_a_scheduler_that_goes_for_good_leaves_what_had_finished(
    sweeps: MarkedSweeps, cluster: LoopbackCluster
) -> None:
    """The command says so in a sentence, and nothing of Dask's log is among them; this machine goes on alone."""
    process = _command(sweeps, "s", "--scheduler", cluster.address, "--patience", "2 s")
    assert process.stdout is not None
    while len(sweeps.recorded("s")) < 4:
        assert process.poll() is None
        time.sleep(0.01)
    cluster.kill_scheduler()
    out, err = process.communicate()
    recorded, before = sweeps.recorded("s"), sweeps.runs
    assert process.returncode == 6
    assert err.splitlines() == [
        f"error: scheduler {cluster.address} does not answer; every point that had finished is recorded: go "
        "on with --resume once it is there, with another --scheduler, or here without one.",
    ]
    assert 4 <= len(recorded) < POINTS
    assert len([line for line in out.splitlines() if line[:1].isdigit()]) == len(recorded)
    sweeps.run("s")
    assert sweeps.content("s") == sweeps.content("whole")
    assert not recorded & set(sweeps.runs - before)


def test_ctrl_c_stops_the_workers_at_once(tmp_path: Path, plugins: Plugins, shared: LoopbackCluster) -> None:
    sweeps = MarkedSweeps(tmp_path, POINTS, plugins, busy_s=600.0)
    process = _command(sweeps, "s", "--scheduler", shared.address)
    while len(sweeps.runs) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    assert _evaluators(shared)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert [line for line in err.splitlines() if line] == [
        f"error: interrupted after 0 of {POINTS} points, which are kept; go on with 'kernbench sweep s --resume'."
    ]
    while _evaluators(shared):
        time.sleep(0.01)


def test_what_a_killed_worker_evaluated_ends_with_it(
    tmp_path: Path, plugins: Plugins, cluster: LoopbackCluster
) -> None:
    sweeps = MarkedSweeps(tmp_path, POINTS, plugins, busy_s=600.0)
    process = _command(sweeps, "s", "--scheduler", cluster.address)
    while len(sweeps.runs) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    assert _evaluators(cluster)
    process.kill()
    process.communicate()
    cluster.kill_worker("a")
    cluster.kill_worker("b")
    while _evaluators(cluster):
        time.sleep(0.01)


def _evaluators(cluster: LoopbackCluster) -> list[Path]:
    """Return the folders of processes that evaluate points for a cluster: those are below its folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found.append((process / "cwd").readlink())
    return [folder for folder in found if cluster.folder in folder.parents and "kernbench-" in str(folder)]


def test_nothing_of_a_point_is_kept_by_scheduler_or_workers(sweeps: MarkedSweeps, shared: LoopbackCluster) -> None:
    """Two workers have a point each, while a record of each may be fetched; what was recorded is forgotten."""
    known: list[int] = []
    with Client(shared.address, set_as_default=False) as client:
        client.wait_for_workers(2)

        def record_ended(record: Mapping[str, Any]) -> None:
            known.append(client.run_on_scheduler(_tasks))

        sweeps.run("s", processes=None, scheduler=shared.address, on_record=record_ended)
        assert len(known) == POINTS
        assert max(known) <= 2 * 2
        assert client.run_on_scheduler(_tasks) == 0
        assert list(client.run(_data).values()) == [0, 0]


def _tasks(dask_scheduler: Any) -> int:
    return len(dask_scheduler.tasks)


def _data(dask_worker: Any) -> int:
    return len(dask_worker.data)


TRAVELLING = """
from side import FACTOR

def layer(rt, n: int = 4):
    x = rt.tensor((n,), "f32", name="x")

    def kernel(x, n, tl):
        tl.store(x + tl.arange(0, n), tl.load(x + tl.arange(0, n)) * FACTOR)

    rt.launch(kernel, x, n, grid=(1,))
"""
VENDOR = """
import kernbench_core as kb
from kernbench_builtin.components.pe_math import PeMath

kernbench_api = 1

class Fast(PeMath):
    '''A unit of a vendor.'''

def kernbench_components():
    return [kb.ComponentEntry("vendor.fast", "vendor:Fast", "pe_math", "A unit of a vendor.")]
"""


def test_what_the_plan_names_travels(tmp_path: Path, shared: LoopbackCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bench with a module of its own, a machine with a base, figures and a plug-in that is a file."""
    project = tmp_path / "project"
    (project / "machines").mkdir(parents=True)
    (project / "start").mkdir()
    (project / "mine.py").write_text(TRAVELLING)
    (project / "side.py").write_text("FACTOR = 3\n")
    (project / "cost.py").write_text("def cost(config, figures):\n    return figures['time_ns'] * 2\n")
    (project / "machines" / "mine.yaml").write_text("base: below.yaml\nsystem: {sips: 1}\n")
    (project / "machines" / "below.yaml").write_text("base: tiny\ncube: {pes: 2}\n")
    (project / "vendor.py").write_text(VENDOR)
    monkeypatch.chdir(project / "start")
    monkeypatch.setenv("KERNBENCH_PLUGIN", str(project / "vendor.py"))
    plan = SweepPlan(
        bench="../mine.py:layer", topology=str(project / "machines" / "mine.yaml"), figures="../cost.py",
        objectives=("cost",), axes=(read_axis("n", "param", "4,8"),), set={"components.pe_math.impl": "vendor.fast"},
    )  # fmt: skip
    plugins = load_plugins()
    for folder, scheduler in (("here", None), ("there", shared.address)):
        run_planned(planned(plan, plugins), plugins, folder=tmp_path / folder, scheduler=scheduler)
    tables = [(tmp_path / folder / "table.csv").read_text() for folder in ("here", "there")]
    assert tables[0].count(",ok,") == 2
    assert tables[0] == tables[1]
    here, there = (_records(tmp_path / folder) for folder in ("here", "there"))
    assert here == there


DIFFERS = re.compile(
    r"worker tcp://127\.0\.0\.1:\d+ must have plug-in 'builtin' of (kernbench .*) with files ([0-9a-f]{12}), as is "
    r"here, not of \1 with files (?!\2)[0-9a-f]{12}; install the same there, and start the worker again\."
)


def _records(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a sweep, but for how long points took."""
    return [json.loads(path.read_bytes()) | {"wall_s": 0} for path in sorted((folder / "points").iterdir())]


@pytest.fixture(scope="module")
def other_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source tree of kernbench in which one model differs."""
    tree = tmp_path_factory.mktemp("tree")
    for package in ("kernbench_core", "kernbench_builtin", "kernbench_ccl", "kernbench.egg-info"):
        if (REPO / package).exists():
            shutil.copytree(REPO / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    model = tree / "kernbench_builtin" / "components" / "pe_math.py"
    model.write_text(model.read_text() + "# changed\n")
    return tree


def test_a_worker_with_another_model_is_refused_before_any_point(
    sweeps: MarkedSweeps, shared: LoopbackCluster, other_tree: Path
) -> None:
    shared.start_worker("other", tree=other_tree)
    with Client(shared.address, set_as_default=False) as client:
        client.wait_for_workers(3)
        names = {info["name"]: address for address, info in client.scheduler_info(-1)["workers"].items()}
    with pytest.raises(UsageError) as caught:
        sweeps.run("s", processes=None, scheduler=shared.address)
    assert DIFFERS.fullmatch(str(caught.value)), str(caught.value)
    assert names["other"] in str(caught.value)
    assert not sweeps.runs


def test_a_worker_with_another_model_that_joins_later_evaluates_nothing(
    sweeps: MarkedSweeps, cluster: LoopbackCluster, other_tree: Path
) -> None:
    ran: Counter[int] = Counter()

    def record_ended(record: Mapping[str, Any]) -> None:
        if cluster.workers.keys() == {"a", "b"}:
            cluster.start_worker("late", tree=other_tree)
            cluster.kill_worker("a")
            cluster.kill_worker("b")
            ran.update(sweeps.runs)

    with pytest.raises(ClusterError) as caught:
        sweeps.run("s", processes=None, scheduler=cluster.address, on_record=record_ended)
    sentence, _, more = str(caught.value).partition(" Every")
    assert DIFFERS.fullmatch(sentence), str(caught.value)
    assert more == " point that had finished is recorded: go on with --resume."
    assert 1 <= len(sweeps.recorded("s")) < POINTS
    assert sweeps.runs == ran


POISON = """
import os
import signal
import time
from pathlib import Path

def command(pid):
    return Path(f"/proc/{pid}/cmdline").read_text()

def bench(rt, n: int = 1):
    if n == 3:
        pid = os.getppid()
        assert "spawn_main" in command(pid), "only what a nanny has started may be killed"
        os.kill(pid, signal.SIGKILL)
        time.sleep(600)
    rt.tensor((4,), "f32", name="x")
"""


def test_a_point_that_kills_its_worker_is_recorded_as_failed_and_the_others_go_on(
    tmp_path: Path, plugins: Plugins
) -> None:
    """The bench kills what its process descends from; a nanny then starts another worker."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    bench = tmp_path / "poison.py"
    bench.write_text(POISON)
    plan = SweepPlan(bench=str(bench), topology="tiny", axes=(read_axis("n", "param", "1..6:lin:6"),))
    with LoopbackCluster(folder) as cluster:
        cluster.start_scheduler()
        cluster.start_worker("a", nanny=True)
        done = run_planned(planned(plan, plugins), plugins, folder=tmp_path / "s", scheduler=cluster.address)
    assert [record["status"] for record in done.records] == ["ok", "ok", "limit", "ok", "ok", "ok"]
    assert done.records[2]["error"]["sentence"] == (
        "the point was sent to 4 workers, and each ended while running it; run it alone to see why, and give "
        "workers more memory if it needs that."
    )


BARE = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("kernbench"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture
def bare_tree(tmp_path: Path) -> Path:
    """A folder that Python looks into first, and then finds no kernbench."""
    tree = tmp_path / "bare"
    tree.mkdir()
    (tree / "sitecustomize.py").write_text(BARE)
    return tree


def test_a_worker_must_have_kernbench_and_a_scheduler_need_not(sweeps: MarkedSweeps, bare_tree: Path) -> None:
    folder = sweeps.base / "cluster"
    folder.mkdir()
    with LoopbackCluster(folder) as cluster:
        cluster.start_scheduler(tree=bare_tree)
        cluster.start_worker("bare", tree=bare_tree)
        with Client(cluster.address, set_as_default=False) as client:
            client.wait_for_workers(1)
            worker = next(iter(client.nthreads()))
        with pytest.raises(UsageError) as caught:
            sweeps.run("s", processes=None, scheduler=cluster.address)
        assert str(caught.value) == (
            f"worker {worker} must have kernbench {kb.__version__} and be able to evaluate points, but "
            "ModuleNotFoundError: No module named 'kernbench_builtin'; look at its log."
        )
        cluster.kill_worker("bare")
        cluster.start_worker("good")
        sweeps.run("s", processes=None, scheduler=cluster.address)
    assert sweeps.content("s") == sweeps.content("whole")


def test_a_scheduler_without_workers_is_waited_for_and_then_ends_the_sweep(
    sweeps: MarkedSweeps, cluster: LoopbackCluster
) -> None:
    cluster.kill_worker("a")
    cluster.kill_worker("b")
    with pytest.raises(ClusterError) as caught:
        sweeps.run("s", processes=None, scheduler=cluster.address, patience_s=2.0)
    assert str(caught.value) == (
        f"scheduler {cluster.address} has had no worker for 2 s; every point that had finished is recorded: go on with "
        "--resume once it is there, with another --scheduler, or here without one."
    )
    assert not sweeps.runs
