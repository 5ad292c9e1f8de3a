"""The host API: what a bench calls (`rt`) to place tensors, launch kernels and check results.

A bench is a plain function that runs beside the simulation: a call that takes simulated time
suspends it until the device has answered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernbench_core.callsite import site_of_frame
from kernbench_core.errors import UsageError
from kernbench_core.host.device_tensor import DeviceTensor, LocalTensor, ShardInfo
from kernbench_core.host.expectation import Expectation
from kernbench_core.host.host_program import LaunchHandle, ParamsRead, latest
from kernbench_core.host.host_tensors import HostTensors
from kernbench_core.host.launch_arguments import bind_arguments, choose_pes, deal_programs, pick_pes
from kernbench_core.host.rows import make_row
from kernbench_core.kernel.arguments import PerPe, replace_nested
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.messages import KernelLaunchMsg, Launch

if TYPE_CHECKING:
    from kernbench_core.oplog.log import OpLog

__all__ = ["DeviceTensor", "Expectation", "LaunchHandle", "LocalTensor", "Runtime", "ShardInfo"]


class Runtime(HostTensors):
    """Give a host program the device. `rt.pes` are the PEs it may use, `rt.rng` is seeded by the run."""

    @property
    def n_pes(self) -> int:
        """How many PEs the device has."""
        return len(self.pes)

    @property
    def mesh(self) -> tuple[int, int, int]:
        """How many SIPs the device has, cubes in each, and PEs in each cube: the mesh that placements are over."""
        sips = len({site.sip for site in self.pes})
        cubes = len({(site.sip, site.cube) for site in self.pes})
        return sips, cubes // sips, len(self.pes) // cubes

    @property
    def cube_mesh(self) -> tuple[int, int]:
        """Width and height of the mesh that the cubes of a SIP form; cubes are numbered along its rows."""
        design = self._session.device.design
        return design.mesh_width, design.cubes_per_sip // design.mesh_width

    @property
    def scratchpad_bytes(self) -> int:
        """How large a PE's scratchpad is."""
        return self._session.device.design.tcm_bytes

    def unit(self, kind: str) -> Mapping[str, Any]:
        """Return the parameters of a unit of the first PE, such as "pe_math"; nothing where PEs have none.

        Times are in ns, frequencies in 1/ns, bandwidths in bytes/ns, sizes in bytes. Benches choose blocks by them.
        """
        node = self._session.hardware.graph.nodes.get(f"{self.pes[0].prefix}.{kind}")
        return {} if node is None else ParamsRead(node, self.shared.params_read)

    @property
    def op_log(self) -> OpLog:
        """What was recorded so far; between launches that is everything that they did."""
        self.note_timed("rt.op_log")
        return self._session.op_log

    def report(self, **columns: Any) -> None:
        """Add a row to the table that the result shows (`result.rows`); takes no simulated time.

        Values are numbers, texts, bools or None. A column named `…_ns` is shown as a time, `…_bytes` as bytes.
        """
        self.require_host("rt.report")
        self.shared.rows.append(make_row(columns))

    def input_file(self, path: str | Path) -> Path:
        """Keep a file that the bench reads, for `--out` and the manifest; return where to read it.

        In a run that is made again that is the kept copy; else it is `path`, which need not exist.
        """
        return Path(path) if self.shared.inputs is None else self.shared.inputs.read(path)

    # Launches -------------------------------------------------------------------------------------

    def launch(
        self,
        kernel: Callable[..., Any],
        *args: object,
        grid: tuple[int, ...] | None = None,
        device: int | str | Iterable[int] | None = None,
        pes: Iterable[int] | None = None,
        wait: bool = True,
        **kwargs: object,
    ) -> LaunchHandle:
        """Run `kernel(*args, **kwargs, tl)` on the device's PEs and wait for it, unless `wait` is false.

        Without `grid` there is one program per PE; with `grid=(x[, y[, z]])` programs are dealt to PEs
        round-robin in PE order, x fastest. `device` restricts the PEs to those of one SIP (a number, or "sip:N")
        or of several (numbers), `pes` to those at these positions among them. The kernel gets a pointer for each
        tensor, also inside tuples, lists and dicts: each program gets its own copies of those. For
        `tensor.to_local()` it is a pointer to its PE's own shard.
        """
        self.require_host("rt.launch")
        sites = pick_pes(choose_pes(self.pes, device), pes)
        programs, full_grid = deal_programs([site.index for site in sites], grid)
        arguments = bind_arguments(kernel, args, kwargs)
        tensors: list[DeviceTensor] = []

        def given(tensor: DeviceTensor) -> Pointer:
            self.require_live(tensor)
            tensors.append(tensor)
            return Pointer(tensor.allocation, 0, tensor.dtype)

        def given_local(local: LocalTensor) -> PerPe:
            given(local.tensor)
            return self._local_pointers(local.tensor, sorted(programs))

        plain = {name: replace_nested(value, DeviceTensor, given) for name, value in arguments.items()}
        plain = {name: replace_nested(value, LocalTensor, given_local) for name, value in plain.items()}
        handle = self.submit(Launch(kernel, plain, full_grid, programs), tensors)
        if wait:
            self.join(handle)
        return handle

    def submit(self, launch: Launch, tensors: Sequence[DeviceTensor], label: str = "") -> LaunchHandle:
        """Start a launch that is made up already and uses `tensors`; `label` is what reports call it.

        This is the door for packages that launch kernels of their own; a bench calls `launch`.
        """
        request = KernelLaunchMsg(launch)
        launch.injected_ns = self._session.env.now
        launch.known = self.known
        handle = LaunchHandle(request, tuple(tensors), self, site_of_frame(sys._getframe()), label)
        self.shared.running.append(handle)
        self.shared.launches.append(handle)
        self._session.device.hazards.launched(launch, self.number)
        self._session.submit(request, self)
        return handle

    def wait(self, handle: LaunchHandle) -> None:
        """Wait, in simulated time, until a launch is complete."""
        self.require_host("rt.wait")
        self.join(handle)

    def wait_for(self, tensor: DeviceTensor) -> None:
        """Wait, in simulated time, for every running launch that was given `tensor`."""
        self.require_host("rt.wait_for")
        self.settle(tensor)

    def wait_all(self) -> None:
        """Wait, in simulated time, for every running launch of this host program."""
        self.require_host("rt.wait_all")
        for handle in [handle for handle in self.shared.running if handle.program is self]:
            self.join(handle)

    def _local_pointers(self, tensor: DeviceTensor, pes: Sequence[int]) -> PerPe:
        """Return for each PE the pointer to its shard of a tensor; UsageError when one holds none."""
        found: dict[int, Pointer] = {}
        for pe in pes:
            shard = self._session.device.memory.local(tensor.allocation, pe)
            if shard is None:
                raise UsageError(
                    f"rt.launch: tensor {tensor.name!r} must have a shard on each PE of the launch for to_local(), "
                    f"and has none on {self.design.pes[pe].prefix}; launch on the tensor's device, or give the whole "
                    "tensor."
                )
            found[pe] = Pointer(shard, 0, shard.dtype)
        return PerPe(found)

    # Several host programs ------------------------------------------------------------------------

    def side_by_side(
        self,
        fn: Callable[..., Any],
        sips: Sequence[int],
        args: Sequence[object] = (),
        *,
        name: str = "program",
    ) -> list[Any]:
        """Run `fn(i, rt, *args)` for each of `sips` as a host program of its own, side by side in simulated time.

        Program i has the PEs of `sips[i]` alone: its `rt.pes`, mesh, tensors and launches are there. `name` is what
        messages call it, with its number behind. Wait until all have returned, and everything that they launched is
        over; give what they returned. What one of them raises ends the run, named after it.
        """
        self.require_host("rt.side_by_side")
        session, hazards = self._session, self._session.device.hazards
        start, seed = len(self.shared.programs), session.seed
        children = [
            Runtime(session, self.shared, pes, f"{name} {i}", (seed, start + i))
            for i, pes in enumerate([choose_pes(self.pes, sip, "rt.side_by_side") for sip in sips])
        ]
        left = len(children)
        over = session.env.event()

        def ended(child: Runtime) -> None:
            nonlocal left
            left -= 1
            hazards.program_ended(child.number, self.number)
            self.known = latest(self.known, child.known)
            if not left:
                over.succeed()

        for i, child in enumerate(children):
            hazards.program_started(child.number, self.number)
            child.known = self.known
            session.start(child, fn, (i, child, *args), {}, partial(ended, child))
        if children:
            self.pause(over, "the programs that it started")
        return [child.value for child in children]
