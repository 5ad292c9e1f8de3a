"""The page of a run that was saved with --out: read whole, or refused in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kernbench_builtin.compare.saved_figures import read_folder, read_saved
from kernbench_builtin.compare.saved_result import AGAIN, RESULT, check_schema, read_json
from kernbench_builtin.machines.drawing import MachineDrawing
from kernbench_builtin.machines.drawing.machine_drawing import SCHEMA as MACHINE_SCHEMA
from kernbench_builtin.pages.report.run_page import RunPage
from kernbench_builtin.pages.timeline import TIMELINE, Timeline, load
from kernbench_core.errors import UsageError
from kernbench_core.wording import schema_hint

MACHINE: Final = "machine.json"


def read_run(folder: Path, name: str = "") -> RunPage:
    """Read the folder of a run; UsageError for what is missing, cut off, changed, or of a later kernbench."""
    saved = read_folder(folder)
    machine = read_machine(folder)
    timeline_path = folder / TIMELINE
    timeline = load(timeline_path) if timeline_path.is_file() else None
    sources = dict(_sources(timeline, folder))
    return RunPage(
        name or folder.name or str(folder), saved.result, machine, timeline, sources, links=saved.links,
        bench_files=saved.files,
    )  # fmt: skip


def read_page(path: Path, name: str) -> RunPage:
    """Read the folder of a run, the manifest in it, or a file of `--json`; UsageError for what is none of these."""
    saved = read_saved(path)
    return RunPage(name, saved.result, links=saved.links) if saved.folder is None else read_run(saved.folder, name)


def check_version(folder: Path) -> None:
    """Raise UsageError where the folder of a run has a result of another version, or one that cannot be read."""
    path = folder / RESULT
    if path.is_file():
        check_schema(path, read_json(path))


def read_machine(folder: Path) -> Mapping[str, Any] | None:
    """Read the machine of a run as it is drawn, None where there is none; UsageError for one that is damaged."""
    path = folder / MACHINE
    machine = read_json(path) if path.is_file() else None
    if machine is not None:
        try:
            MachineDrawing.from_json(machine)
        except ValueError as error:
            hint = schema_hint(machine.get("schema"), MACHINE_SCHEMA, AGAIN.rstrip("."))
            raise UsageError(f"file {str(path)!r}: {error}; {hint}.") from None
    return machine


def _sources(timeline: Timeline | None, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of the files of kernels that the folder holds; of others only the lines that ran are known.

    What a folder names elsewhere is not read: it may come from somebody else.
    """
    for name in dict.fromkeys(line.rpartition(":")[0] for line in (() if timeline is None else timeline.lines)):
        own = folder / "bench" / Path(name).name
        if own.is_file() and not own.is_symlink():
            with suppress(OSError, ValueError):
                yield name, own.read_text(encoding="utf-8")
