"""The figures of a run that was saved: a folder of `--out`, or what `--json` printed; what they lack is said."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from kernbench_builtin.compare.figures import SCHEMA, RunFigures
from kernbench_builtin.compare.run_figures import LINK_COLUMNS, figures_of_json
from kernbench_builtin.compare.saved_result import RESULT, check_result, read_json, read_result
from kernbench_builtin.machines.figures.columns import ColumnTable
from kernbench_builtin.machines.figures.columns_file import load_columns
from kernbench_builtin.saved.whole_folder import link_on_the_way
from kernbench_core.errors import UsageError
from kernbench_core.process.whole_files import is_file

#: The file of all links in a run's folder.
LINKS: Final = "links.npz"
#: The folder of the bench's own files.
BENCH: Final = "bench"
_MANIFEST: Final = "kernbench.manifest/1"


@attrs.frozen
class SavedAnswer:
    """What is saved of a run: what it answered, all its links where they were kept, its folder if it has one.

    `files` are the texts of the bench's own files, by their names.
    """

    result: Mapping[str, Any]
    links: ColumnTable | None = None
    folder: Path | None = None
    files: Mapping[str, str] = attrs.field(factory=dict)


def figures_of_saved(path: str | Path) -> RunFigures:
    """Return the figures of a saved run, or ones that were saved as such; UsageError for what holds none."""
    path, name = Path(path), str(path)
    if is_file(path):
        found = read_json(path)
        held = found.get("figures", found)  # a golden file of a test holds figures
        if isinstance(held, dict) and held.get("schema") == SCHEMA:
            return attrs.evolve(RunFigures.from_json(held, f"file {name!r}"), name=name)
    saved = read_saved(path)
    return figures_of_json(saved.result, saved.links, name, saved.files)


def read_saved(path: Path) -> SavedAnswer:
    """Read the folder of a run, the manifest in it, or a file of `--json`; UsageError for what is none of these."""
    if not path.is_dir() and not is_file(path):
        told = "a folder that --out wrote, or a file that --json was written to"
        raise UsageError(f"run {str(path)!r} must be {told}, and is not there.")
    if path.is_dir():
        return read_folder(path)
    found = read_json(path)
    if found.get("schema") == _MANIFEST:
        if (path.parent / RESULT).is_file():
            return read_folder(path.parent)
        raise _no_result(path)
    inside = found.get("result")  # a rerun, or a script
    if isinstance(inside, dict):
        found = inside
    check_result(path, found)
    return SavedAnswer(found)


def _no_result(path: Path) -> UsageError:
    return UsageError(
        f"run {str(path)!r} must be a saved result, not a manifest, which holds no results; make one by kernbench "
        f"rerun {shlex.quote(str(path))} --json > FILE."
    )


def read_folder(folder: Path) -> SavedAnswer:
    """Read the folder of a run; UsageError for what is missing, cut off, changed, or of a later kernbench."""
    result, file = read_result(folder), folder / LINKS
    links = load_columns(file) if file.is_file() else None
    if links is not None and not {*LINK_COLUMNS} <= {*links.keys()}:
        missing = sorted({*LINK_COLUMNS} - {*links.keys()})
        raise UsageError(f"file {str(file)!r} must hold the columns {', '.join(missing)}; run it again with --out.")
    return SavedAnswer(result, links, folder, dict(_bench_files(folder / BENCH)))


def _bench_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of the Python files below a folder; of links, and of what is no text, nothing."""
    for file in sorted(folder.rglob("*.py")) if folder.is_dir() and not folder.is_symlink() else ():
        name = file.relative_to(folder).as_posix()
        if file.is_file() and link_on_the_way(folder, name) is None:
            with suppress(OSError, ValueError):
                yield name, file.read_text(encoding="utf-8")
