"""Wrong YAML, settings and machines: exit code 3, file:line:column, every problem at once, nothing started."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.errors import RoutingError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.plugins import Plugins
from kernbench_core.topology.routing import PathRouter

MANY = """base: tiny
cube:
  pess: 2
  mesh: {rows: two, columns: 3}
sip:
  ucie: {bandwidth: 12 ns}
components:
  pe_gemm: {impl: builtin.pe_gem, params: {}}
  pe_math: {params: {lane: 4}}
overrides:
  - {match: "sip9.*", impl: builtin.forwarding}
frob: 1
"""
PROBLEMS = {
    "m.yaml:3:3: cube.pess must be a known key. Did you mean 'pes'?",
    "m.yaml:4:10: cube.mesh.rows must be an integer of at least 0 or auto, not 'two'.",
    "m.yaml:6:10: sip.ucie.bandwidth must be a positive bandwidth, not '12 ns'. Did you mean '12 GB/s'?",
    "m.yaml:8:13: components.pe_gemm.impl must be a registered component, not 'builtin.pe_gem'. Did you mean "
    "'builtin.pe_gemm'?",
    "m.yaml:9:22: components.pe_math.params.lane must be a declared parameter. Did you mean 'lanes'?",
    "m.yaml:12:1: frob must be a known key. Known: base, components, cube, host, overrides, pe, sip, system, title.",
}
BOMB = "base: tiny\na0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)
TEXTS = {
    "a duplicate key": (
        "base: tiny\ncube:\n  pes: 2\n  pes: 4\n",
        "m.yaml:4:3: key 'pes' must appear once, but it is also at m.yaml:3:3.",
    ),
    "two duplicate keys, and what else is wrong": (
        "base: tiny\ntitle: a\ntitle: b\ncube:\n  pes: 2\n  pes: 4\n  bogus: 1\n",
        "m.yaml:3:1: key 'title' must appear once, but it is also at m.yaml:2:1.\n"
        "m.yaml:6:3: key 'pes' must appear once, but it is also at m.yaml:5:3.\n"
        "m.yaml:7:3: cube.bogus must be a known key. Known: command, hbm, height, mesh, noc, pes, sram, width.",
    ),
    "an alias bomb": (BOMB, "m.yaml:5:15: aliases must expand to at most 2000 values in one file; write the values "
    "out."),
    "too deep": ("a: " + "[" * 99 + "]" * 99, "m.yaml:1:67: nesting must be at most 64 deep; flatten the file."),
    "far too deep": ("a: " + "[" * 99999, "m.yaml:1:67: nesting must be at most 64 deep; flatten the file."),
    "too large": ("# x\n" * (1 << 20) + "\n", "m.yaml: file must be at most 4 MiB, not 4194305 B; split it with "
    "'base:'."),
    "no text": (b"a: \xff\n", "m.yaml: file must be UTF-8 text, not bytes like b'\\xff'."),
    "no YAML": ("a: [1,\n", "m.yaml:2:1: text must be valid YAML, but did not find expected node content."),
    "no mapping": ("- 1\n", "m.yaml:1:1: configuration must be a mapping, not [1]."),
    "a tag": ("a: !!python/object:os.system x\n", "m.yaml:1:1: value must have no tag, not "
              "'tag:yaml.org,2002:python/object:os.system'; drop it."),
    "a base that is not there": (
        "base: tinny\n", "m.yaml:1:1: base must be a preset or a file, not 'tinny'. Did you mean 'tiny'?"
    ),
    "a base that is itself": ("base: m.yaml\n", "m.yaml: base must not lead back to 'm.yaml'; drop it."),
    "an override that fits nothing": (
        "base: tiny\noverrides:\n  - {match: 'sip9.*', impl: builtin.forwarding}\n",
        "m.yaml:3:6: overrides.0.match must match at least one node id, not 'sip9.*'.",
    ),
}  # fmt: skip
SETTINGS = {
    "foo": "setting must be KEY=VALUE with a dotted key, not 'foo'.",
    "cube.pess=3": "cube.pess must be a known key. Did you mean 'pes'?",
    "cube=3": "cube must be a mapping of keys to values, not 3.",
    "cube.noc.latency=12 GB": "cube.noc.latency must be a positive time, not '12 GB'. Did you mean '12 ns'?",
    "cube.noc.latency=0 ns": "cube.noc.latency must be a positive time, not '0 ns'.",
    "cube.noc.bandwidth=.nan": "cube.noc.bandwidth must be a positive bandwidth, not nan.",
    "system.network.topology=star": "system.network.topology must be one of 'fully_connected', 'mesh_2d', 'ring', "
    "'switch', 'torus_2d', not 'star'.",
    "cube.mesh.rows=1000000": "cube.mesh.rows must be an integer from 1 to 256 or auto, not 1000000.",
    "components.pe_gemm.impl=acme.x": "components.pe_gemm.impl must be a registered component, not 'acme.x'. See "
    "'kernbench components'; --plugin FILE.py, or a package that is installed, adds more.",
    "components.pe_math.params.costs.epx=5": "components.pe_math.params.costs.epx must be an entry of the table. Did "
    "you mean 'exp'?",
    "components.pe_gemm.params.rates.f16=-1": "components.pe_gemm.params.rates.f16 must be a positive number, not -1.",
    "components.pe_gemm.params.servers=0": "components.pe_gemm.params.servers must be an integer from 1 to 1024, "
    "not 0.",
}


def test_all_problems_are_told_at_once(folder: Any) -> None:
    """Unknown keys, component and parameter, a wrong unit, an integer that is none: in one go, by run and validate."""
    folder.write("m.yaml", MANY)
    for args in (("run", "gemm", "--topology", "m.yaml", "--out", "o"), ("topology", "validate", "m.yaml")):
        outcome = folder.call(*args)
        told = outcome.err.splitlines()
        assert set(told) >= PROBLEMS and all(line.startswith("m.yaml:") for line in told)
        assert (outcome.code, outcome.out, outcome.left) == (3, "", frozenset())


@pytest.mark.parametrize("name", TEXTS)
def test_text_that_cannot_be_a_machine_is_one_sentence(folder: Any, name: str) -> None:
    """Each with its place; an overlay is read with the same care."""
    text, sentence = TEXTS[name]
    folder.write("m.yaml", text)
    outcome = folder.call("run", "gemm", "--topology", "m.yaml", "--out", "o")
    assert (outcome.code, outcome.out, outcome.err, outcome.left) == (3, "", f"{sentence}\n", frozenset())
    overlay = folder.call("run", "gemm", "--topology", "tiny", "--components", "m.yaml", "--out", "o")
    assert (overlay.code, overlay.out, overlay.left) == (3, "", frozenset())
    assert overlay.err == f"{sentence}\n"


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_goes_through_the_same_validation(folder: Any, setting: str) -> None:
    """The sentence begins with the option as it was typed."""
    outcome = folder.run("gemm", "--set", setting)
    assert (outcome.code, outcome.out, outcome.err) == (3, "", f"--set {setting}: {SETTINGS[setting]}\n")
    assert outcome.left == frozenset()


def test_a_mesh_too_small_for_its_pes(folder: Any) -> None:
    """How many routers there are, how many are needed, and what to change."""
    folder.write("m.yaml", "base: tiny\ncube:\n  mesh: {rows: 2, columns: 1}\n")
    outcome = folder.call("run", "gemm", "--topology", "m.yaml")
    place, _, sentence = outcome.err.partition(": ")
    assert place == "m.yaml:3:19", "where the user wrote it, not in the preset below"
    assert sentence == (
        "cube.mesh must have a router for each of 4 PEs, but 2 x 1 with 0 under HBM leaves 2; give more rows or "
        "columns, "
        "or a smaller hbm_zone.\n"
    )
    assert (outcome.code, outcome.out) == (3, "")


@pytest.mark.parametrize(
    ("key", "most"),
    [("hbm_ctrl.params.channels", 1024), ("pe_mmu.params.walkers", 4096), ("pe_mmu.params.tlb_entries", 65536),
     ("sram.params.banks", 1024), ("pe_dma.params.servers", 4096)],
)  # fmt: skip
def test_a_count_of_what_is_made_one_by_one_is_bounded(folder: Any, key: str, most: int) -> None:
    """At once, with the bounds, and not after the memory of the host is full."""
    outcome = folder.run("gemm", "--set", f"components.{key}=1000000000")
    told = f"components.{key} must be an integer from 1 to {most}, not 1000000000."
    assert outcome.err == f"--set components.{key}=1000000000: {told}\n"
    assert (outcome.code, outcome.out) == (3, "")


def test_no_path_between_two_nodes_names_both() -> None:
    """From Python, as no configuration compiles to such a graph: exit code 3, both nodes."""
    nodes = [Node(name, "router", "x.y", {}, None, None, None, None) for name in ("a", "b", "c")]
    router = PathRouter(Graph.of(nodes, [Edge("a", "b", EdgeKind.NOC, 1.0, 1.0, 64, 0)]))
    with pytest.raises(RoutingError) as caught:
        router.find_path("a", "c")
    assert str(caught.value) == (
        "c must be reachable from a, but no path joins them (edges of the 'all' view); check system.network and the "
        "mesh."
    )
    assert caught.value.exit_code == 3


def test_json_says_it_too(folder: Any, builtin: Plugins) -> None:
    """With --json stdout holds one object with the sentences, and stderr the same."""
    import json

    outcome = folder.run("gemm", "--json", "--set", "foo", "--set", "bar")
    found = json.loads(outcome.out)
    sentences = [f"--set {name}: setting must be KEY=VALUE with a dotted key, not '{name}'." for name in ("foo", "bar")]
    assert found == {"schema": "kernbench.error/1", "exit_code": 3, "problems": sentences}
    assert (outcome.code, outcome.err) == (3, "".join(f"{sentence}\n" for sentence in sentences))
