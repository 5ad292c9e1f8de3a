"""The machines that come with kernbench: a system of packages of PEs, a mesh on its own, and shapes of networks.

In: a configuration that has their sections. Out: the nodes and wires that core makes a graph of, and the JSON Schema of
a configuration. Core's compiler calls them, as kinds of machine and shapes that a plug-in registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.machines.link_rates import pcie_bandwidth as pcie_bandwidth
    from kernbench_builtin.machines.link_rates import ucie_bandwidth as ucie_bandwidth
    from kernbench_builtin.machines.mesh import Mesh as Mesh
    from kernbench_builtin.machines.mesh import line as line
    from kernbench_builtin.machines.schema.document import configuration_schema as configuration_schema

__getattr__ = door(__name__)
