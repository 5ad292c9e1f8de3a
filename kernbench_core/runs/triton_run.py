"""Run files written in Triton: a run that is held open while the caller's own code launches kernels on it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.frontend import imports, simulation
from kernbench_core.frontend.storage import View, typed, view_of
from kernbench_core.host.device_tensor import DeviceTensor
from kernbench_core.kernel.bridge import Finished, Guest
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.result import RunResult

if TYPE_CHECKING:
    from kernbench_core.frontend.kernel import JitKernel
    from kernbench_core.host.figures.launch import LaunchFigures
    from kernbench_core.host.runtime import Runtime


@define(eq=False)
class _Held:
    """A storage that the device holds: its tensor, and what both sides held when they were last alike."""

    view: View
    tensor: DeviceTensor
    bytes: np.ndarray


@define(eq=False)
class _Asked:
    """A launch that the host's code asks for."""

    kernel: JitKernel
    arguments: Mapping[str, object]
    grid: tuple[int, ...]


class TritonRun:
    """A machine on which `kernel[grid](…)` runs, inside a `with`. `launches` are those that are over."""

    def __init__(self, topology: Any = "default", **options: Any) -> None:
        self.launches: list[LaunchFigures] = []
        self.result: RunResult | None = None
        self._topology, self._options = topology, options
        self._stack = ExitStack()
        self._guest: Guest | None = None
        self._held: dict[tuple[int, int], _Held] = {}

    def __enter__(self) -> TritonRun:
        simulation.enter(self)
        self._stack.callback(simulation.leave)
        self._stack.enter_context(imports.replaced())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()
        if self._guest is not None and not self._guest.over:
            answer = self._guest.visit(None)
            assert isinstance(answer, Finished)
            self.result = answer.value

    def launch(self, kernel: JitKernel, arguments: Mapping[str, object], grid: tuple[int, ...]) -> LaunchFigures:
        """Run a kernel on the device, write what it wrote back to the host's arrays, and return its figures."""
        if self._guest is None:
            self._guest = Guest(self._run)
            self._guest.visit()
        if self._guest.over:
            raise UsageError("a kernel must not be launched on a run that an error has ended; begin another run.")
        answer = self._guest.visit(_Asked(kernel, arguments, grid))
        self.launches.append(answer)
        return answer

    # On the stack of the run ------------------------------------------------------------------------

    def _run(self) -> RunResult:
        def program(rt: Runtime) -> None:
            assert self._guest is not None
            answer = None
            while (asked := self._guest.ask(answer)) is not None:
                answer = self._launched(rt, asked)

        program.__name__ = "triton"
        return run(program, topology=self._topology, race_by="program", **self._options)

    def _launched(self, rt: Runtime, asked: _Asked) -> LaunchFigures:
        used: list[_Held] = []
        given: dict[str, object] = {}
        for name, value in asked.arguments.items():
            view = view_of(value, f"argument {name!r} of kernel {asked.kernel.__name__!r}")
            if view is None:
                given[name] = value
                continue
            held = self._on_device(rt, view, name)
            used.append(held)
            given[name] = Pointer(held.tensor.allocation, view.first, view.dtype)
        handle = rt.launch(asked.kernel, grid=asked.grid, **given)
        for held in dict.fromkeys(used):
            self._write_back(held)
        return handle.figures

    def _on_device(self, rt: Runtime, view: View, name: str) -> _Held:
        """Return a storage with what the host holds now."""
        key = (view.address, len(view.storage))
        held = self._held.get(key)
        if held is None:
            tensor = rt.tensor(typed(view.storage, view.dtype), name=name, preloaded=True)
            held = self._held[key] = _Held(view, tensor, view.storage.copy())
        elif not np.array_equal(held.bytes, view.storage):
            rt.preload(held.tensor, typed(view.storage, held.tensor.dtype))
            held.bytes = view.storage.copy()
        held.view = view
        return held

    def _write_back(self, held: _Held) -> None:
        now = held.tensor.numpy().reshape(-1).view(np.uint8)
        if np.array_equal(now, held.bytes[: len(now)]):
            return
        held.view.storage[: len(now)] = now
        held.bytes[: len(now)] = now


def triton(topology: Any = "default", **options: Any) -> TritonRun:
    """Hold a machine open on which kernels written in Triton run, inside a `with`."""
    return TritonRun(topology, **options)
