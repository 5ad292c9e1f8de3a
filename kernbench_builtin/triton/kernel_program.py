"""A kernel that is run alone, by `kernbench run FILE.py:KERNEL` and `kb.launch`: what launches it in its run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen

from kernbench_builtin.triton import simulation
from kernbench_builtin.triton.kernel import Grid, JitFunction, Launchable
from kernbench_builtin.triton.modules import imports
from kernbench_builtin.triton.placement import placed_for
from kernbench_builtin.triton.simulation import facts_of
from kernbench_builtin.triton.storage import restored
from kernbench_core.errors import KernbenchWarning
from kernbench_core.host.parameters.kernel_argument import NewArray, constant_of

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures
    from kernbench_builtin.triton.simulation import JitLaunch, JitTuning, MachineFacts
    from kernbench_core.host.device_tensor import DeviceTensor
    from kernbench_core.host.runtime import Runtime
    from kernbench_core.spread import TimeSpread
    from kernbench_core.values.arrays import Array

RunTrial = Callable[[Callable[..., None]], Any]


@frozen(eq=False)
class HeldArray:
    """An array as hooks of a kernel have it, what it was given as, by which name, and what both sides hold; None where
    no hook can change it.
    """

    array: Array
    name: str
    value: object
    alike: Array | None


@define(eq=False)
class SingleLaunch:
    """The simulation that a kernel finds which is launched once, by the host program of its own run.

    What configurations of `triton.autotune` took are rows of the result: `run_trial` runs a host program on a machine
    like this one, and returns its result.
    """

    rt: Runtime
    run_trial: RunTrial
    launches: tuple[LaunchFigures, ...] = ()
    points: int | None = None
    _held: dict[int, HeldArray] = field(factory=dict)
    _copies: dict[int, tuple[object, Array]] = field(factory=dict)
    _asked: list[JitLaunch] = field(factory=list)
    _trying: bool = False
    _seen: dict[object, LaunchFigures] = field(factory=dict)

    def hold(self, name: str, value: object, hooked: bool) -> object:
        """Keep an array for the launch, and return what hooks and trials have for it; everything else as it is.

        An array that is given twice is one tensor.
        """
        again = self._copies.get(id(value))
        if again is not None:
            return again[1]
        if isinstance(value, NewArray):
            array: Any = np.zeros(value.shape, value.numpy_dtype)
        elif isinstance(value, np.ndarray):
            array = value.copy() if hooked else value
        else:
            return value
        self._copies[id(value)] = value, array  # which keeps it, and so its id
        self._held[id(array)] = HeldArray(array, name, value, array.copy() if hooked else None)
        return array

    @property
    def machine(self) -> MachineFacts:
        """The machine that the kernel runs on."""
        return facts_of(self.rt)

    @property
    def shakes(self) -> bool:
        """Trials run once: a run that is shaken has each of its runs choose anew."""
        return False

    @property
    def pipelines(self) -> bool:
        """Whether loops load ahead, as deep as `num_stages` says."""
        return self.rt.pipelines_loops

    def launch(self, asked: JitLaunch) -> Any:
        """Note the launch; run a trial beside the run, and return its figures."""
        if self._trying:
            return self._trial(asked)
        self._asked.append(asked)
        return None

    def looked_at(self) -> None:
        """Do nothing: the launch of a kernel alone has no figures yet."""

    def start(self) -> None:
        """Run on the device what was asked for."""
        tensors: dict[int, DeviceTensor] = {}
        for asked in self._asked:
            arguments: dict[str, Any] = {}
            for name, value in asked.arguments.items():
                held = self._held.get(id(value))
                if held is not None and id(value) not in tensors:
                    tensors[id(value)] = placed_for(self.rt, asked, held.name, held.value)
                if held is not None and held.alike is not None and held.alike.tobytes() != held.array.tobytes():
                    self.rt.preload(tensors[id(value)], held.array)
                arguments[name] = value if held is None else tensors[id(value)]
            self.rt.launch(asked.kernel, grid=asked.grid, **arguments)

    @contextmanager
    def trying(
        self, arguments: Iterable[object], hooked: bool, spreads: list[TimeSpread] | None = None
    ) -> Iterator[None]:
        """Have launches run beside the run while a block runs, and leave the arrays among `arguments` as they were."""
        if hooked:
            self._seen.clear()
        self._trying = True
        try:
            with restored(arguments if hooked else ()):
                yield
        finally:
            self._trying = False

    def tuned(self, tuning: JitTuning) -> None:
        """Report the trials of a kernel as rows."""
        for trial in tuning.trials:
            self.rt.report(config=trial.config, time_ns=trial.time_ns, chosen=trial is tuning.best)
        self._seen.clear()

    def _trial(self, asked: JitLaunch) -> LaunchFigures:
        """Run a trial, but for one like an earlier one."""
        if asked.likeness not in self._seen:

            def program(rt: Runtime, /) -> None:
                rt.launch(
                    asked.kernel,
                    grid=asked.grid,
                    **{name: placed_for(rt, asked, name, value) for name, value in asked.arguments.items()},
                )

            program.__name__ = asked.name
            self._seen[asked.likeness] = self.run_trial(program).launches[0]
        return self._seen[asked.likeness]

    def took_address(self, address: int, array: object) -> None:
        """Do nothing: who gives the arrays of a kernel alone knows no addresses on its device."""

    def note(self, sentence: str) -> None:
        """Warn of what the kernel is to be told of."""
        warnings.warn(sentence, KernbenchWarning, stacklevel=2)


def jit_program(kernel: Launchable, grid: Grid, run_trial: RunTrial) -> Callable[..., None]:
    """Return the host program that launches a jit function once, with its arguments by name."""
    hooked = not isinstance(kernel, JitFunction)

    def program(rt: Runtime, /, **given: object) -> None:
        launch = SingleLaunch(rt, run_trial)
        held = {name: launch.hold(name, constant_of(value), hooked) for name, value in given.items()}
        arguments: dict[str, Any] = held
        simulation.enter(launch)
        try:
            with imports.replaced():
                kernel.run(grid=grid, **arguments)
        finally:
            simulation.leave()
        launch.start()  # outside: what ends a run in the midst of a launch does not come back to here

    program.__name__, program.__doc__ = kernel.__name__, kernel.__doc__
    return program
