"""`--explain`, `--report`, `--trace` and `--shake` of `kernbench ccl`: rows again, as runs with these parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import rich_click as click
from attrs import evolve

from kernbench_core.cli.options import with_parts
from kernbench_core.errors import UsageError
from kernbench_core.units import format_bytes

if TYPE_CHECKING:
    from kernbench_ccl.measure import Question, Setup
    from kernbench_ccl.measure.choice import Choice
    from kernbench_core.cli.shell import Shell
    from kernbench_core.engine import Limits
    from kernbench_core.host import Runtime
    from kernbench_core.runs import RunResult
    from kernbench_core.spread import TimeSpread

PARTS: Final = ("explain", "report", "trace")
"""The parts of runs that a row may have, where their plug-ins are there."""
FILES: Final = PARTS[1:]
SHAKE: Final = "shake"
"""The part that says how much times say."""


class CollectiveCommand(click.RichCommand):
    """The command of a collective, with the options of some parts of runs."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its parameters, and those of the parts."""
        return with_parts(ctx, super().get_params(ctx), takes=lambda part: part.NAME in (*PARTS, SHAKE))


def wanted_parts(options: dict[str, Any], sizes: Sequence[int], several: bool) -> dict[str, Any]:
    """Return the parts that are asked for, with what for; UsageError where there is more than one run to look at."""
    found = {name: options[name] for name in PARTS if options.get(name)}
    if not found:
        return found
    named = " and ".join(f"--{name}" for name in found)
    if len(sizes) > 1:
        raise UsageError(f"{named} must be given one size, not {len(sizes)}; give -b and -e the same, as '64K'.")
    if several:
        raise UsageError(f"{named} must be given one algorithm, not several; name one with --algo, or auto.")
    if options.get("contributors") == "pe":
        raise UsageError(f"{named} must be given one vector per rank, not --contributors pe; leave that out.")
    return found


def run_of(
    shell: Shell, question: Question, setup: Setup, choice: Choice, nbytes: int, parts: dict[str, Any], limits: Limits,
    ranks: int,
) -> RunResult:  # fmt: skip
    """Run a row out of place once more, as `kernbench run collective` does, with parts; it takes the same time.

    The result is called what the row is: the collective, its size and ranks.
    """
    from kernbench_ccl.benches.collective import bench
    from kernbench_ccl.measure.idealised import OVERLAY
    from kernbench_core.runs import configure, run

    params = {
        "collective": question.collective, "size": f"{nbytes} B", "algo": choice.algorithm.name,
        "dtype": question.dtype, "root": question.root, "settings": ", ".join(choice.settings.texts()),
        **({} if question.redop is None else {"redop": question.redop}),
    }  # fmt: skip
    topology: Any = setup.topology
    if setup.idealised and setup.components is not None:
        topology = configure(shell.plugins, topology, setup.components).data

    def named(rt: Runtime, **given: Any) -> None:
        bench(rt, **given)

    wraps(bench)(named).__name__ = f"{question.collective} of {format_bytes(nbytes)} by {ranks} ranks"
    found = run(
        named, topology, params, components=OVERLAY if setup.idealised else setup.components, set=setup.sets,
        plugins=shell.plugins, verify_data=setup.checked, data=setup.checked, backend=setup.backend,
        max_events=limits.max_events, timeout_s=limits.timeout_s, **parts,
    )  # fmt: skip
    of_unsaved = getattr(found.parts.get("verdict"), "of_unsaved", None)  # of a plug-in that may be left out
    if of_unsaved is None:
        return found
    return evolve(found, parts={**found.parts, "verdict": of_unsaved(found.asked)})


def spread_of(
    shell: Shell, question: Question, setup: Setup, choice: Choice, nbytes: int, options: dict[str, Any], limits: Limits
) -> TimeSpread:
    """Return what a row's time comes to on `options["shake"]` machines that are the same but for a thousandth."""
    shake = {name: options[name] for name in (SHAKE, f"{SHAKE}_seed")}
    unchecked = evolve(setup, checked=False)
    shaken = run_of(shell, question, unchecked, choice, nbytes, shake, limits, 0)
    found: TimeSpread = shaken.parts[SHAKE].phases["kernel"]
    return found
