"""Run files written in Triton: a run that is held open while the caller's own code launches kernels on it."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kernbench_core.frontend import imports, simulation
from kernbench_core.frontend.mirror import Mirror, MirroredStorage
from kernbench_core.frontend.storage import view_of
from kernbench_core.host.launch_arguments import deal_programs
from kernbench_core.kernel.bridge import Finished, Guest
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.messages import Launch
from kernbench_core.runs.bench_run import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernbench_core.frontend.simulation import JitLaunch
    from kernbench_core.host.figures.launch import LaunchFigures
    from kernbench_core.host.runtime import Runtime
    from kernbench_core.runs.result import RunResult


class TritonRun:
    """A machine on which `kernel[grid](…)` runs, inside a `with`. `launches` are the figures of those that are over.

    `result` is what the run gave, once the `with` is left; None where no kernel was launched, or an error ended it.
    """

    def __init__(self, topology: str | Path | Mapping[str, object], options: Mapping[str, Any]) -> None:
        self.launches: list[LaunchFigures] = []
        self.result: RunResult | None = None
        self._topology, self._options = topology, options
        self._stack = ExitStack()
        self._guest: Guest | None = None

    def __enter__(self) -> TritonRun:
        simulation.enter(self)
        self._stack.callback(simulation.leave)
        self._stack.enter_context(imports.replaced())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()
        guest, self._guest = self._guest, None
        if guest is None or guest.over:
            return
        if error is not None:
            guest.abandon()
            return
        answer = guest.visit(None)
        assert isinstance(answer, Finished)
        self.result = answer.value

    def launch(self, asked: JitLaunch) -> LaunchFigures:
        """Run a kernel on the device, write what it wrote to the host's arrays, and return its figures."""
        if self._guest is None or self._guest.over:  # an error ends a run, and a script may go on after it
            self._guest = Guest(self._run)
            self._guest.visit()
        figures: LaunchFigures = self._guest.visit(asked)
        self.launches.append(figures)
        return figures

    def _run(self) -> RunResult:
        def program(rt: Runtime) -> None:
            assert self._guest is not None
            mirror, answer = Mirror(rt), None
            while (asked := self._guest.ask(answer)) is not None:
                answer = _launched(mirror, asked)

        program.__name__ = "triton"
        return run(program, topology=self._topology, **{"race_by": "program", **self._options})


def _launched(mirror: Mirror, asked: JitLaunch) -> LaunchFigures:
    """Launch on the device what the host's code asks for, with the host's arrays."""
    rt, used = mirror.rt, list[MirroredStorage]()
    arguments: dict[str, object] = {}
    for name, value in asked.arguments.items():
        view = view_of(value, f"argument {name!r} of kernel {asked.name!r}")
        if view is None:
            arguments[name] = value
            continue
        held = mirror.hold(view, name)
        used.append(held)
        arguments[name] = Pointer(held.tensor.allocation, view.first, view.dtype)
    programs, grid = deal_programs([site.index for site in rt.pes], asked.grid)
    handle = rt.submit(Launch(asked.kernel, arguments, grid, programs), [held.tensor for held in used], asked.name)
    rt.wait(handle)
    mirror.read_back(used)
    return handle.figures


def triton(topology: str | Path | Mapping[str, object] = "default", **options: Any) -> TritonRun:
    """Hold a machine open on which files written in Triton launch their kernels, inside a `with`.

    There, and only there, `import triton` and `import triton.language` give kernbench's own. Arrays are numpy's,
    ml_dtypes', torch's where torch is installed, or whatever has `__array_interface__` or `__dlpack__`; what a kernel
    wrote is in them when the launch returns. `options` are those of `kb.run`.

    >>> import numpy as np
    >>> with kb.triton("tiny") as sim:
    ...     import triton
    ...     import triton.language as tl
    ...     @triton.jit
    ...     def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    ...         at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...         tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)
    ...     x, y = np.arange(5, dtype="f4"), np.zeros(5, "f4")
    ...     figures = double[(3,)](x, y, 5, BLOCK=2)
    >>> y.tolist(), len(sim.launches)
    ([0.0, 2.0, 4.0, 6.0, 8.0], 1)
    """
    return TritonRun(topology, options)
