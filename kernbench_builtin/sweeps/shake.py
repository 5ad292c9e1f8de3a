"""`--shake`: how much a time says, by runs on machines that are the same but for a thousandth."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_builtin.sweeps.shaken import Shaken, ShakeOptions
from kernbench_core.errors import ExecutionError, UsageError
from kernbench_core.runs.parts import RunPart
from kernbench_core.spread import TimeSpread

if TYPE_CHECKING:
    from rich.console import Console

    from kernbench_builtin.native.recorder import StreamRecorder
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.runs.options import RunCall
    from kernbench_core.runs.result import RunResult

_FEWEST: Final = 3
#: What of a run tells something of data, or writes it: a shaken run has a time alone.
_PLAIN: Final[Mapping[str, Any]] = {"verify_data": False, "verify_ops": False, "outputs": False, "out": None}


class _OtherMachine:
    """Have a machine built that is the same within a tolerance; it brings no clock of its own."""

    env: Any = None

    def __init__(self, classes: Any, seed: str) -> None:
        self._classes, self._seed = classes, seed

    def begin(self, hardware: "Hardware") -> None:
        """Put the other graph in the place of the machine's."""
        from kernbench_builtin.machines.perturbation import WITHIN, perturbed

        hardware.graph = perturbed(hardware.graph, self._classes, self._seed, WITHIN)

    def attach(self, hardware: "Hardware") -> None:
        """Look at nothing."""

    def submitted(self, request: Any) -> None:
        """Let requests of the host be."""


class ShakePart(RunPart):
    """Runs the same again on machines that are the same within a thousandth."""

    NAME, OPTIONS, ORDER, EXAMPLE = "shake", ShakeOptions, 50, {"shake": 3}

    def __init__(self, options: ShakeOptions, call: "RunCall", plugins: Any) -> None:
        super().__init__(options, call, plugins)
        if options.shake < _FEWEST:
            raise UsageError(f"shake must be {_FEWEST} runs or more, for a spread, not {options.shake}.")
        self._seed: str | None = None
        self._recorder: StreamRecorder | None = None
        self._times: list[dict[str, float]] | None = None
        self._answer: Shaken | None = None

    def around(self, make: "Callable[[], RunResult]") -> "RunResult":
        """Record the run in another process, and time that on the shaken machines, or run on each; then run itself."""
        from kernbench_builtin.machines.perturbation import WITHIN

        (first,) = self._carried_out(self._recorded, 1)
        shaken = {"error": None, "index": 0, **first}
        if shaken["error"] is None and shaken["times"] is None:
            records = self._carried_out(self._shaken, self.options.shake)
        else:
            records = [shaken] if shaken["error"] else [{"times": each} for each in shaken["times"]]
        failed = next((record for record in records if record.get("error")), None)
        if failed is None:
            times = [record["times"] for record in records]
            spreads = {name: TimeSpread.of(each[name] for each in times) for name in times[0]}
            self._answer = Shaken(spreads.pop("total"), spreads, 0.0, self.options.shake_seed, WITHIN)
        result = make()  # which tells in its own words what fails in any case
        if failed is not None:
            raise ExecutionError(f"run {failed['index']} of --shake failed: {failed['error']['sentence']}")
        return result

    def _carried_out(self, work: "Callable[[Mapping[str, Any]], dict[str, Any]]", count: int) -> list[dict[str, Any]]:
        """Do some work so many times, in processes of its own."""
        from kernbench_builtin.sweeps.executors.local import LocalExecutor
        from kernbench_builtin.sweeps.sweeping import cores

        run = {"options": {"timeout_s": self.request.options.timeout_s}}
        jobs = [{"key": str(at), "index": at, "run": run, "objectives": []} for at in range(count)]
        with LocalExecutor(min(count, cores()), ahead=0, work=work) as executor:
            executor.start()
            return sorted(executor.run(jobs), key=lambda record: record["index"])

    def _recorded(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Record the run, in a process of its own; return its times on the shaken machines, None where it cannot be.

        The first of these is simulated, too: where programs share values in Python, no recording can know.
        """
        from kernbench_builtin.native.recorder import StreamRecorder
        from kernbench_builtin.native.timing import library_file

        if "native" not in self.plugins.run_parts or library_file() is None:
            return {"index": 0, "times": None}
        self._recorder = StreamRecorder()
        made = self._made(job)
        if self._times is not None and not made.get("error"):
            self._recorder = None
            first = self._shaken({"index": 0})
            self._times = self._times if first.get("times") == self._times[0] else None
        return made | {"times": self._times}

    def _shaken(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Make one of the runs, in a process of its own; return its times, or its error."""
        self._seed = f"{self.options.shake_seed}.{job['index']}"
        return self._made(job)

    def _made(self, job: Mapping[str, Any]) -> dict[str, Any]:
        from kernbench_builtin.sweeps.evaluate import failure
        from kernbench_core.process.interrupt import WallTime
        from kernbench_core.runs.bench_run import carry_out

        try:
            request = self.request
            options = attrs.evolve(request.options, **_PLAIN)
            plain = attrs.evolve(request, options=options, out=None, parts=(self,))
            result = carry_out(plain, None, WallTime(options.timeout_s))
        except BaseException as error:
            return {"index": job["index"], **failure(error)}
        timing = result.timing
        return {"index": job["index"], "times": {"total": timing.total_ns, **timing.phases}}

    def _time_again(self, recorder: "StreamRecorder", session: "GraphEngine") -> None:
        """Time a run that was recorded on the shaken machines, if it holds there."""
        from kernbench_builtin.machines.perturbation import WITHIN, perturbed
        from kernbench_builtin.native.recorder import is_whole
        from kernbench_builtin.native.timing import Retimer

        if not is_whole(session):
            return
        recording = recorder.recording(session)
        retimer, times = Retimer(recording, self.plugins), []
        try:
            retimer.require(session.machine)
            for at in range(self.options.shake):
                seed = f"{self.options.shake_seed}.{at}"
                made = retimer.times(perturbed(session.machine, self.plugins.components, seed, WITHIN))
                times.append({"total": made.total_ns, **made.phases(recording)})
        except UsageError:
            return
        self._times = times

    def observer(self) -> "_OtherMachine | StreamRecorder | None":
        """Return who records, or has the machine of a shaken run built; nobody looks on at the run itself."""
        if self._recorder is not None:
            return self._recorder
        return None if self._seed is None else _OtherMachine(self.plugins.components, self._seed)

    def answer(self, session: "GraphEngine") -> Shaken | None:
        """Return what the other runs came to."""
        if self._recorder is not None:
            self._time_again(self._recorder, session)
        answer = self._answer
        return None if answer is None else attrs.evolve(answer, run_ns=session.get_timing_result().total_ns)

    @classmethod
    def show(cls, answer: Shaken, console: "Console", *, verbose: bool = False) -> None:
        """Print a line of the total time and one of the kernels; all phases if `verbose`."""
        console.print(f"\nshaken {answer.total.runs} times within {answer.within:.1%}: total time {answer.total}")
        for name, spread in answer.phases.items():
            if verbose or name == "kernel":
                console.print(f"  {name.replace('_', ' ')} {spread}")
        if answer.beyond:
            console.print(f"  {answer.beyond}")
