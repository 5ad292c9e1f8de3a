"""`--shake`: how much a time says, by runs on machines that are the same but for a thousandth."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_builtin.sweeps.shaken import WITHIN, Shaken, ShakeOptions
from kernbench_core.errors import ExecutionError, UsageError
from kernbench_core.runs.parts import RunPart
from kernbench_core.spread import TimeSpread

if TYPE_CHECKING:
    from rich.console import Console

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
        from kernbench_builtin.sweeps.perturbation import perturbed

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
        self._answer: Shaken | None = None

    def around(self, make: "Callable[[], RunResult]") -> "RunResult":
        """Make the shaken runs, each in a process of its own, then the run itself."""
        from kernbench_builtin.sweeps.executors.local import LocalExecutor
        from kernbench_builtin.sweeps.sweeping import cores

        count = self.options.shake
        run = {"options": {"timeout_s": self.request.options.timeout_s}}
        jobs = [{"key": str(at), "index": at, "run": run, "objectives": []} for at in range(count)]
        with LocalExecutor(min(count, cores()), ahead=0, work=self._shaken) as executor:
            executor.start()
            records = sorted(executor.run(jobs), key=lambda record: record["index"])
        failed = next((record for record in records if record.get("error")), None)
        if failed is None:
            times = [record["times"] for record in records]
            spreads = {name: TimeSpread.of(each[name] for each in times) for name in times[0]}
            self._answer = Shaken(spreads.pop("total"), spreads, 0.0, self.options.shake_seed, WITHIN)
        result = make()  # which tells in its own words what fails in any case
        if failed is not None:
            raise ExecutionError(f"run {failed['index']} of --shake did not end well: {failed['error']['sentence']}")
        return result

    def _shaken(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Make one of the runs, in a process of its own; return its times, or its error."""
        from kernbench_builtin.sweeps.evaluate import failure
        from kernbench_core.process.interrupt import WallTime
        from kernbench_core.runs.bench_run import carry_out

        self._seed = f"{self.options.shake_seed}.{job['index']}"
        try:
            request = self.request
            options = attrs.evolve(request.options, **_PLAIN)
            plain = attrs.evolve(request, options=options, out=None, parts=(self,))
            result = carry_out(plain, None, WallTime(options.timeout_s))
        except BaseException as error:
            return {"index": job["index"], **failure(error)}
        timing = result.timing
        return {"index": job["index"], "times": {"total": timing.total_ns, **timing.phases}}

    def observer(self) -> "_OtherMachine | None":
        """Return who has the machine of a shaken run built; nobody looks on at the run itself."""
        return None if self._seed is None else _OtherMachine(self.plugins.components, self._seed)

    def answer(self, session: "GraphEngine") -> Shaken | None:
        """Return what the other runs came to."""
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
