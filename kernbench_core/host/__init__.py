"""The host's side of a run: a session on a graph, its host program and tensors, and what it reports when it ends.

In: a graph and a bench. Out: simulated time, an op log, the verdict of the sanity checks, a deadlock's report. Runs
call it, benches through `rt`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.host.bench import Bench as Bench
    from kernbench_core.host.bench import depends as depends
    from kernbench_core.host.device_tensor import ArrayOrTensor as ArrayOrTensor
    from kernbench_core.host.device_tensor import DeviceTensor as DeviceTensor
    from kernbench_core.host.device_tensor import TensorPart as TensorPart
    from kernbench_core.host.host_program import LaunchHandle as LaunchHandle
    from kernbench_core.host.host_program import current_program as current_program
    from kernbench_core.host.launch_arguments import pick_pes as pick_pes
    from kernbench_core.host.programs import ProgramKind as ProgramKind
    from kernbench_core.host.programs import on_device as on_device
    from kernbench_core.host.programs import program_bench as program_bench
    from kernbench_core.host.runtime import Runtime as Runtime
    from kernbench_core.host.session import GraphEngine as GraphEngine
    from kernbench_core.host.sources import read_sources as read_sources
    from kernbench_core.host.timing import NotModelled as NotModelled
    from kernbench_core.host.timing import not_modelled as not_modelled
    from kernbench_core.host.timing import resource_uses as resource_uses
    from kernbench_core.host.wait_cycle import shortest_cycle as shortest_cycle

__getattr__ = door(__name__)
