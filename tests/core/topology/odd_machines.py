"""Kinds of machine that a stranger may bring: two ports with a wire each way, and wrong ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve, frozen

from kernbench_builtin.machines.checking import Plan
from kernbench_builtin.machines.packages import PACKAGES
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.plugins import NetworkRegistry
from kernbench_core.topology.configuration import Config
from kernbench_core.topology.design import Machine
from kernbench_core.topology.machine_kinds import MachineKind
from kernbench_core.topology.section_reader import read_section
from kernbench_core.topology.sections import Bandwidth, Count, Latency
from tests.core.small_machine import TEXT
from tests.core.topology.text_config import parse_config


@frozen
class CableSpec:
    """The section `cable`."""

    bandwidth: Bandwidth
    latency: Latency


def read(config: Config, networks: NetworkRegistry) -> CableSpec:
    return read_section(config, "cable", CableSpec)


def place(spec: CableSpec) -> Iterator[Node]:
    return (Node(f"cable.{side}", "port") for side in "ba")


def wire(spec: CableSpec) -> list[Edge]:
    ends = (("cable.a", "cable.b"), ("cable.b", "cable.a"))
    return [Edge(*pair, EdgeKind.PCIE, spec.bandwidth, spec.latency) for pair in ends]


def finish_as_machine(graph: Graph, plan: Any) -> Graph:
    return Machine(graph.nodes, graph.edges, graph.warnings, design=plan)


@frozen
class PodSpec:
    """The section `pod`: so many packages of the small machine."""

    packages: Count


def read_pod(config: Config, networks: NetworkRegistry) -> Plan:
    pod = read_section(config, "pod", PodSpec)
    return PACKAGES.read(parse_config(TEXT, "small.yaml", sets=[f"system.sips={pod.packages}"]), networks)


CABLE = MachineKind("a cable on a desk", ("port",), read, place, wire, section=CableSpec)
POD = evolve(PACKAGES, what="a pod", read=read_pod)
TEXT_INSTEAD = "a text"
UNREAD = evolve(CABLE, read=None)
UNFINISHED = evolve(CABLE, finish=3)
EMPTY = evolve(CABLE, place=lambda spec: [])
PLACED = evolve(CABLE, place=lambda spec: ["cable.a"])
WIRED = evolve(CABLE, wire=lambda spec: [("cable.a", "cable.b")])
STRAY = evolve(CABLE, place=lambda spec: [*place(spec), Node("cable.c", "clip")])
NOTHING = evolve(CABLE, finish=lambda graph, plan: None)
SECRET = evolve(CABLE, finish=finish_as_machine)
BARE_POD = evolve(POD, finish=None)
RAISING = evolve(CABLE, place=lambda spec: spec.length)
LATE = evolve(CABLE, finish=lambda graph, plan: graph.nodes["cable.z"])
WORDS = evolve(CABLE, wire=lambda spec: [evolve(each, bandwidth="3 GB/s") for each in wire(spec)])
