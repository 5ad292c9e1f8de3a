"""A kind of machine of a stranger is compiled in the stages of core, and blamed where it breaks the contract."""

from __future__ import annotations

import pytest

from kernbench_builtin.machines.cli.topology_view import show
from kernbench_core.errors import ConfigError, PluginError
from kernbench_core.graph import Graph
from kernbench_core.plugins import MachineEntry, MachineRegistry, PluginFailure, Provider
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.design import BareHardware, design_of
from kernbench_core.topology.machine_kinds import kind_of, require_kernels
from tests.core.mesh_rig import HOPS, mesh_text
from tests.core.offered import KINDS, offered
from tests.core.small_machine import TEXT, Catalogue, machine
from tests.core.topology import odd_machines
from tests.core.topology.text_config import parse_config

ACME = Provider("acme", "acme-beds", "1.2")
LEFT_OUT = " It may belong to a plug-in that was left out: 'acme' (acme-beds 1.2)."
CABLE = """\
cable: {bandwidth: 8 GB/s, latency: 3 ns}
components:
  port: {impl: test.hop, params: {overhead: 5 ns}}
overrides:
  - {match: cable.b, params: {overhead: 7 ns}}
"""


def registry(target: str = "CABLE", name: str = "cable") -> MachineRegistry:
    own = MachineEntry(name, f"{odd_machines.__name__}:{target}", "A cable.")
    return MachineRegistry(entries=[*KINDS, (own, ACME)])


def compiled(text: str = CABLE, *sets: str, machines: MachineRegistry | None = None) -> Graph:
    return compile_topology(parse_config(text, "m.yaml", sets=sets), offered(HOPS, machines=machines or registry()))


def test_its_nodes_get_their_models_and_parameters_and_its_wires_are_there() -> None:
    graph = compiled()
    assert isinstance(graph, BareHardware)
    assert {node.id: (node.impl, node.params["overhead"]) for node in graph.nodes.values()} == {
        "cable.a": ("test.hop", 5.0), "cable.b": ("test.hop", 7.0),
    }  # fmt: skip
    assert list(graph.nodes) == ["cable.a", "cable.b"]
    assert {pair: (edge.bandwidth, edge.latency) for pair, edge in graph.edges.items()} == {
        ("cable.a", "cable.b"): (8.0, 3.0), ("cable.b", "cable.a"): (8.0, 3.0),
    }  # fmt: skip


def test_it_is_drawn_by_what_it_is() -> None:
    assert show(compiled()).splitlines() == [
        "machine   a cable on a desk",
        "",
        "nodes     2",
        "     2 port       test.hop",
        "",
        "edges     2, one way each",
        "     2 pcie       8 GB/s                 3 ns",
    ]


def test_all_its_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        compiled(CABLE, "cable.latency=0 ns", "cable.lenght=1", "components.prot.impl=test.hop",
                 "components.port.params.overheat=1 ns")  # fmt: skip
    assert caught.value.problems == (
        "--set cable.latency=0 ns: cable.latency must be a positive time, not '0 ns'.",
        "--set cable.lenght=1: cable.lenght must be a known key. Known: bandwidth, latency.",
        "--set components.prot.impl=test.hop: components.prot must be a kind of node. Did you mean 'port'?",
        "--set components.port.params.overheat=1 ns: components.port.params.overheat must be a declared parameter. Did "
        "you mean 'overhead'?",
    )


def test_what_needs_pes_refuses_it_with_what_its_kind_says() -> None:
    """Without a word of what to do instead there is none; before it is compiled, and after."""
    with pytest.raises(ConfigError) as caught:
        require_kernels(parse_config(CABLE, "m.yaml", sets=["cable.latency=0 ns"]), registry(), "run a bench")
    assert str(caught.value) == (
        "m.yaml:1:1: cable is a cable on a desk, which has no PEs to run a bench on; choose another --topology."
    )
    with pytest.raises(ConfigError) as after:
        design_of(compiled())
    assert str(after.value) == (
        "topology must be a machine with PEs and memories for this, not a cable on a desk; choose another --topology."
    )
    require_kernels(parse_config(TEXT, "m.yaml"), registry(), "run a bench")


def test_the_kinds_of_core_are_found_beside_it() -> None:
    assert sorted(registry()) == ["cable", "mesh", "system"]
    assert compiled(mesh_text()) == compile_topology(parse_config(mesh_text(), "m.yaml"), offered(HOPS))
    assert type(compiled(mesh_text())).__name__ == "Mesh"


@pytest.mark.parametrize(
    ("kind", "must"),
    [
        ("TEXT_INSTEAD", "must be a MachineKind of kernbench_core.topology, not 'a text'"),
        ("EMPTY", "must place at least one node, not none"),
        ("STRAY", "must place nodes of its node_kinds only, not of clip"),
        ("NOTHING", "must finish a graph without a design, as it runs no kernels, not NoneType"),
        ("SECRET", "must finish a graph without a design, as it runs no kernels, not Machine"),
    ],
)
def test_a_kind_that_breaks_the_contract_is_told_with_its_distribution(kind: str, must: str) -> None:
    with pytest.raises(PluginError) as caught:
        compiled(machines=registry(kind))
    assert str(caught.value) == f"machine 'cable' of acme-beds 1.2 {must}; repair or reinstall acme-beds."


@pytest.mark.parametrize(
    ("kind", "raised"),
    [
        ("UNREAD", "TypeError: 'NoneType' object is not callable"),
        ("UNFINISHED", "TypeError: 'int' object is not callable"),
        ("PLACED", "AttributeError: 'str' object has no attribute 'kind'"),
        ("WIRED", "AttributeError: 'tuple' object has no attribute 'src'"),
        ("RAISING", "AttributeError: 'CableSpec' object has no attribute 'length'"),
        ("LATE", "KeyError: 'cable.z'"),
        ("WORDS", "TypeError: '>' not supported between instances of 'str' and 'int'"),
    ],
)
def test_what_a_kind_raises_is_the_fault_of_its_distribution(kind: str, raised: str) -> None:
    with pytest.raises(PluginError) as caught:
        compiled(machines=registry(kind))
    told = f"machine 'cable' of acme-beds 1.2 raised {raised}; repair or reinstall acme-beds."
    assert str(caught.value).splitlines()[0] == told


def test_a_section_is_that_of_the_kind_which_owns_it() -> None:
    pod = MachineEntry("pod", f"{odd_machines.__name__}:POD", "A pod.", ("lid", "box"))
    found = MachineRegistry(entries=[(pod, ACME)])
    assert [found.owner(section) for section in ("pod", "lid", "box", "frob")] == ["pod", "pod", "pod", None]
    assert kind_of(parse_config("lid: {}\npod: {packages: 1}\n"), found)[0] == "pod"


def test_a_configuration_of_no_kind_that_is_loaded_names_its_section() -> None:
    """And who may have had it."""
    told = (
        "must be the section of a kind of machine, and no plug-in that is loaded has such a kind; load one that has "
        "it, or choose another --topology."
    )
    for text, failures, end in (
        ("title: x\nfrob: {}\n", (), ""),
        ("frob: {}\nsystem: {}\n", (PluginFailure(ACME, "--no-plugin names it"),), LEFT_OUT),
        ("title: x\n", (), ""),
    ):
        nobody = MachineRegistry(failures=failures)
        with pytest.raises(ConfigError) as caught:
            kind_of(parse_config(text, "m.yaml"), nobody)
        place = {"t": "m.yaml:2:1: frob", "f": "m.yaml:2:1: system"}[text[0]] if "frob" in text else "m.yaml: system"
        assert caught.value.problems == (f"{place} {told}{end}",)


@pytest.mark.parametrize("name", ["components", "title", "class", "Cable", "a-b", ""])
def test_a_name_that_cannot_be_a_section_of_its_own_is_refused(name: str) -> None:
    with pytest.raises(PluginError) as caught:
        MachineEntry(name, "acme:KIND", "A cable.").check(ACME)
    assert str(caught.value) == (
        f"plug-in {ACME.plugin!r} (acme-beds 1.2) must name its machines as a section of a configuration, in "
        "lower-case letters, digits and '_', and none of base, components, overrides, title, not "
        f"{name!r}; rename it."
    )


def pod(kind: str) -> Graph:
    text = "pod: {packages: 3}\n" + TEXT[TEXT.index("components:") :]
    return compile_topology(parse_config(text, "pod.yaml"), offered(Catalogue(), machines=registry(kind, "pod")))


def test_a_kind_that_runs_kernels_makes_a_machine() -> None:
    """One that reads another section, and else does as core does, makes the machine that core does."""
    assert pod("POD") == machine(sets=["system.sips=3"])
    require_kernels(parse_config("pod: {packages: 3}", "pod.yaml"), registry("POD", "pod"), "run a bench")
    with pytest.raises(PluginError) as caught:
        pod("BARE_POD")
    assert str(caught.value) == (
        "machine 'pod' of acme-beds 1.2 must finish a Machine, not Graph; repair or reinstall acme-beds."
    )
