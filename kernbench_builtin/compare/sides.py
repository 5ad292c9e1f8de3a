"""The two runs that are compared: read, or made now."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_builtin.compare import figures_of, figures_of_saved
from kernbench_builtin.compare.figures import RunFigures
from kernbench_core.cli.run import Look, with_progress
from kernbench_core.host.bench import parse_assignments
from kernbench_core.host.programs import open_program
from kernbench_core.host.sources import file_and_function
from kernbench_core.process.interrupt import doing
from kernbench_core.runs.bench_run import configure
from kernbench_core.runs.bench_run import run as run_bench
from kernbench_core.topology.compilation import compile_topology

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell
    from kernbench_core.runs.result import RunResult

#: The options of B alone, by what they stand for.
OF_B: Final = ("b_bench", "b_topology", "b_components", "b_set", "b_param")


@attrs.frozen
class ComparedSide:
    """One of the two runs: its figures, whether nothing that was verified is wrong, and where it is saved, if it is."""

    figures: RunFigures
    right: bool
    saved: Path | None = None


def saved_side(given: str) -> ComparedSide:
    """Read a saved run; UsageError for what is none."""
    figures = figures_of_saved(given)
    return ComparedSide(figures, figures.verified is not False, Path(given))


def run_sides(
    shell: Shell, bench: str, asked: Mapping[str, Any], folder: Path | None, look: Look
) -> tuple[ComparedSide, ComparedSide]:
    """Run a bench as it was asked for, and again with what was asked of B alone; for a page also into a `folder`."""
    plain = {name: value for name, value in asked.items() if name not in (*OF_B, "params")}
    other = {
        **plain,
        "topology": asked["b_topology"] or plain["topology"],
        "components": asked["b_components"] or plain["components"],
        "set": (*plain["set"], *asked["b_set"]),
    }
    params = parse_assignments(asked["params"], "-p")
    b_params = {**params, **parse_assignments(asked["b_param"], "--b-param")}
    b_bench = asked["b_bench"] or bench
    with doing("checking what B has otherwise"), warnings.catch_warnings(action="ignore"):  # its run warns
        plugins = shell.plugins
        config = configure(plugins, other["topology"], other["components"], other["set"])
        compile_topology(config, plugins)
        open_program(b_bench, plugins).values(b_params)  # before the run of A, which may be long
    return (
        _made(shell, bench, params, plain, f"{bench} on {plain['topology']}", folder and folder / "A", look),
        _made(shell, b_bench, b_params, other, _name_of_b(b_bench, other, asked), folder and folder / "B", look),
    )


def _name_of_b(bench: str, other: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return what B is called: what it has otherwise."""
    file = [asked["b_components"]] if asked["b_components"] else []
    changed = [*file, *asked["b_set"], *asked["b_param"]]
    return ", ".join([f"{bench} on {other['topology']}", *changed])


def _made(
    shell: Shell, bench: str, params: Mapping[str, Any], asked: Mapping[str, Any], name: str, out: Path | None,
    look: Look,
) -> ComparedSide:  # fmt: skip
    """Run one side, with the reasons for its time where a plug-in finds them."""
    reasons = {name: True for name in ("explain",) if name in shell.plugins.run_parts}

    def carry_out(on_progress: Callable[[Any], None] | None) -> RunResult:
        return run_bench(
            bench, params=params, on_progress=on_progress, plugins=shell.plugins, out=out, **reasons, **asked
        )

    result: RunResult = with_progress(carry_out, name, look)
    if result.from_cache:
        shell.note(result.cache_note)
    return ComparedSide(figures_of(result, name, _file_of(bench)), result.right, out)


def _file_of(bench: str) -> Mapping[str, str]:
    """Return the text of the file of a bench by its name; nothing for a registered one."""
    found = file_and_function(bench)
    if found is None:
        return {}
    try:
        return {Path(found[0]).name: Path(found[0]).read_text(encoding="utf-8")}
    except (OSError, ValueError):
        return {}
