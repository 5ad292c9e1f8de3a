"""The ledger of who evaluates which point, in every order of events."""

from __future__ import annotations

from typing import Any

from kernbench_core.sweeps.executors.cluster.dispatch import AHEAD, Dispatch


def _job(name: str) -> dict[str, Any]:
    return {"key": name}


def _ledger(tries: int = 3, **threads: int) -> Dispatch:
    ledger = Dispatch("s", tries)
    for worker, count in threads.items():
        ledger.join(worker, count)
    return ledger


def _filled(ledger: Dispatch, *names: str) -> dict[str, str]:
    """Send jobs as long as there is room; return the ticket of each."""
    tickets = {}
    for name in names:
        worker = ledger.free_worker()
        assert worker is not None
        tickets[name] = ledger.send(_job(name), worker)
    return tickets


def test_a_worker_has_a_job_for_each_thread_and_one_ahead() -> None:
    ledger = _ledger(a=2)
    _filled(ledger, *"wxy")
    assert 2 + AHEAD == 3
    assert ledger.free_worker() is None


def test_the_worker_with_the_fewest_jobs_for_its_threads_is_next() -> None:
    ledger = _ledger(a=1, b=3)
    chosen = []
    while (worker := ledger.free_worker()) is not None:
        ledger.send(_job(str(len(chosen))), worker)
        chosen.append(worker)
    assert chosen == ["a", "b", "b", "b", "a", "b"]


def test_nobody_is_asked_where_there_is_no_worker() -> None:
    assert _ledger().free_worker() is None


def test_an_answer_ends_a_job_once() -> None:
    ledger = _ledger(a=1)
    ticket = _filled(ledger, "x")["x"]
    assert ledger.worker_of(ticket) == "a"
    assert ledger.answered(ticket) == _job("x")
    assert ledger.answered(ticket) is None
    assert ledger.worker_of(ticket) is None
    assert ledger.is_idle


def test_a_ticket_names_the_sweep_and_the_point_and_is_used_once() -> None:
    ledger = _ledger(a=1)
    first = ledger.send({"key": "0123456789abcdef"}, "a")
    ledger.leave("a")
    again = ledger.next_waiting()
    assert again is not None
    ledger.join("b", 1)
    assert (first, ledger.send(again, "b")) == ("kernbench-s-0123456789ab-1", "kernbench-s-0123456789ab-2")
    assert ledger.answered(first) is None
    assert not ledger.is_idle


def test_jobs_of_a_worker_that_is_gone_wait_for_another() -> None:
    ledger = _ledger(a=1, b=1)
    tickets = _filled(ledger, *"wxyz")
    gone = [name for name, ticket in tickets.items() if ledger.worker_of(ticket) == "a"]
    assert ledger.leave("a") == []
    assert [ledger.next_waiting(), ledger.next_waiting(), ledger.next_waiting()] == [*map(_job, gone), None]
    assert ledger.workers == {"b"}
    assert ledger.tickets == {ticket for name, ticket in tickets.items() if name not in gone}


def test_a_job_is_given_up_with_the_last_worker_that_it_may_cost() -> None:
    ledger = _ledger(tries=3)
    given_up: list[list[Any]] = []
    for worker in "abc":
        ledger.join(worker, 1)
        ledger.send(ledger.next_waiting() or _job("poison"), worker)
        given_up.append(ledger.leave(worker))
    assert given_up == [[], [], [_job("poison")]]
    assert ledger.is_idle


def test_a_job_that_was_not_begun_costs_no_worker() -> None:
    """A worker of two threads begins its two oldest jobs; the third only waited there."""
    ledger = _ledger(tries=1, a=2)
    for name in "xyz":
        ledger.send(_job(name), "a")
    assert ledger.leave("a") == [_job("x"), _job("y")]
    assert ledger.next_waiting() == _job("z")


def test_no_job_is_to_blame_for_a_connection_that_is_lost() -> None:
    ledger = _ledger(tries=1, a=1, b=1)
    tickets = _filled(ledger, *"xy")
    ledger.leave_all()
    assert not ledger.workers
    assert not ledger.tickets
    assert ledger.answered(tickets["x"]) is None
    assert [ledger.next_waiting(), ledger.next_waiting(), ledger.next_waiting()] == [_job("x"), _job("y"), None]


def test_a_job_whose_process_ended_is_tried_again_so_often() -> None:
    ledger = _ledger(tries=2, a=1)
    assert ledger.failed(ledger.send(_job("x"), "a")) is None
    assert ledger.next_waiting() == _job("x")
    assert ledger.failed(ledger.send(_job("x"), "a")) == _job("x")
    assert ledger.failed("kernbench-s-x-99") is None
    assert ledger.is_idle
