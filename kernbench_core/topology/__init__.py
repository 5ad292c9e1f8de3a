"""From configuration to a machine: what a topology file says, checked as a whole, laid out and wired.

In: YAML and overrides, and the kinds of machine and the shapes of networks of plug-ins. Out: a `Machine`, which is a
graph of nodes and edges with its design, or `BareHardware`, which has none; the routes through it and the owner of each
address. The engine, the host and the command line call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.topology.address import AddressMap as AddressMap
    from kernbench_core.topology.compilation import compile_topology as compile_topology
    from kernbench_core.topology.configuration import Config as Config
    from kernbench_core.topology.configuration import KeyPath as KeyPath
    from kernbench_core.topology.configuration import load_config as load_config
    from kernbench_core.topology.design import BareHardware as BareHardware
    from kernbench_core.topology.design import Design as Design
    from kernbench_core.topology.design import Machine as Machine
    from kernbench_core.topology.design import design_of as design_of
    from kernbench_core.topology.machine_kinds import MachineKind as MachineKind
    from kernbench_core.topology.machine_kinds import require_kernels as require_kernels
    from kernbench_core.topology.networks import Extent as Extent
    from kernbench_core.topology.networks import NetworkFault as NetworkFault
    from kernbench_core.topology.networks import NetworkShape as NetworkShape
    from kernbench_core.topology.networks import ScaleUpLink as ScaleUpLink
    from kernbench_core.topology.networks import ScaleUpNetwork as ScaleUpNetwork
    from kernbench_core.topology.networks import build_alone as build_alone
    from kernbench_core.topology.networks import find_extent as find_extent
    from kernbench_core.topology.networks import network_directions as network_directions
    from kernbench_core.topology.networks import open_shape as open_shape
    from kernbench_core.topology.resolver import AddressResolver as AddressResolver
    from kernbench_core.topology.routing import PathRouter as PathRouter
    from kernbench_core.topology.section_reader import read_section as read_section

__getattr__ = door(__name__)
