"""Folders of runs: those that are whole are read, others are refused in one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kernbench_builtin.machines.drawing import draw_machine
from kernbench_builtin.pages.report.saved_runs import read_run
from kernbench_core.errors import UsageError
from kernbench_core.units import format_time
from tests.builtin.report.pages import result
from tests.core.small_machine import machine

LAUNCH = {"kernel": "k", "started_ns": 1, "ended_ns": 2.5, "busiest": [{"name": "a", "utilisation": 0.5}]}


def saved(tmp_path: Path) -> Path:
    """Return a folder with a result and a machine."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "result.json").write_text(json.dumps(result()))
    (folder / "machine.json").write_text(json.dumps(draw_machine(machine()).to_json()))
    return folder


def test_a_whole_folder_is_read(tmp_path: Path) -> None:
    """Its name is the folder's unless it is given one; without a machine it is read too."""
    folder = saved(tmp_path)
    page = read_run(folder)
    assert (page.name, page.total_ns) == ("run", 100.0)
    assert page.drawing == draw_machine(machine())
    (folder / "machine.json").unlink()
    assert read_run(folder, "mine").drawing is None


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("result.json", None, "run '{run}' must hold result.json, and does not; give a folder that --out wrote."),
        (
            "result.json",
            '{"schema": "kernb',
            "file '{run}/result.json' must be whole JSON, and is cut off or changed; run it again with --out.",
        ),
        ("result.json", "[]", "file '{run}/result.json' must hold a JSON object; run it again with --out."),
        (
            "result.json",
            '{"schema": "kernbench.run/2"}',
            "file '{run}/result.json' must have schema 'kernbench.run/1', not 'kernbench.run/2'; a later kernbench "
            "wrote it; use a newer kernbench.",
        ),
        (
            "result.json",
            '{"schema": 99}',
            "file '{run}/result.json' must have schema 'kernbench.run/1', not 99; a later kernbench wrote it; use a "
            "newer kernbench.",
        ),
        *(
            (
                "result.json",
                json.dumps({"schema": other}),
                f"file '{{run}}/result.json' must have schema 'kernbench.run/1', not {other!r}; give a folder that "
                "--out wrote.",
            )
            for other in ("kernbench.run/0", "kernbench.run/1 ", "kernbench.run/²", "kernbench.trace/2", None, True)
        ),
        (
            "result.json",
            '{"schema": "other"}',
            "file '{run}/result.json' must have schema 'kernbench.run/1', not 'other'; give a folder that --out wrote.",
        ),
        (
            "result.json",
            json.dumps({**result(), "ops": "many", "rows": None}),
            "file '{run}/result.json' must hold ops as an integer, not 'many'; run it again with --out.",
        ),
        (
            "result.json",
            json.dumps({name: value for name, value in result().items() if name != "rows"}),
            "file '{run}/result.json' must hold rows, which is missing; run it again with --out.",
        ),
        (
            "result.json",
            json.dumps(result(launches=[LAUNCH, {**LAUNCH, "started_ns": "soon"}])),
            "file '{run}/result.json' must hold launches[1].started_ns as a number, not 'soon'; run it again with "
            "--out.",
        ),
        (
            "result.json",
            json.dumps(result(launches=[{**LAUNCH, "busiest": [{"name": "a"}]}])),
            "file '{run}/result.json' must hold launches[0].busiest[0].utilisation, which is missing; run it again "
            "with --out.",
        ),
        (
            "result.json",
            json.dumps(result(launches={"kernel": "k" * 40})),
            "file '{run}/result.json' must hold launches as a list, not {{'kernel': 'kkkkkkkkkkkkkkkkkkkkkkkkkkk…; run "
            "it again with --out.",
        ),
        (
            "result.json",
            json.dumps(result(phases={"kernel": True})),
            "file '{run}/result.json' must hold phases.kernel as a number, not True; run it again with --out.",
        ),
        (
            "result.json",
            json.dumps(result(explain=[1])),
            "file '{run}/result.json' must hold explain as an object, not [1]; run it again with --out.",
        ),
        (
            "result.json",
            json.dumps({**result(), "total_ns": float("nan")}),
            "file '{run}/result.json' must hold finite numbers, not NaN; run it again with --out.",
        ),
        (
            "result.json",
            json.dumps({**result(), "phases": {"kernel": float("-inf")}}),
            "file '{run}/result.json' must hold finite numbers, not -Infinity; run it again with --out.",
        ),
        (
            "result.json",
            json.dumps(result()).replace('"total_ns": 100.0', '"total_ns": 1e999'),
            "file '{run}/result.json' must hold finite numbers, not 1e999; run it again with --out.",
        ),
        (
            "machine.json",
            '{"schema": "kernbench.machine/9"}',
            "file '{run}/machine.json': schema must be 'kernbench.machine/1', not 'kernbench.machine/9'; a later "
            "kernbench wrote it; use a newer kernbench.",
        ),
    ],
)
def test_what_is_not_whole_is_refused(tmp_path: Path, file: str, text: str | None, told: str) -> None:
    """One sentence, with what to do."""
    folder = saved(tmp_path)
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(text)
    with pytest.raises(UsageError) as caught:
        read_run(folder)
    assert str(caught.value) == told.format(run=folder)


@pytest.mark.parametrize(("total", "kernel"), [(1.0, 60.0), (100.0, 60.5), (100.0, -60.0)])
def test_phases_sum_to_the_total(tmp_path: Path, total: float, kernel: float) -> None:
    """A total or a phase that was changed is told; the last bits of sums are not looked at."""
    folder = saved(tmp_path)
    file, phases = folder / "result.json", {"kernel": kernel, "launch": 40.0}
    file.write_text(json.dumps(result(total_ns=total, phases=phases)))
    told = f"{format_time(total)}, not to {format_time(kernel + 40.0)}; run it again with --out."
    with pytest.raises(UsageError, match=re.escape(told)) as caught:
        read_run(folder)
    assert str(caught.value) == f"file {str(file)!r} must hold phases that sum to its total_ns, {told}"
    file.write_text(json.dumps(result(total_ns=100.0 * (1 + 1e-12))))
    assert read_run(folder).total_ns > 100.0


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    """A file, or nothing."""
    (tmp_path / "file").touch()
    for name, what in (("file", "is a file"), ("none", "does not exist")):
        with pytest.raises(UsageError) as caught:
            read_run(tmp_path / name)
        assert str(caught.value) == (
            f"run '{tmp_path / name}' must be a folder that --out wrote, and {what}; give such a folder."
        )
