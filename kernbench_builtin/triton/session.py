"""Run files written in Triton: a run that is held open while the caller's own code launches kernels on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from attrs import evolve

from kernbench_builtin.triton import simulation
from kernbench_builtin.triton.addresses import AskedAddresses
from kernbench_builtin.triton.machine import HeldMachine, Trials
from kernbench_builtin.triton.modules import imports, torch_cuda
from kernbench_builtin.triton.storage import restored
from kernbench_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernbench_builtin.triton.simulation import JitLaunch, MachineFacts
    from kernbench_builtin.triton.tuning import JitTuning
    from kernbench_core.host.figures.launch import LaunchFigures
    from kernbench_core.runs.result import RunResult

#: Options of the run that a trial has, too: those that say what the machine is, and when to stop.
_OF_TRIALS = (
    "components", "set", "device", "seed", "data", "race_by", "oob", "pipeline_loops", "max_events", "max_sim_ns",
    "timeout_s", "plugins",
)  # fmt: skip


class TritonRun:
    """A machine on which `kernel[grid](…)` runs, inside a `with`. `launches` are the figures of those that are over.

    `tunings` are the choices that `triton.autotune` made, whose trials are not among the launches; `notes` say what a
    script asked for that is not simulated. `result` is what the run gave, once the `with` is left; None where no kernel
    was launched, or an error ended it. `points` is how many points of each benchmark `perf_report` runs, None for all.
    """

    def __init__(
        self, topology: str | Path | Mapping[str, object], options: Mapping[str, Any], *, name: str = "triton",
        points: int | None = None,
    ) -> None:  # fmt: skip
        if options.get("cached"):
            raise UsageError(
                "kb.triton runs its caller's own code between launches, of which no answer can be kept; leave out "
                "cached=True, or put it into a file for 'kernbench triton --cached'."
            )
        if points is not None and points < 0:
            raise UsageError(f"points must be a count of points of a benchmark, 0 or more, not {points}.")
        self.points = points
        self.launches: list[LaunchFigures] = []
        self.tunings: list[JitTuning] = []
        self.notes: list[str] = []
        self.result: RunResult | None = None
        self._new = partial(HeldMachine, topology, options, name)
        self._stack = ExitStack()
        self._machine = self._new()
        self._trials = Trials(topology, {name: options[name] for name in _OF_TRIALS if name in options})
        self._facts: MachineFacts | None = None
        self._trying = False
        self._pipelines = bool(options.get("pipeline_loops"))
        self._addresses = AskedAddresses()
        self._unconfirmed = 0

    def data_ptr(self, array: Any) -> int:
        """Return the address of an array's first element, for kernels that find it in memory, as of `tl.pointer_type`.

        An array of such addresses is given to a launch; those of torch's tensors are had by their own `data_ptr()`.
        """
        return self._addresses.of(array)

    def took_address(self, address: int, array: object) -> None:
        """Keep in mind at which address a script knows an array to begin."""
        self._addresses.note(address, array)

    @property
    def pipelines(self) -> bool:
        """Whether loops load ahead, as deep as `num_stages` says."""
        return self._pipelines

    @property
    def verified(self) -> bool | None:
        """Whether all that kernels branched on and scripts got was confirmed, and nothing found wrong; None before."""
        if self.result is None or self.result.branch_values.confirmed is None:
            return None
        reads = self.result.branch_values, self.result.host_reads
        confirmed = not self._unconfirmed and all(each.confirmed == each.read for each in reads)
        return self.result.right and confirmed

    def __enter__(self) -> TritonRun:
        simulation.enter(self)
        self._stack.callback(simulation.leave)
        self._stack.enter_context(imports.replaced())
        self._stack.enter_context(torch_cuda.replaced())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()
        if error is not None:
            self._machine.abandon()
        elif self._machine.open:
            self.result = self._machine.end()

    @property
    def machine(self) -> MachineFacts:
        """The machine that kernels run on."""
        if self._facts is None:
            self._facts = self._open_machine().facts()
        return self._facts

    def launch(self, asked: JitLaunch) -> LaunchFigures:
        """Run a kernel on the device, write what it wrote to the host's arrays, and return its figures."""
        asked = evolve(asked, reachable=self._addresses.arrays())
        if self._trying:
            return self._trials.launch(asked)
        figures = self._open_machine().launch(asked)
        self.launches.append(figures)
        return figures

    @contextmanager
    def trying(self, arguments: Iterable[object], hooked: bool) -> Iterator[None]:
        """Have launches run beside the run while a block runs, and leave the arrays among `arguments` as they were.

        A launch like one before takes as long; where hooks may change arrays, each is simulated.
        """
        if hooked:
            self._trials.seen.clear()
        self._trying = True
        try:
            with restored(arguments if hooked else ()):
                yield
        finally:
            self._trying = False

    def tuned(self, tuning: JitTuning) -> None:
        """Note what came of trying the configurations of a kernel."""
        self.tunings.append(tuning)
        self._trials.seen.clear()

    def note(self, sentence: str) -> None:
        """Note what a script is to be told of, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _open_machine(self) -> HeldMachine:
        """Return the machine; an error ends a run, and a script may go on after it on a new one."""
        if not self._machine.open:
            if before := self._machine.launched:
                self._unconfirmed += before
                launches = "1 launch" if before == 1 else f"{before} launches"
                self.note(f"What {launches} before an error wrote was not confirmed, as the error ended their run.")
            self._machine = self._new()
            self._machine.begin()
        return self._machine


def triton(
    topology: str | Path | Mapping[str, object] = "default", *, points: int | None = None, **options: Any
) -> TritonRun:
    """Hold a machine open on which files written in Triton launch their kernels, inside a `with`.

    There, and only there, `import triton` and `import triton.language` give kernbench's own. Arrays are numpy's,
    ml_dtypes', torch's where torch is installed, or whatever has `__array_interface__` or `__dlpack__`; what a kernel
    wrote is in them when the launch returns. `points` is how many points of each benchmark `triton.testing.perf_report`
    runs, the first ones; None for all. `options` are those of `kb.run`.

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
    return TritonRun(topology, options, points=points)
