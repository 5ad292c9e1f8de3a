"""Kinds of machine: which of them a configuration describes, and what each says of itself.

A kind owns one section at the top of a configuration, under whose name it is registered, and maybe further ones, which
its entry names. All come from plug-ins.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from attrs import evolve, field, frozen

from kernbench_core.errors import ConfigError, PluginError, UnknownName
from kernbench_core.graph import Edge, Graph, Node
from kernbench_core.plugins import MachineRegistry, NetworkRegistry
from kernbench_core.topology.configuration import Config, KeyPath, Layering, by_key
from kernbench_core.topology.design import BareHardware, Machine
from kernbench_core.topology.sections import ComponentSpec

P = TypeVar("P")

DEFAULT: Final = "system"
"""The section of the kind that a configuration describes that has the section of no other."""
SHARED: Final = ("title", "components", "overrides")
"""Sections that every kind of machine has."""


@frozen
class MachineKind(Generic[P]):
    """One kind of machine: what it is in words, its kinds of node, and the stages from configuration to graph.

    `read(config, networks)` returns a plan, of any type; it raises `ConfigError` with a sentence for every fault.
    `place(plan)` returns the nodes, without implementations, `wire(plan)` the edges. `finish(graph, plan)` may make
    more of the graph than `BareHardware`; where the kind `runs_kernels`, it makes a `Machine`. `instead` says what to
    do with a machine that runs none, as "drive it with 'kernbench probe --traffic'". `section` is the attrs class that
    `read` reads the section as: its JSON Schema is made from it, and without one has no keys of the section.
    `units` is the key path below which a configuration names further kinds of node, and the class of what it says of
    each: the component that serves it, and whatever `read` makes of the rest. `layering` has the key paths of sections
    that are not laid key by key over those of a file below.
    """

    what: str
    node_kinds: tuple[str, ...]
    read: Callable[[Config, NetworkRegistry], P]
    place: Callable[[P], Iterable[Node]]
    wire: Callable[[P], Iterable[Edge]]
    finish: Callable[[Graph, P], Graph] | None = None
    runs_kernels: bool = False
    instead: str = ""
    section: type[Any] | None = None
    units: tuple[KeyPath, type[ComponentSpec]] | None = None
    layering: Mapping[KeyPath, Layering] = field(factory=dict)


def kind_of(config: Config, machines: MachineRegistry) -> tuple[str, MachineKind[Any]]:
    """Return the kind of machine that a configuration describes, with its section: `DEFAULT`, where it has no other.

    Raises:
        ConfigError: no plug-in that is loaded has a kind of such a section.
        PluginError: the kind cannot be loaded, or is none.
    """
    sections = sorted(str(key) for key in config.data if key != DEFAULT)
    name = next((section for section in sections if machines.owner(section) == section), DEFAULT)
    try:
        return name, open_kind(machines, name)
    except UnknownName:
        raise ConfigError(*config.faults, _nobody_has(config, machines)) from None


def _nobody_has(config: Config, machines: MachineRegistry) -> str:
    """Say that a configuration is of no kind of machine that is loaded."""
    strange = [str(key) for key in config.data if key not in SHARED]
    section = next((key for key in strange if key == DEFAULT), strange[0] if strange else DEFAULT)
    return (
        f"{config.at((section,))} must be the section of a kind of machine, and no plug-in that is loaded has such a "
        f"kind; load one that has it, or choose another --topology.{machines.left_out}"
    )


def layering_of(machines: MachineRegistry) -> Callable[[KeyPath], Layering]:
    """Return what says how a section is laid over another, as the kind of machine does whose it is.

    A kind is loaded when a section of it is asked for; one that cannot be used says so when it is compiled.
    """

    @functools.cache
    def of_kind(section: str | int) -> Mapping[KeyPath, Layering]:
        owner = machines.owner(str(section))
        try:
            return {} if owner is None else open_kind(machines, owner).layering
        except PluginError:
            return {}

    def layering(path: KeyPath) -> Layering:
        return of_kind(path[0]).get(path) or by_key(path) if len(path) > 1 else by_key(path)

    return layering


def bare_section(config: Config, name: str, machines: MachineRegistry) -> tuple[str, Config]:
    """Return the section of a kind by the name that it is registered by, and the configuration with that name.

    A configuration may write `VENDOR:name`; what reads the section, and keys of it, knows the name alone.
    """
    bare = machines[name].name
    if bare == name or bare in config.data:
        return name, config

    def renamed(path: KeyPath) -> KeyPath:
        return (bare, *path[1:]) if path[:1] == (name,) else path

    data = {bare if key == name else key: value for key, value in config.data.items()}
    places = {renamed(path): place for path, place in config.places.items()}
    inherited, replaced = (frozenset(map(renamed, paths)) for paths in (config.inherited, config.replaced))
    return bare, evolve(config, data=data, places=places, inherited=inherited, replaced=replaced)


def open_kind(machines: MachineRegistry, name: str) -> MachineKind[Any]:
    """Return the kind of machine of a name; raise PluginError where it cannot be loaded, or is none."""
    kind = machines.load(name)
    if not isinstance(kind, MachineKind):
        raise machines.fault(name, f"must be a MachineKind of kernbench_core.topology, not {kind!r}")
    return kind


def require_alone(config: Config, name: str, machines: MachineRegistry) -> None:
    """Raise ConfigError where a configuration has the section of a kind, and those of another kind of machine."""
    kinds = sorted(machines, key=lambda each: each != DEFAULT)
    sections = (section for each in kinds for section in (each, *machines[each].sections))
    others = [other for other in sections if other in config.data and other != name]
    if name != DEFAULT and others:
        raise ConfigError(
            *config.faults,
            f"{config.at((name,))} must be the only machine, not beside {', '.join(dict.fromkeys(others))}; drop them, "
            f"and a 'base' that adds them, or drop {name}.",
        )


def require_kernels(config: Config, machines: MachineRegistry, doing: str) -> None:
    """Raise ConfigError where a configuration describes a machine without PEs, for `doing` "run a bench" on it."""
    name, kind = kind_of(config, machines)
    if not kind.runs_kernels:
        instead = f"{kind.instead}, or " if kind.instead else ""
        raise ConfigError(
            f"{config.at((name,))} is {kind.what}, which has no PEs to {doing} on; {instead}choose another --topology."
        )


def check_nodes(
    machines: MachineRegistry, name: str, kind: MachineKind[Any], nodes: Collection[Node], more: Iterable[str]
) -> None:
    """Raise PluginError where a kind places what it must not; `more` are kinds of node of a configuration."""
    if not nodes:
        raise machines.fault(name, "must place at least one node, not none")
    unknown = {node.kind for node in nodes} - {*kind.node_kinds, *more}
    if unknown:
        raise machines.fault(name, f"must place nodes of its node_kinds only, not of {', '.join(sorted(unknown))}")


def built(machines: MachineRegistry, name: str, kind: MachineKind[Any], graph: object) -> Graph:
    """Return what a kind made of a graph: a machine where it runs kernels, and else bare hardware, told what it is.

    Raises:
        PluginError: it made something else.
    """
    if not isinstance(graph, Graph) or isinstance(graph, Machine) != kind.runs_kernels:
        must = "a Machine" if kind.runs_kernels else "a graph without a design, as it runs no kernels"
        raise machines.fault(name, f"must finish {must}, not {type(graph).__name__}")
    if kind.runs_kernels:
        return graph
    bed = graph if isinstance(graph, BareHardware) else BareHardware(graph.nodes, graph.edges, graph.warnings)
    return evolve(bed, what=kind.what, instead=kind.instead)
