"""The command lines of one point: what it takes to make its run again, in a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kernbench_builtin.sweeps.fidelity import COARSE_BYTES, screening_of
from kernbench_builtin.sweeps.plan import TRITON, SweepPlan, params_of, point_key, settings_of
from kernbench_builtin.sweeps.results import FULL
from kernbench_builtin.sweeps.scripts import arguments_of
from kernbench_builtin.sweeps.shaken import PointOptions
from kernbench_core.runs.options import command_options

#: Units in which times of options stand, by how much of the option's unit an ns is.
_UNITS: Final = {1.0: "ns", 1e-9: "s"}


def run_command(plan: SweepPlan, values: Mapping[str, Any]) -> str:
    """Return the command that runs a point's run alone, from the folder in which the sweep was begun."""
    asked = plan.run_of(values)
    head = ["triton", plan.bench.removeprefix(TRITON)] if plan.is_script else ["run", plan.bench]
    words = ["kernbench", *head, "--topology", str(asked["topology"])]
    if asked["components"]:
        words += ["--components", str(asked["components"])]
    words += [word for setting in settings_of(asked) for word in ("--set", setting)]
    if not plan.is_script:
        given = params_of(asked)
        words += [word for name in given if given[name] is not None for word in ("-p", f"{name}={given[name]}")]
    words += _options(asked["options"])
    if plan.arguments:
        words += ["--", *arguments_of(asked)]
    return shlex.join(words)


def plan_at(plan: SweepPlan, record: Mapping[str, Any]) -> SweepPlan:
    """Return the plan of one record: that of the sweep, or, of a point that was screened, that of its screening."""
    if record.get("fidelity", FULL) == FULL:
        return plan
    coarse = screening_of(plan, 0).plan
    is_coarse = point_key(coarse.run_of(record["values"])) == record["key"]
    return coarse if is_coarse else screening_of(plan, COARSE_BYTES).plan


def page_command(folder: str, key: str) -> str:
    """Return the command that makes the page of a point's run, "" without a folder.

    It is given where `folder` is known by that name.
    """
    return folder and shlex.join(["kernbench", "report", folder, "--point", key])


def _options(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of a run as the command line has them."""
    known = command_options(PointOptions)
    for name, value in options.items():
        option = known[name]
        said = option.name or name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{said}" if value else f"--no-{said}"
        else:
            yield f"--{said}"
            yield f"{value:.15g} {_UNITS[option.per_ns]}" if option.example else str(value)
