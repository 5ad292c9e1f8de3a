"""A drawing shows every node and every wire of a machine once where it stands, and nothing lies on anything else."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.machines.drawing import MachineDrawing, draw_machine
from kernbench_builtin.machines.drawing.views import Box, Line, View, absolute, relative
from kernbench_core.errors import UsageError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from tests.core.small_machine import machine

SETS = st.builds(
    lambda sips, width, height, pes, network: (
        f"system.sips={sips}",
        f"sip.mesh.width={width}",
        f"sip.mesh.height={height}",
        f"cube.pes={pes}",
        "cube.hbm.capacity=2520 MiB",
        f"system.network.topology={network}",
    ),
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 9),
    st.sampled_from(["ring", "switch", "torus_2d", "mesh_2d", "fully_connected"]),
)


def hand_built(nodes: dict[str, str], links: list[tuple[str, str]]) -> Graph:
    """Return a graph of nodes by kind and of links both ways."""
    both = [*links, *((b, a) for a, b in links)]
    made = [Node(name, kind, f"acme.{kind}") for name, kind in nodes.items()]
    return Graph.of(made, [Edge(a, b, EdgeKind.NOC, 16.0, 1.0) for a, b in dict.fromkeys(both)])


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes share ground."""
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def samples(line: Line) -> list[tuple[float, float]]:
    """Return points along a way, each a fortieth of a stretch further."""
    if line.curved:
        a, m, b = line.points
        return [
            tuple((1 - t) ** 2 * a[i] + 2 * t * (1 - t) * m[i] + t**2 * b[i] for i in (0, 1))  # type: ignore[misc]
            for t in (step / 40 for step in range(41))
        ]
    return [
        (x + (u - x) * step / 40, y + (v - y) * step / 40)
        for (x, y), (u, v) in zip(line.points, line.points[1:], strict=False)
        for step in range(41)
    ]


def faults(view: View) -> list[str]:
    """Return what lies on something else, or outside of the picture."""
    found = [f"{a.id} on {b.id}" for a, b in combinations(view.boxes, 2) if overlap(a, b)]
    for box in view.boxes:
        if box.x < 0 or box.y < 0 or box.x + box.width > view.width or box.y + box.height > view.height:
            found.append(f"{box.id} outside")
    for line in view.lines:
        if any(not (0 < x < view.width and 0 < y < view.height) for x, y in samples(line)):
            found.append(f"{line.source}->{line.destination} outside")
        for box in view.boxes:
            if box.id not in (line.source, line.destination) and any(
                box.x < x < box.x + box.width and box.y < y < box.y + box.height for x, y in samples(line)
            ):
                found.append(f"{line.source}->{line.destination} over {box.id}")
    return found


@settings(max_examples=12)
@given(SETS)
def test_every_node_stands_in_one_view_and_nothing_overlaps(sets: tuple[str, ...]) -> None:
    """Of any machine of packages: each node has one box of its own, inside its part, apart from all others."""
    stands(machine(sets=sets))


def test_nothing_overlaps_in_a_small_machine() -> None:
    """Of two packages of one cube each."""
    stands(machine(sets=("system.sips=2", "sip.mesh.width=2", "sip.mesh.height=1", "cube.pes=4")))


def stands(graph: Graph) -> None:
    drawing = draw_machine(graph)
    own: Counter[str] = Counter()
    for part in drawing.parts:
        for box in drawing.view(part).boxes:
            if not box.outside and not box.opens:
                own[absolute(part, box.id)] += 1
    assert own == Counter(graph.nodes.keys())
    assert [fault for view in drawing.views for fault in faults(view)] == []


@settings(max_examples=6)
@given(SETS)
def test_every_wire_is_drawn_or_told(sets: tuple[str, ...]) -> None:
    """Each edge is on a line of every view in which its ends are two boxes; orders within a cube are counted."""
    graph = machine(sets=sets)
    drawing = draw_machine(graph)
    drawn: dict[str, set[tuple[str, str]]] = {}
    for part in drawing.parts:
        for line in drawing.view(part).lines:
            for source, destination, number in line.wires:
                pair = absolute(part, source), absolute(part, destination)
                drawn.setdefault(part, set()).add(pair)
                assert drawing.wires[number]["bandwidth"] == graph.edges[pair].bandwidth
    for edge in graph.edges.values():
        words = [end.split(".") for end in (edge.src, edge.dst)]
        shared = 0
        while words[0][shared] == words[1][shared]:
            shared += 1
        part = ".".join(words[0][:shared])
        if edge.kind is EdgeKind.COMMAND:
            assert "command wires between m_cpu and the PEs" in drawing.view(part).notes[0]
        else:
            assert (edge.src, edge.dst) in drawn[part]


def test_parts_that_are_alike_share_a_view() -> None:
    """512 PEs are not 512 pictures; ids are spelled out for each."""
    graph = machine(sets=("system.sips=4", "sip.mesh.width=4", "sip.mesh.height=4", "cube.pes=4"))
    drawing = draw_machine(graph)
    assert len(drawing.parts) == 1 + 4 + 4 + 4 * 16 + 4 * 16 * 4
    assert len(drawing.views) < 40
    assert "<title>sip2.cube3.pe1.pe_gemm</title>" in drawing.svg("sip2.cube3.pe1")
    assert 'aria-label="sip2.cube3"' in drawing.svg("sip2.cube3")


def test_a_drawing_survives_its_file() -> None:
    """What is read back from JSON is equal, and a text that is none is refused in a sentence."""
    drawing = draw_machine(machine(), lambda node: {"overhead": "m.yaml:3:1"}, "m")
    again = MachineDrawing.from_json(json.loads(json.dumps(drawing.to_json())))
    assert again == drawing
    assert ["overhead", 5.0, "m.yaml:3:1"] in drawing.models[0]["params"]
    for wrong, sentence in (
        ({"schema": "x"}, "schema must be 'kernbench.machine/1', not 'x'"),
        (
            {"schema": "kernbench.machine/1", "views": [{}]},
            "a drawing must be as a run wrote it, but KeyError: 'lines'",
        ),
        (
            {**drawing.to_json(), "views": [{**drawing.to_json()["views"][0], "width": "1\"><script>"}]},
            "a drawing must be as a run wrote it, but ValueError: could not convert string to float: '1\"><script>'",
        ),
        ({**drawing.to_json(), "parts": {"": 99}}, "a drawing must be as a run wrote it, but ValueError: parts must "
         "have views"),
    ):  # fmt: skip
        with pytest.raises(ValueError) as caught:
            MachineDrawing.from_json(wrong)
        assert str(caught.value) == sentence


def test_hardware_of_any_kind_is_laid_out() -> None:
    """A graph without packages, positions or router names stands in layers; a small one around an ellipse."""
    tree = {f"n{i}": "hub" for i in range(40)}
    links = [(f"n{i}", f"n{(i - 1) // 3}") for i in range(1, 40)]
    drawing = draw_machine(hand_built(tree, links))
    (view,) = drawing.views
    depth = {"n0": 0}
    for child, parent in links:
        depth[child] = depth[parent] + 1
    assert len(view.boxes) == 40
    assert not [fault for fault in faults(view) if "outside" in fault or " on " in fault]
    small = draw_machine(hand_built({"a": "x", "b": "x", "c": "y"}, [("a", "b"), ("b", "c")])).views[0]
    assert faults(small) == []
    assert [box.label for box in draw_machine(hand_built({"lone": "x"}, [])).views[0].boxes] == ["lone"]


def test_hostile_names_stay_text() -> None:
    """Whatever a node is called, the picture is well-formed, and the name stands in it as it is."""
    name = 'a<script>&"\'~]]>'
    drawing = draw_machine(hand_built({name: "x", "~b": "y", "^c": "y"}, [(name, "~b"), ("~b", "^c")]), title="</svg>")
    root = ElementTree.fromstring(drawing.svg())
    titles = {each.text for each in root.iter("{http://www.w3.org/2000/svg}title")}
    assert {name, "~b", "^c", f"{name} to ~b"} <= titles
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


@given(st.lists(st.sampled_from(["sip0", "cube1", "~x", "^", "=", "r0c0"]), min_size=1, max_size=4), st.integers(0, 3))
def test_relative_ids_are_spelled_out_again(words: list[str], depth: int) -> None:
    """`absolute` is the inverse of `relative`, for any part."""
    name = ".".join(words)
    for part in ("", "sip0", "sip0.cube1", ".".join(words[:depth])):
        if part[:1] not in ("~", "^", "="):
            assert absolute(part, relative(part, name)) == name


def test_a_part_that_is_not_there_is_refused() -> None:
    """With the parts that there are."""
    with pytest.raises(UsageError) as caught:
        draw_machine(machine()).view("sip0.cube9")
    assert str(caught.value) == (
        "node must be a part of the machine, such as sip0, sip0.cube0, sip0.cube3.pe3, not 'sip0.cube9'. "
        "Did you mean 'sip0.cube3'?"
    )
