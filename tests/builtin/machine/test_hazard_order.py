"""Random programs on the real machine: their hazards are those of an explicit graph of what comes before what.

The graph is made from the text of the programs alone, and says for all pairs of uses whether one is over before the
other is issued; so the hazards of a run cannot depend on its times, and they do not: other latencies, the same hazards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from attrs import define, field, frozen
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kernbench_core.graph import Graph
from kernbench_core.host.session import GraphEngine
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology

PES, ELEMENTS = 4, 12
#: Machines on which nothing takes as long as on another.
MACHINES = (
    (),
    ("components.pe_cpu.params.dispatch_overhead=400 ns",),
    ("components.pe_dma.params.overhead=3 us", "components.pe_math.params.overhead=1 ns"),
)


@cache
def graph_of(sets: tuple[str, ...]) -> Graph:
    """Compile a machine."""
    plugins = load_plugins()
    return compile_topology(configure(plugins, "tiny", None, sets), plugins)


@frozen
class Step:
    """A line of a program: what it does, on which elements, to or from which PE, which step it waits for."""

    kind: str
    start: int = 0
    size: int = 1
    other: int = 0


@define
class Plan:
    """Launches, one after another: whether the host waits for each, how often its programs loop, and their steps.

    A launch has `turns` programs for each PE; program n runs on PE n % PES.
    """

    waits: list[bool] = field(factory=list)
    loops: list[int] = field(factory=list)
    turns: list[int] = field(factory=list)
    steps: list[list[list[Step]]] = field(factory=list)


KINDS = ("load", "load", "store", "store", "later", "composite", "message", "wait")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw programs that come to their ends: each message is sent before it is received, in one order of all steps."""
    plan = Plan()
    for _ in range(draw(st.integers(1, 3))):
        turns = draw(st.integers(1, 2))
        plan.waits.append(draw(st.booleans()))
        plan.loops.append(draw(st.integers(1, 2)))
        plan.turns.append(turns)
        steps: list[list[Step]] = [[] for _ in range(turns * PES)]
        for turn in range(turns):
            for _ in range(draw(st.integers(0, 9))):
                kind = draw(st.sampled_from(KINDS))
                pe, other = draw(st.permutations(range(PES)))[:2]
                start = draw(st.integers(0, ELEMENTS - 1))
                size = draw(st.integers(1, ELEMENTS - start))
                own = steps[turn * PES + pe]
                if kind == "message":
                    own.append(Step("send", other=other))
                    late = draw(st.booleans())
                    steps[turn * PES + other].append(Step("recv later" if late else "recv", other=pe))
                elif kind == "wait":
                    open_steps = [at for at, step in enumerate(own) if step.kind in LATER]
                    if open_steps:
                        own.append(Step("wait", other=draw(st.sampled_from([-1, *open_steps]))))
                else:
                    own.append(Step(kind, start, size, draw(st.integers(0, ELEMENTS - size))))
        plan.steps.append(steps)
    return plan


LATER = ("later", "composite", "recv later")
CODE = {
    "load": "tl.load(x + {start}, shape=({size},))",
    "store": "tl.store(x + {start}, tl.zeros(({size},), 'f32'))",
    "later": "h{at} = tl.load(x + {start}, shape=({size},), wait=False)",
    "composite": "h{at} = tl.composite('math', tl.ref(x + {start}, (1, {size})), out=x + {other}, math_op='exp')",
    "send": "tl.send(tile, {other})",
    "recv": "tl.recv((1,), 'f32', {other})",
    "recv later": "h{at} = tl.recv((1,), 'f32', {other}, wait=False)",
    "wait": "tl.wait(h{other})",
}


def source_of(plan: Plan) -> tuple[str, dict[tuple[int, int, int], int]]:
    """Write the kernels; say on which line each step of (launch, program, step) is."""
    lines: list[str] = []
    where: dict[tuple[int, int, int], int] = {}
    for launch, programs in enumerate(plan.steps):
        lines += [f"def kernel{launch}(x, tl):", "    me, tile = tl.program_id(0), tl.zeros((1,), 'f32')"]
        lines.append(f"    for _ in range({plan.loops[launch]}):")
        for number, steps in enumerate(programs):
            lines += [f"        if me == {number}:", "            pass"]
            for at, step in enumerate(steps):
                code = CODE[step.kind].format(at=at, start=step.start, size=step.size, other=step.other)
                lines.append(f"            {'tl.wait()' if step.other < 0 else code}")
                where[launch, number, at] = len(lines)
        # one line that all programs are at, on bytes of two of them
        lines.append("        tl.store(x + 12 + me % 2, tile)")
        where[launch, -1, 0] = len(lines)
    return "\n".join(lines), where


def found_by_run(plan: Plan, race_by: str, sets: tuple[str, ...] = ()) -> set[tuple[str, int, int]]:
    """Run it, and give the kind and the two lines of each hazard."""
    source, _ = source_of(plan)
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(source, "generated.py", "exec"), names)

    def bench(rt: Any) -> None:
        x = rt.tensor(np.zeros(ELEMENTS + 2, np.float32), name="x")
        for launch, wait in enumerate(plan.waits):
            rt.launch(names[f"kernel{launch}"], x, grid=(plan.turns[launch] * PES,), wait=wait)

    engine = GraphEngine(graph_of(sets), data=False, log=False, race_by=race_by)
    engine.run(bench)
    found = engine.device.hazards.found()
    pairs = {(h.kind, *sorted(int(side.line.rpartition(":")[2]) for side in (h.first, h.second))) for h in found}
    assert len(pairs) == len(found)
    return pairs  # type: ignore[return-value]


# The oracle ------------------------------------------------------------------------------------------------


def read_and_written(step: Step) -> tuple[set[int], set[int]]:
    """Say which elements a step reads, and which it writes."""
    first, second = (set(range(start, start + step.size)) for start in (step.start, step.other))
    if step.kind == "composite":
        return first, second
    return (first if step.kind in ("load", "later") else set(), first if step.kind == "store" else set())


def conflict(one: Step, two: Step) -> bool:
    """Say whether two steps share an element that one of them writes."""
    (reads, writes), (read, written) = read_and_written(one), read_and_written(two)
    return bool(writes & (read | written) or reads & written)


Node = tuple[Any, ...]


@frozen
class Use:
    """A use: when it is issued, when it is over, by what of which PE, on which line, and which elements."""

    issue: Node
    over: Node
    thread: tuple[int, ...]
    line: int
    writes: bool
    elements: frozenset[int]


class Oracle:
    """Everything that happens in a plan, as a graph; `uses` are those of memory."""

    def __init__(self, plan: Plan, race_by: str) -> None:
        self.graph: nx.DiGraph = nx.DiGraph()
        self.uses: list[Use] = []
        self._plan = plan
        self._by_program = race_by == "program"
        _, self._where = source_of(plan)
        self._sent: dict[tuple[int, ...], list[Node]] = {}
        self._received: dict[tuple[int, ...], list[Node]] = {}
        self._last: dict[int, Node] = {}
        host: Node = ("host",)
        for launch, wait in enumerate(plan.waits):
            ends = [self._pe(launch, pe, host) for pe in range(PES)]
            if wait:
                host = ("joined", launch)
                self.graph.add_edges_from((end, host) for end in ends)
        for key, sends in self._sent.items():
            self.graph.add_edges_from(zip(sends, self._received[key], strict=True))

    def _pe(self, launch: int, pe: int, host: Node) -> Node:
        """Add what a PE does in a launch, after what the host knew and its own earlier launches; give its end."""
        begin, end = ("begin", launch, pe), ("end", launch, pe)
        self.graph.add_edges_from([(host, begin), (self._last.get(pe, host), begin)])
        self._last[pe] = end
        before: Node = begin
        for turn in range(self._plan.turns[launch]):
            last = self._program(launch, turn * PES + pe, before)
            self.graph.add_edge(last, end)
            before = begin if self._by_program else last
        return end

    def _program(self, launch: int, number: int, before: Node) -> Node:
        """Add a program's steps, loop by loop; give the node at which all that it did is over."""
        steps = self._plan.steps[launch][number]
        pe, last = number % PES, ("last", launch, number)
        thread = (pe, launch, number) if self._by_program else (pe,)
        for loop in range(self._plan.loops[launch]):
            nodes = [(launch, number, loop, at) for at in range(len(steps))]
            for at, step in enumerate(steps):
                self.graph.add_edge(before, nodes[at])
                before = nodes[at]
                over = nodes[at] if step.kind not in LATER else self._waits_for(steps, nodes[at]) or last
                self._step(step, nodes[at], over, thread)
            common = (launch, number, loop, "common")
            self.graph.add_edge(before, common)
            before = common
            line = self._where[launch, -1, 0]
            self.uses.append(Use(common, common, thread, line, True, frozenset([ELEMENTS + number % 2])))
        self.graph.add_edge(before, last)
        return last

    def _waits_for(self, steps: list[Step], node: Node) -> Node | None:
        """Give the first step after one that waits for it: as it is told to, or as it comes after it in memory."""
        launch, number, begun, first = node
        one = steps[first]
        for loop in range(begun, self._plan.loops[launch]):
            for at, step in enumerate(steps):
                if loop == begun and at <= first:
                    continue
                told = step.kind == "wait" and (step.other == -1 or (loop == begun and step.other == first))
                if told or conflict(one, step):
                    return (launch, number, loop, at)
        return None

    def _step(self, step: Step, node: Node, over: Node, thread: tuple[int, ...]) -> None:
        launch, number, _, at = node
        pe, turn, line = number % PES, number // PES, self._where[launch, number, at]
        if step.kind == "send":
            self._sent.setdefault((launch, turn, pe, step.other), []).append(node)
        elif step.kind.startswith("recv"):
            self._received.setdefault((launch, turn, step.other, pe), []).append(over)
        for writes, elements in enumerate(read_and_written(step)):
            if elements:
                self.uses.append(Use(node, over, thread, line, bool(writes), frozenset(elements)))

    def hazards(self) -> Iterator[tuple[str, int, int]]:
        """Look at all pairs of uses."""
        after: Mapping[Node, set[Node]] = {node: nx.descendants(self.graph, node) | {node} for node in self.graph}
        for one, two in combinations(self.uses, 2):
            if one.thread == two.thread or not one.elements & two.elements or not (one.writes or two.writes):
                continue
            if two.issue not in after[one.over] and one.issue not in after[two.over]:
                first, second = sorted((one.line, two.line))
                yield ("unordered_writes" if one.writes and two.writes else "unordered_read"), first, second


def handed_on(*between: Step) -> Plan:
    """Load, after some steps, what a composite has written that nobody waits for, and tell a PE, which loads it too."""
    first = [Step("composite"), *between, Step("load"), Step("send", other=1)]
    return Plan([False], [1], [1], [[first, [Step("recv"), Step("load")], [], []]])


@pytest.mark.parametrize("race_by", ["pe", "program"])
@example(plan=handed_on(), other=MACHINES[1])
@example(plan=handed_on(*[Step("load", 1)] * 9), other=MACHINES[2])  # by then it is complete
@example(plan=handed_on(*[Step("later", 1)] * 150), other=MACHINES[1])  # and its program has forgotten it
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(plan=plans(), other=st.sampled_from(MACHINES[1:]))
def test_the_hazards_are_those_of_the_graph_whatever_takes_how_long(
    plan: Plan, other: tuple[str, ...], race_by: str
) -> None:
    """By kind and pair of lines, on the machine as it is and on one of other times."""
    want = set(Oracle(plan, race_by).hazards())
    for sets in (MACHINES[0], other):
        assert found_by_run(plan, race_by, sets) == want
