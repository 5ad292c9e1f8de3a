"""Compile a configuration to a machine, in named stages; what each does is said by the kind of the machine.

1. `read`: the configuration, typed in kernbench's own units and checked as a whole: the plan;
2. `place`: nodes with kinds, and positions where they have such;
3. `wire`: edges;
4. `implement`: an implementation and resolved parameters for every node, the same for all kinds;
5. `finish`: what else the kind makes of the graph.

A stage reports all its faults together. When the first finds any, the implementations are checked as far as that goes
without a machine, so that one reading of a file tells everything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

from kernbench_core.errors import ConfigError, KernbenchError, UsageError
from kernbench_core.graph import Graph, Node
from kernbench_core.plugins import ComponentRegistry, DefaultsRegistry, MachineRegistry, NetworkRegistry, Plugins
from kernbench_core.process.collection import no_automatic_collection
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.topology.compiled_machines import compiled_once
from kernbench_core.topology.configuration import Config
from kernbench_core.topology.implementations import Implementations
from kernbench_core.topology.machine_kinds import MachineKind, bare_section, built, check_nodes, kind_of, require_alone
from kernbench_core.topology.section_reader import read_choices
from kernbench_core.topology.sections import Choices
from kernbench_core.wording import brief


def compile_topology(config: Config | Mapping[str, Any], plugins: Plugins | None = None) -> Graph:
    """Compile a configuration to a `Machine`, or to `BareHardware` without PEs; the same input gives the same.

    Of the machines that this process compiled last, the very same is given again.

    Args:
        config: what `config.load_config` read; plain data is taken too, without places in messages.
        plugins: have the hardware models that it names, the shapes of networks and the kinds of machine; must be given.

    Raises:
        ConfigError: one sentence for every fault.
        PluginError: a kind of machine breaks its contract, or raised.
        UsageError: the configuration is not read yet, or there are no plug-ins.

    >>> from kernbench_core.runs import configure
    >>> plugins = kb.load_plugins()
    >>> graph = kb.compile_topology(configure(plugins, "tiny", sets=("cube.pes=2",)), plugins)
    >>> [node.id for node in graph.nodes.values() if node.kind == "pe_gemm"]
    ['sip0.cube0.pe0.pe_gemm', 'sip0.cube0.pe1.pe_gemm']
    """
    if not isinstance(plugins, Plugins) or not isinstance(config, Config | Mapping):
        raise UsageError(
            f"compile_topology must be given a configuration that was read, with plug-ins, not {brief(config)}"
            f"{' alone' if plugins is None else ''}; call compile_topology(configure(plugins, 'tiny'), plugins), with "
            "configure of kernbench_core.runs and plugins = kb.load_plugins()."
        )
    loaded = config if isinstance(config, Config) else Config(config, {})
    with no_automatic_collection(), redirect_stdout(sys.stderr):  # what a plug-in prints in the meantime is no result
        registries = (plugins.components, plugins.networks, plugins.machines)
        choosable = (each for each in plugins.registries.values() if isinstance(each, DefaultsRegistry))
        return compiled_once(loaded, (*registries, *choosable), lambda: _compiled(loaded, *registries))


def _compiled(
    loaded: Config, components: ComponentRegistry, networks: NetworkRegistry, registry: MachineRegistry
) -> Graph:
    """Take a configuration through the stages."""
    name, kind = kind_of(loaded, registry)
    section, loaded = bare_section(loaded, name, registry)
    require_alone(loaded, section, registry)
    with _blamed(registry, name):
        try:
            plan = kind.read(loaded, networks)
            if loaded.faults:
                raise ConfigError(*loaded.faults)
        except ConfigError as faults:
            chosen = Implementations(loaded, read_choices(loaded, kind.units), components, kind.node_kinds)
            chosen.check_written()
            raise ConfigError(*dict.fromkeys([*loaded.faults, *faults.problems, *chosen.problems])) from None
        placed, edges = list(kind.place(plan)), list(kind.wire(plan))
        written = read_choices(loaded, kind.units)
        check_nodes(registry, name, kind, placed, written.units)
    nodes, warnings = implement(loaded, kind, written, placed, components)
    with _blamed(registry, name):
        graph = Graph.of(nodes, edges, (*loaded.warnings, *warnings))
        return built(registry, name, kind, graph if kind.finish is None else kind.finish(graph, plan))


@contextmanager
def _blamed(machines: MachineRegistry, name: str) -> Iterator[None]:
    """Make what a kind of machine raises, other than errors that kernbench has words for, its distribution's fault."""
    try:
        yield
    except (KernbenchError, *INTERRUPTS, MemoryError):
        raise
    except BaseException as error:
        raise machines.raised(name, error) from error


def implement(
    config: Config, kind: MachineKind[Any], written: Choices, nodes: Sequence[Node], components: ComponentRegistry
) -> tuple[list[Node], tuple[str, ...]]:
    """Give every node its implementation and resolved parameters; also what is to be told about them.

    Raises:
        ConfigError: one sentence for every unknown implementation, parameter or pattern and every wrong value.
    """
    chosen = Implementations(config, written, components, kind.node_kinds)
    done: list[Node] = []
    for node in nodes:
        impl, params = chosen.of(node.kind, node.id)
        done.append(Node(node.id, node.kind, impl, params, node.sip, node.cube, node.pe, node.position))
    chosen.check(sorted(set(kind.node_kinds) - {node.kind for node in nodes}), [node.id for node in nodes])
    if chosen.problems:
        raise ConfigError(*dict.fromkeys(chosen.problems))
    return done, tuple(dict.fromkeys(chosen.warnings))
