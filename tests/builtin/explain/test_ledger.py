"""The ledger by class, and the places where messages queue."""

from __future__ import annotations

import pytest

from kernbench_builtin.explain.ledger import PARTS, Ledger, LedgerRow, QueueingPlace, queueing_places
from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.graph import Graph, Node
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.testing import line


class Forward(ComponentBase):
    """Pass on at once."""


class Serve(ComponentBase):
    """Serve one message at a time, for 4 ns."""

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        yield env.timeout(4.0)

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """End here."""
        msg.head, msg.tail = head, tail


class Classes:
    """Look the two up."""

    def load(self, name: str) -> type[ComponentBase]:
        return {"forward": Forward, "serve": Serve}[name]


def machine() -> Hardware:
    """Return a -> b -> c: 10 B/ns and 1 ns, then 4 B/ns and 2 ns; c serves."""
    nodes = [Node("a", "forward", "forward"), Node("b", "forward", "forward"), Node("c", "serve", "serve")]
    edges = [*line("a", "b", bandwidth=10.0, latency=1.0), *line("b", "c", bandwidth=4.0, latency=2.0)]
    hardware = Hardware(Environment(), Graph.of(nodes, edges))
    hardware.build(Classes())
    return hardware


def send(hardware: Hardware, number: int, nbytes: int = 40) -> list[MsgBase]:
    """Send `number` messages from a to c at once and run."""
    sent = [MsgBase(nbytes, ("a", "b", "c")) for _ in range(number)]
    for msg in sent:
        hardware.env.inject(msg, hardware.components["a"].arrive)
    while hardware.env.advance(1000):
        pass
    return sent


def test_places_have_every_wait_once() -> None:
    """What places add up is what the messages queued; a lone message queues nowhere."""
    hardware = machine()
    assert sum(msg.queueing for msg in send(hardware, 1)) == 0
    assert queueing_places(hardware) == ()
    sent = send(hardware, 4)
    places = queueing_places(hardware)
    assert sum(place.total_ns for place in places) == sum(msg.queueing for msg in sent)
    assert [place.total_ns for place in places] == sorted((place.total_ns for place in places), reverse=True)


def test_waits_are_those_of_the_formulas() -> None:
    """Four messages of 40 B: each waits on the first wire for those before it, then on the slower one."""
    hardware = machine()
    send(hardware, 4)
    places = {place.place: place for place in queueing_places(hardware)}
    # tails leave a->b 4 ns apart and are stretched to 10 ns on b->c: 4, 8 and 12 ns, then 6, 12 and 18 ns
    assert places["a->b"] == QueueingPlace("a->b", "pe wire", 3, 24.0, 8.0, 12.0)
    assert places["b->c"] == QueueingPlace("b->c", "pe wire", 3, 36.0, 12.0, 18.0)
    assert set(places) == {"a->b", "b->c"}


def test_a_server_counts_who_waits_for_it() -> None:
    """Small messages arrive faster than they are served."""
    hardware = machine()
    send(hardware, 3, nbytes=4)
    places = {place.place: place for place in queueing_places(hardware)}
    # arrivals 1 ns apart, service of 4 ns: 3 and 6 ns
    assert (places["c"].kind, places["c"].waits, places["c"].total_ns, places["c"].longest_ns) == ("serve", 2, 9.0, 6.0)


@pytest.mark.parametrize(
    ("path", "op", "expected"),
    [
        (("c", "b", "a"), "read", ("kernel", "forward reads serve")),
        (("c", "b", "a"), "write", ("kernel", "forward writes serve")),
    ],
)
def test_transactions_are_classed_by_both_ends(path: tuple[str, ...], op: str, expected: tuple[str, str]) -> None:
    """An answered transaction has its path reversed: it names who asked and who answered."""
    ledger = Ledger(machine())
    msg = Transaction(op, (), 0, path, lambda _: None)
    msg.born, msg.tail, msg.propagation = 1.0, 4.5, 3.5
    ledger.add(msg)
    ledger.add(msg)
    (row,) = ledger.rows(["kernel"])
    assert (row.phase, row.what, row.messages, row.total_ns) == (*expected, 2, 7.0)
    assert {part: getattr(row, part) for part in PARTS} == {**dict.fromkeys(PARTS, 0.0), "propagation": 7.0}


def test_time_that_no_part_explains_is_told() -> None:
    """A model that adds time without saying to which part leaves a rest."""
    row = LedgerRow("kernel", "x", 1, 10.0, 1.0, 2.0, 3.0, 0.5, 0.25)
    assert row.unaccounted_ns == 3.25
