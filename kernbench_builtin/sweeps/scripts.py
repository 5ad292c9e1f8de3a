"""A script written in Triton as what a sweep runs: its launches are timed, its arguments are those of the point."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, Any, Final

from kernbench_builtin.sweeps.axes import value_text
from kernbench_builtin.sweeps.plan import TRITON, SweepPlan
from kernbench_core.errors import KernbenchError, KernelError, UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.runs.result import RunResult

#: Options of a run that a script has not.
NOT_OF_SCRIPTS: Final = ("race_by", "materialize", "verify_data", "grid")
_HOLE: Final = re.compile(r"\{([\w.]+)\}")


def run_script(asked: Mapping[str, Any], how: Mapping[str, Any]) -> RunResult:
    """Run the script of a point on its machine, and return what its launches gave.

    Raise the KernbenchError that a launch raised, and KernelError for a script that ends otherwise than well, or that
    launches nothing.
    """
    from kernbench_builtin.triton.script import Script
    from kernbench_builtin.triton.session import TritonRun

    path = asked["bench"].removeprefix(TRITON)
    session = TritonRun(asked["topology"], dict(how), name=path)
    told = io.StringIO()
    with redirect_stderr(told):
        code = Script(path, arguments_of(asked)).run(session)
    if code:
        last = told.getvalue().strip().rpartition("\n")[2]
        raise KernelError(f"script {path!r} must end with exit code 0, not {code}" + (f": {last}" if last else "."))
    if session.result is None:
        raise KernelError(f"script {path!r} must launch a kernel, and launches none; there is nothing to time.")
    return session.result


def arguments_of(asked: Mapping[str, Any]) -> list[str]:
    """Return the arguments of a script at a point, with the values of what stands in braces."""
    known = {**asked["set"], **asked["params"]}
    return [_HOLE.sub(lambda hole: value_text(known[hole[1]]), text) for text in asked["arguments"]]


def named_in(arguments: Iterable[str]) -> set[str]:
    """Return what arguments of a script name in braces."""
    return {name for text in arguments for name in _HOLE.findall(text)}


def script_problems(plan: SweepPlan) -> Iterator[str]:
    """Yield all that is wrong with a script and its arguments."""
    from kernbench_builtin.triton.script import Script

    try:
        Script(plan.bench.removeprefix(TRITON)).check()
    except KernbenchError as error:
        yield str(error)
    run = plan.run_of({axis.name: axis.looked_at()[0] for axis in plan.axes})
    yield from _hole_problems(plan.arguments, {**run["set"], **run["params"]}, run["params"])
    if plan.cached:
        yield "--cached must be left out for a script written in Triton, whose points are run each time."
    for name in NOT_OF_SCRIPTS:
        if name in plan.options:
            flag = name.replace("_", "-")
            yield f"--{flag} must be left out for a script written in Triton, which has no such option."


def _hole_problems(arguments: Iterable[str], known: Mapping[str, Any], params: Mapping[str, Any]) -> Iterator[str]:
    used = named_in(arguments)
    for name in sorted(used - known.keys()):
        yield f"argument {{{name}}} of the script must name what -p or --set gives.{did_you_mean(name, known)}"
    for name in params:
        if name not in used:
            yield f"parameter {name!r} of a script must stand in its arguments, as '-- --{name} {{{name}}}'; add it."


def require_no_arguments(plan: SweepPlan) -> None:
    """Raise UsageError for arguments of what is no script."""
    if plan.arguments and not plan.is_script:
        raise UsageError(
            f"arguments must be given to a Triton script, {TRITON}FILE.py, not to bench {brief(plan.bench)}; give its "
            "parameters with -p."
        )
