"""A machine that is held open while the caller's own code launches kernels on it, one at a time: `kb.triton`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from kernbench_builtin.triton import simulation
from kernbench_builtin.triton.host_arrays import DeviceCopies
from kernbench_builtin.triton.host_launch import launched
from kernbench_builtin.triton.modules import imports, torch_cuda
from kernbench_builtin.triton.placement import ArrayPlace
from kernbench_builtin.triton.recipe import ScriptRecipe
from kernbench_builtin.triton.simulation import facts_of
from kernbench_builtin.triton.storage import AskedAddresses, restored
from kernbench_core.callsite import call_site
from kernbench_core.errors import UsageError
from kernbench_core.host.host_program import FIGURES
from kernbench_core.kernel.bridge import Finished, Guest
from kernbench_core.process.interrupt import Alarm, WallTime
from kernbench_core.runs.bench_run import run

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures
    from kernbench_builtin.triton.simulation import JitLaunch, JitTuning, MachineFacts
    from kernbench_core.callsite import CallSite
    from kernbench_core.host.bench import Bench
    from kernbench_core.host.runtime import Runtime
    from kernbench_core.runs.result import RunResult
    from kernbench_core.spread import TimeSpread

    MakeRun = Callable[[Bench], RunResult]


_USUAL: Final = {"race_by": "program", "materialize": "on_demand"}
"""The options of a run of Triton's kernels that are not as for others."""


class HeldMachine:
    """A run of `kb.run` with these options, between `begin` and `end`; `name` is what its result calls it.

    The manifest has what `recipe` says; where arrays come to lie is added to `places`: those that `beside` holds lie as
    there. `make` runs its bench, where that is not `kb.run`.
    """

    def __init__(
        self, topology: str | Path | Mapping[str, object], options: Mapping[str, Any], name: str = "triton",
        recipe: ScriptRecipe | None = None, make: MakeRun | None = None, places: list[ArrayPlace] | None = None,
        timed: dict[str, CallSite | None] | None = None, beside: DeviceCopies | None = None,
    ) -> None:  # fmt: skip
        self.launched = 0
        self._copies: DeviceCopies | None = None
        self._beside = beside
        self.places: list[ArrayPlace] = [] if places is None else places
        self._name = name
        self._recipe = ScriptRecipe() if recipe is None else recipe.again()
        usual = {**_USUAL, "verify_data": options.get("data", True)}
        self._recipe.data = bool(options.get("data", True))
        params = {"params": self._recipe.params}
        self._make = make or (lambda bench: run(bench, **params, **{"topology": topology, **usual, **options}))
        self._guest: Guest | None = None
        #: The times that the script looked at, before this run and in others, too, and those that the run knows of.
        self._timed = {} if timed is None else timed
        self._known = self._timed

    def looked_at(self) -> None:
        """Take note that the script looks at the figures of a launch, on which what it does may depend."""
        for known in (self._timed, self._known):
            known.setdefault(FIGURES, call_site())

    @property
    def open(self) -> bool:
        """Whether the run goes on: it has begun, and neither ended nor failed."""
        return self._guest is not None and not self._guest.over

    @property
    def copies(self) -> DeviceCopies | None:
        """The arrays that the device holds; None where the run is not open."""
        return self._copies if self.open else None

    def begin(self) -> None:
        """Begin the run."""
        self._guest = Guest(self._run)
        self._guest.visit()

    def facts(self) -> MachineFacts:
        """Return what the machine has."""
        facts: MachineFacts = self._ask(lambda copies: facts_of(copies.rt))
        return facts

    def launch(self, asked: JitLaunch, *, kept: bool = True) -> LaunchFigures:
        """Run a kernel, write what it wrote to the host's arrays if that is to be kept, and return its figures."""
        figures: LaunchFigures = self._ask(
            lambda copies: copies.rt.figures_of(launched(copies, asked, kept), for_program=False)
        )
        self.launched += 1
        self._recipe.note(asked)
        return figures

    def end(self) -> RunResult | None:
        """End the run and return its result; None where nothing was launched, or an error ended it."""
        guest = self._guest
        if guest is None or guest.over:
            return None
        if not self.launched:
            guest.abandon()
            return None
        answer = guest.visit(None)
        assert isinstance(answer, Finished)
        result: RunResult = answer.value
        return result

    def failed(self, how: str) -> None:
        """Say how the script failed whose launches run."""
        self._recipe.failure = how

    def abandon(self) -> None:
        """Give the run up."""
        if self.open:
            assert self._guest is not None
            self._guest.abandon()

    def _ask(self, request: Callable[[DeviceCopies], Any]) -> Any:
        assert self._guest is not None
        answer = self._guest.visit(request)
        if isinstance(answer, UsageError):
            raise answer
        return answer

    def _run(self) -> RunResult:
        def program(rt: Runtime, **_: object) -> None:
            assert self._guest is not None
            copies = self._copies = DeviceCopies(rt, self.places, self._beside)
            answer, self._known = None, rt.shared.timed
            self._known.update(self._timed)
            while (request := self._guest.ask(answer)) is not None:
                try:
                    answer = request(copies)
                except UsageError as error:  # of the arguments: the run goes on
                    answer = error

        return self._make(self._recipe.bench(program, self._name))


class Trials:
    """Launches whose data nobody gets, each on a machine of its own; what was `seen` is not simulated again.

    Arrays that the run holds, the copies `beside`, lie as they do there. `shake` are the options of that name.
    """

    def __init__(
        self, topology: str | Path | Mapping[str, object], options: Mapping[str, Any], shake: Mapping[str, Any]
    ) -> None:
        self.seen: dict[object, LaunchFigures] = {}
        self._given, self._shake = (topology, options), shake

    def launch(self, asked: JitLaunch, beside: DeviceCopies | None) -> LaunchFigures:
        """Run a kernel on a machine on which nothing ran before, and return its figures."""
        key = asked.likeness
        if key not in self.seen:
            machine = HeldMachine(*self._given, beside=beside)
            machine.begin()
            self.seen[key] = machine.launch(asked, kept=False)
            machine.abandon()
        return self.seen[key]

    def shaken(self, asked: JitLaunch, beside: DeviceCopies | None) -> TimeSpread:
        """Return what the kernel takes on machines that are the same but for a thousandth."""
        topology, options = self._given

        def program(rt: Runtime, **_: object) -> None:
            launched(DeviceCopies(rt, [], beside), asked, kept=False)

        usual = {**_USUAL, "verify_data": False, **options, **self._shake}
        shaken = run(ScriptRecipe().bench(program, asked.name), topology=topology, **usual).shake
        assert shaken is not None, "it was asked for"
        spread: TimeSpread = shaken.phases["kernel"]
        return spread


NOTHING_SHAKEN: Final = (
    "--shake found nothing to do: of a script it shakes what triton.autotune compares, and there is no such choice; "
    "shake one kernel by `kernbench run FILE.py:KERNEL --shake`."
)
#: Options of the run that a trial has, too: those that say what the machine is, and when to stop.
_OF_TRIALS = (
    "components", "set", "device", "seed", "data", "race_by", "oob", "pipeline_loops", "placement",
    "max_events", "max_sim_ns", "timeout_s", "plugins",
)  # fmt: skip


class TritonRun:
    """A machine on which `kernel[grid](…)` runs, inside a `with`. `launches` are the figures of those that are over.

    `tunings` are the choices that `triton.autotune` made, whose trials are not among the launches; `places` are where
    arrays lie; `notes` say what a script asked for that is not simulated. `result` is what the run gave, once the
    `with` is left; None where no kernel was launched, or an error ended it. `points` is how many points of each
    benchmark `perf_report` runs, None for all.
    """

    def __init__(
        self, topology: str | Path | Mapping[str, object], options: Mapping[str, Any], *, name: str = "triton",
        points: int | None = None, recipe: ScriptRecipe | None = None, make: MakeRun | None = None,
    ) -> None:  # fmt: skip
        if options.get("cached"):
            raise UsageError(
                "kb.triton cannot cache its caller's own code between launches; leave out cached=True, or put the code "
                "into a file for 'kernbench triton --cached'."
            )
        if points is not None and points < 0:
            raise UsageError(f"points must be a count of points of a benchmark, 0 or more, not {points}.")
        self.points = points
        self._launches: list[LaunchFigures] = []
        self.tunings: list[JitTuning] = []
        self.notes: list[str] = []
        self.places: list[ArrayPlace] = []
        self.result: RunResult | None = None
        shake = {name: options[name] for name in ("shake", "shake_seed") if name in options}
        options = {name: value for name, value in options.items() if name not in shake}
        self._new = partial(HeldMachine, topology, options, name, recipe, make, self.places, {})
        self._stack, self._before = ExitStack(), ExitStack()
        self._timeout_s: float | None = options.get("timeout_s")
        self._machine = self._new()
        self._trials = Trials(topology, {name: options[name] for name in _OF_TRIALS if name in options}, shake)
        self.shakes = bool(shake.get("shake"))
        self._spreads: list[TimeSpread] | None = None
        self._facts: MachineFacts | None = None
        self._trying = False
        self._pipelines = bool(options.get("pipeline_loops", True))
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
    def launches(self) -> list[LaunchFigures]:
        """The figures of the launches that are over; a script that asks for them may go on by what they say."""
        if self._launches:
            self.looked_at()
        return self._launches

    @property
    def pipelines(self) -> bool:
        """Whether loops load ahead, as deep as `num_stages` says."""
        return self._pipelines

    @property
    def verified(self) -> bool | None:
        """Whether all that kernels branched on and scripts got was confirmed, and nothing found wrong.

        None before, and where nothing is wrong but an error ended a run, of which nothing was confirmed.
        """
        if self.result is None or self.result.branch_values.confirmed is None:
            return None
        reads = self.result.branch_values, self.result.host_reads
        if not self.result.right or any(each.confirmed != each.read for each in reads):
            return False
        return None if self._unconfirmed else True

    def __enter__(self) -> TritonRun:
        self._stack.enter_context(WallTime(self._timeout_s).in_words("running the host's code"))
        if self._timeout_s is not None:  # for what comes before the run, which has a limit of its own
            self._stack.enter_context(self._before).enter_context(Alarm(self._timeout_s))
        simulation.enter(self)
        self._stack.callback(simulation.leave)
        self._stack.enter_context(imports.replaced())
        self._stack.enter_context(torch_cuda.replaced())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        right = False
        try:
            self._stack.__exit__(kind, error, traceback)  # which says of a limit where it came
            right = error is None
        finally:
            if not right:
                self._machine.abandon()
        if self._machine.open:
            self.result = self._machine.end()
        if error is None and self.shakes and not any(tuning.contest for tuning in self.tunings):
            self.note(NOTHING_SHAKEN)

    def failed(self, how: str) -> None:
        """Say how the script failed, for the result."""
        self._machine.failed(how)

    @property
    def machine(self) -> MachineFacts:
        """The machine that kernels run on."""
        if self._facts is None:
            self._facts = self._open_machine().facts()
        return self._facts

    def launch(self, asked: JitLaunch) -> LaunchFigures:
        """Run a kernel on the device, write what it wrote to the host's arrays, and return its figures."""
        self._before.close()
        asked = evolve(asked, reachable=self._addresses.arrays())
        if self._trying:
            if self._spreads is not None:
                self._spreads.append(self._trials.shaken(asked, self._machine.copies))
            return self._trials.launch(asked, self._machine.copies)
        self._trials.seen.clear()  # it may place arrays, where trials to come find them
        figures = self._open_machine().launch(asked)
        self._launches.append(figures)
        return figures

    def looked_at(self) -> None:
        """Take note that the script looks at the figures of a launch."""
        self._machine.looked_at()

    @contextmanager
    def trying(
        self, arguments: Iterable[object], hooked: bool, spreads: list[TimeSpread] | None = None
    ) -> Iterator[None]:
        """Have launches run beside the run while a block runs, and leave the arrays among `arguments` as they were.

        A launch like one before takes as long; where hooks may change arrays, each is simulated. With `spreads` it is
        shaken, too, and its spread is added there.
        """
        if hooked:
            self._trials.seen.clear()
        self._trying, self._spreads = True, spreads
        try:
            with restored(arguments if hooked else ()):
                yield
        finally:
            self._trying, self._spreads = False, None

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
    runs, the first ones; None for all. `options` are those of `kb.run`; `shake` is of what `triton.autotune` compares.

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
