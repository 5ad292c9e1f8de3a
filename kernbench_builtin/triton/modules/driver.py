"""`triton.runtime.driver`: what scripts ask of the device, answered by the machine that is simulated.

One program at a time is on a PE, with the whole of its scratchpad. A machine has neither warps nor registers: what is
said of them is such that occupancies computed from it come out as one program a PE.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from attrs import frozen

from kernbench_builtin.triton.modules.testing import do_bench
from kernbench_builtin.triton.simulation import current

#: The capability of the device as the compiler's target: old enough that scripts take their plainest way.
CAPABILITY = (8, 0)
NAME = "kernbench"


@frozen
class GPUTarget:
    """What kernels are compiled for."""

    backend: str
    arch: Any
    warp_size: int


def properties(device: object = None) -> dict[str, Any]:
    """Return what a script may ask of the device, under Triton's names."""
    machine = current("a query of the device").machine
    return {
        "max_shared_mem": machine.scratchpad_bytes,
        "max_num_regs": 65536,
        "multiprocessor_count": machine.pes,
        "warpSize": 32,
        "sm_clock_rate": 1_000_000,
        "mem_clock_rate": 1_000_000,
        "mem_bus_width": 1024,
    }


class Utils:
    """Queries by the number of a device, of which there is one."""

    get_device_properties = staticmethod(properties)


class ActiveDriver:
    """The driver of the machine that is simulated."""

    utils = Utils()

    def get_current_device(self) -> int:
        """Return the number of the device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Choose the device: there is one."""

    def get_current_stream(self, device: object = None) -> int:
        """Return the number of the stream: launches are one after the other."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Return torch's device; where torch is not imported, what stands for it."""
        torch = sys.modules.get("torch")
        return DeviceName() if torch is None else torch.device("cuda", 0)

    def get_current_target(self) -> GPUTarget:
        """Return what kernels are compiled for."""
        return GPUTarget("cuda", 10 * CAPABILITY[0] + CAPABILITY[1], 32)

    def get_device_capability(self, device: object = None) -> tuple[int, int]:
        """Return what torch calls the device's capability."""
        return CAPABILITY

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return what measures a function."""
        return do_bench

    def get_device_interface(self) -> Any:
        """Return torch's module for the device, None where torch is not imported."""
        torch = sys.modules.get("torch")
        return None if torch is None else torch.cuda


@frozen
class DeviceName:
    """The device for scripts without torch, under torch's names."""

    type: str = "cuda"
    index: int = 0

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"


class TritonDriver:
    """`triton.runtime.driver`."""

    active = default = ActiveDriver()

    def set_active(self, driver: object) -> None:
        """Choose a driver: there is one."""


def set_allocator(allocator: Callable[..., object]) -> None:
    """Say who allocates memory that kernels need beside their arguments: none is needed."""
