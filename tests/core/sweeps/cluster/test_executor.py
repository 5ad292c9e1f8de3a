"""Points on a cluster that workers join and leave, and whose scheduler comes and goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.errors import UsageError
from kernbench_core.sweeps.executors.cluster.connection import PointAnswer
from kernbench_core.sweeps.executors.cluster.executor import ClusterError
from tests.core.sweeps.cluster.fake_cluster import ADDRESS, SAME, FakeCluster


def _jobs(count: int) -> list[dict[str, Any]]:
    return [{"key": f"{number:03}", "index": number, "values": {}, "objectives": []} for number in range(count)]


def _keys(records: list[dict[str, Any]]) -> list[str]:
    return sorted(record["key"] for record in records)


ALL = [f"{number:03}" for number in range(12)]


def test_every_point_is_recorded_once() -> None:
    cluster = FakeCluster()
    assert _keys(list(cluster.executor().run(_jobs(12)))) == ALL
    assert sorted(cluster.evaluated) == ALL
    assert cluster.prepared == ["a", "b"]
    assert cluster.told == []


def test_jobs_are_taken_when_there_is_room_for_them() -> None:
    """Two workers of one thread have two each; whoever chooses points sees what came of the first ones."""
    cluster = FakeCluster()
    records: list[Any] = []

    def jobs() -> Any:
        for job in _jobs(12):
            assert int(job["key"]) - len(records) <= 4
            yield job

    for record in cluster.executor().run(jobs()):
        records.append(record)
    assert len(records) == 12


def test_a_worker_that_ends_costs_no_point() -> None:
    cluster = FakeCluster()
    cluster.steps.extend([lambda: None, lambda: cluster.lose_worker("a")])
    assert _keys(list(cluster.executor().run(_jobs(12)))) == ALL
    assert sorted(cluster.evaluated) == ALL


def test_a_worker_that_joins_is_sent_points() -> None:
    cluster = FakeCluster({"a": 1})
    cluster.steps.append(lambda: cluster.threads.update(c=4))
    assert _keys(list(cluster.executor().run(_jobs(12)))) == ALL
    assert cluster.prepared == ["a", "c"]


def test_all_workers_may_end_when_others_join() -> None:
    cluster = FakeCluster({"a": 1})
    cluster.steps.extend([lambda: None, lambda: cluster.lose_worker("a"), *[lambda: None] * 9])
    cluster.steps.append(lambda: cluster.threads.update(c=1))
    assert _keys(list(cluster.executor().run(_jobs(12)))) == ALL


def test_a_scheduler_that_starts_again_costs_no_point() -> None:
    cluster = FakeCluster()
    cluster.steps.extend(
        [lambda: None, cluster.lose_scheduler, *[lambda: None] * 5, lambda: cluster.start_scheduler(d=2)]
    )
    records = list(cluster.executor().run(_jobs(12)))
    assert _keys(records) == ALL
    assert cluster.told == [
        f"scheduler {ADDRESS} does not answer any more; waiting up to 60 s for it to come back.",
        f"scheduler {ADDRESS} is back; going on.",
    ]


def test_a_scheduler_that_stays_away_ends_the_sweep_behind_what_had_finished() -> None:
    cluster = FakeCluster()
    cluster.steps.extend([lambda: None, lambda: None, cluster.lose_scheduler])
    records = []
    with pytest.raises(ClusterError) as caught:
        for record in cluster.executor(patience_s=20).run(_jobs(12)):
            records.append(record)
    assert str(caught.value) == (
        f"scheduler {ADDRESS} has not come back for 20 s; every point that had finished is recorded: go on with "
        "--resume once it is there, with another --scheduler, or here without one."
    )
    assert _keys(records) == sorted(cluster.evaluated) == ALL[:4]
    assert 20 < cluster.now_s < 25


def test_a_scheduler_without_workers_ends_the_sweep() -> None:
    cluster = FakeCluster({})
    with pytest.raises(ClusterError) as caught:
        list(cluster.executor(patience_s=20).run(_jobs(1)))
    assert str(caught.value) == (
        f"scheduler {ADDRESS} has had no worker that can be used for 20 s; every point that had finished is recorded: "
        "go on with --resume once it is there, with another --scheduler, or here without one."
    )


def test_a_scheduler_that_does_not_answer_is_refused_at_once() -> None:
    cluster = FakeCluster(is_up=False)
    with pytest.raises(UsageError) as caught:
        list(cluster.executor().run(_jobs(1)))
    assert str(caught.value) == (
        f"scheduler {ADDRESS} must answer, and does not; start it with `dask scheduler`, and look whether its port can "
        "be reached from here."
    )


def test_a_scheduler_without_kernbench_is_refused() -> None:
    cluster = FakeCluster(scheduler_fault="No module named 'kernbench_core'")
    with pytest.raises(UsageError) as caught:
        list(cluster.executor().run(_jobs(1)))
    assert str(caught.value) == (
        f"scheduler {ADDRESS} must have kernbench installed, too: No module named 'kernbench_core'."
    )


def test_workers_with_something_else_are_refused_before_any_point() -> None:
    cluster = FakeCluster({"a": 1, "b": 1, "c": 1}, {"a": {**SAME, "kernbench": "2"}, "c": {**SAME, "kernbench": "3"}})
    with pytest.raises(UsageError) as caught:
        list(cluster.executor().run(_jobs(1)))
    assert str(caught.value).splitlines() == [
        "worker a must have kernbench 1, as is here, not 2; install it there.",
        "worker c must have kernbench 1, as is here, not 3; install it there.",
    ]
    assert not cluster.sent
    assert not cluster.evaluated


def test_a_worker_with_something_else_that_joins_later_is_sent_nothing() -> None:
    cluster = FakeCluster({"a": 1}, {"late": {**SAME, "kernbench": "2"}})
    cluster.steps.extend(
        [lambda: cluster.threads.update(late=8), *[lambda: None] * 3, lambda: cluster.lose_worker("late")]
    )
    cluster.steps.append(lambda: cluster.threads.update(late=8))
    assert _keys(list(cluster.executor().run(_jobs(12)))) == ALL
    sentence = "worker late must have kernbench 1, as is here, not 2; install it there. It is sent no points."
    assert cluster.told == [sentence, sentence]  # once each time that it joins


def test_a_worker_that_ends_while_it_gets_ready_is_not_missed() -> None:
    cluster = FakeCluster({"a": 1, "b": 1}, {"b": OSError("it is gone")}, losing="b")
    assert _keys(list(cluster.executor().run(_jobs(12)))) == ALL
    assert cluster.told == []


def test_a_worker_that_cannot_get_ready_is_refused() -> None:
    cluster = FakeCluster({"a": 1, "b": 1}, {"b": OSError(28, "No space left on device")})
    with pytest.raises(UsageError) as caught:
        list(cluster.executor().run(_jobs(12)))
    assert str(caught.value) == (
        "worker b must be able to begin a sweep, and that failed with OSError: [Errno 28] No space left on device; "
        "look at its log."
    )


def test_a_point_that_ends_its_worker_each_time_is_recorded_as_failed() -> None:
    cluster = FakeCluster({"a": 1}, poison={"003"})

    def another() -> None:
        if not cluster.threads:
            cluster.threads[f"w{cluster.now_s}"] = 1

    cluster.steps.extend([another] * 100)
    records = list(cluster.executor().run(_jobs(12)))
    assert _keys(records) == ALL
    failed = [record for record in records if record["status"] != "ok"]
    assert [(record["key"], record["status"]) for record in failed] == [("003", "limit")]
    assert failed[0]["error"]["sentence"] == (
        "the point was sent to 3 workers, each of which ended while it was evaluated; run it alone to see why, and "
        "give workers more memory if it needs that."
    )


def test_a_fault_that_no_point_can_pass_ends_the_sweep_behind_the_answers_that_came_with_it() -> None:
    cluster = FakeCluster({"a": 2})
    cluster.steps.append(lambda: None)
    records = []

    def break_it() -> None:
        ticket = list(cluster.sent)[-1]
        del cluster.sent[ticket]
        cluster.answers.append(PointAnswer(ticket, fault="ValueError: no"))

    cluster.steps.append(break_it)
    with pytest.raises(ClusterError) as caught:
        for record in cluster.executor().run(_jobs(12)):
            records.append(record)
    assert str(caught.value) == (
        "worker a cannot evaluate points: ValueError: no; look at its log. Every point that had finished is recorded: "
        "go on with --resume."
    )


def test_points_may_come_in_several_parts() -> None:
    """As in a search: the cluster is looked at again, and its patience begins again, but it is not refused any more."""
    cluster = FakeCluster()
    executor = cluster.executor(patience_s=20)
    assert _keys(list(executor.run(_jobs(6)))) == ALL[:6]
    cluster.lose_scheduler()
    cluster.now_s += 1000
    cluster.steps.extend([lambda: None, lambda: cluster.start_scheduler(d=1)])
    assert _keys(list(executor.run(_jobs(12)[6:]))) == ALL[6:]
    assert cluster.prepared == ["a", "b", "d"]


def test_what_a_worker_evaluates_ends_with_the_sweep() -> None:
    cluster = FakeCluster()
    with cluster.executor() as executor:
        coming = executor.run(_jobs(12))
        next(coming)
        assert cluster.ended == []
    assert cluster.ended == ["s", "closed"]


Steps = list[tuple[str, str]]
STEPS = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "down", "up", "wait"]), st.sampled_from("abcd")), max_size=40
)


def _step(cluster: FakeCluster, what: str, who: str) -> Callable[[], None]:
    def happen() -> None:
        if what == "join" and cluster.is_up:
            cluster.threads[who] = 1 + "abcd".index(who)
        elif what == "leave":
            cluster.lose_worker(who)
        elif what == "down":
            cluster.lose_scheduler()
        elif what == "up":
            cluster.start_scheduler()

    return happen


@given(STEPS, st.integers(0, 30))
@settings(max_examples=100)
def test_whatever_happens_every_point_is_recorded_once(steps: Steps, count: int) -> None:
    """The patience is endless, and in the end there is a worker that stays."""
    cluster = FakeCluster()
    cluster.steps.extend(_step(cluster, *step) for step in steps)
    cluster.steps.append(lambda: cluster.start_scheduler(z=2))
    executor = cluster.executor(patience_s=1e9)
    records = list(executor.run(_jobs(count)))
    assert _keys(records) == [f"{number:03}" for number in range(count)]
    assert max(Counter(cluster.evaluated).values(), default=1) <= 1 + sum(
        what in ("down", "leave") for what, _ in steps
    )
