"""The folder that a run writes: inputs, op log, result and manifest, whole or not at all, and nobody else's files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs

from kernbench_builtin.saved.whole_folder import files_below, link_on_the_way, whole_folder
from kernbench_core.errors import UsageError
from kernbench_core.process.whole_files import folder_above, write_text
from kernbench_core.runs.manifest import BENCH, INPUTS, MANIFEST, PARAMS, SCHEMA, array_files, write_npy
from kernbench_core.runs.result import RunResult, json_text

if TYPE_CHECKING:
    from kernbench_core.runs.parts import Request

#: The folder of the op log inside --out.
OP_LOG = "oplog"
_OUTPUTS = "outputs"
_MOST_LETTERS = 200
_RESULT = "result.json"
#: What stands at the top of such a folder.
_TOP = frozenset({_OUTPUTS, MANIFEST, _RESULT, OP_LOG, BENCH, INPUTS, PARAMS})


@attrs.frozen
class OutFolder:
    """A folder that can be written: `written` are the files in it that an earlier run wrote, relative to it.

    `more` are the files that parts of the run write into it.
    """

    path: Path
    written: frozenset[str] = frozenset()
    more: tuple[str, ...] = ()

    def holds(self, file: Path) -> bool:
        """Whether a run writes `file`, or into it, when it writes this folder; links are followed already."""
        return file == self.path or (
            file.is_relative_to(self.path) and file.relative_to(self.path).parts[0] in {*_TOP, *self.more}
        )

    def check_room(self, request: Request) -> None:
        """Raise UsageError, before the run, where it would replace a file that no run wrote."""
        sources = request.bench.sources
        own = () if sources is None else (f"{BENCH}/{name}" for name in sources.files)
        for name in sorted({*_TOP, *self.more}):
            _refuse_link(self.path, name)
        for name in (MANIFEST, _RESULT, OP_LOG, *self.more, _OUTPUTS, BENCH, *own, *array_files(request.values)):
            path = self.path / name
            _refuse_link(self.path, name)
            is_folder = name in (OP_LOG, _OUTPUTS, BENCH) and path.is_dir()
            if os.path.lexists(path) and name not in self.written and not is_folder:
                raise UsageError(f"--out must not replace {str(path)!r}, which no run wrote; move it away.")

    @contextmanager
    def whole(self, request: Request, result: RunResult, functions: Mapping[str, str]) -> Iterator[Path]:
        """Write inputs, op log and result; when the block ends well, also the manifest with SHA-256, or nothing.

        The block may write more into the folder that it gets. `functions` say who computes which op.
        """
        from kernbench_builtin.saved.saved_run import save_run

        try:
            with whole_folder(self.path, self.written) as folder:
                _write_inputs(folder, request)
                save_run(folder / OP_LOG, result.op_log, result.store, functions)
                for name, array in result.outputs.computed.items():
                    (folder / _OUTPUTS).mkdir(exist_ok=True)
                    with (folder / file_of(name)).open("xb") as file:
                        write_npy(array, file.write)
                write_text(folder / _RESULT, result.json_text())
                yield folder
                files = {name: _sha256(folder / name) for name in files_below(folder)}
                write_text(folder / MANIFEST, json_text({**result.manifest, "files": files}))
        except (OSError, UsageError):
            if MANIFEST not in self.written and (self.path / MANIFEST).is_file():
                raise UsageError(
                    f"--out must name a folder for one run at a time, and another run wrote {str(self.path)!r} in the "
                    "meantime: this one is not kept; run it again into another folder."
                ) from None
            raise

    def only_in_memory(self, request: Request) -> str:
        """Say why the run in it cannot be run again; "" where it can be: a function of a module can be imported."""
        bench = request.bench
        function, own = bench.function, bench.sources is not None or bench.registered or bench.recipe is not None
        if own or (function.__module__ != "__main__" and "<" not in function.__qualname__):
            return ""
        return (
            f"the run in {str(self.path)!r} cannot be run again, as {bench.name!r} is a function in memory, whose "
            f"source is not saved; write it to a file, and give 'FILE.py:{bench.name}'."
        )


def out_folder(out: str | Path, more: tuple[str, ...]) -> OutFolder:
    """Check, before the run, that `out` can become a run's folder, with `more` files; raise UsageError otherwise.

    It must be new, empty, or hold an earlier run, whose files are replaced; others beside them stay. Folders above it
    need not be there.
    """
    shown = repr(str(out))
    path = Path(os.path.realpath(out))
    here = Path.cwd()
    if path == here or path in here.parents:
        raise UsageError(
            f"--out must name a folder of its own, not {shown}, which is the current one or one above it; give a new "
            "name."
        )
    for link in (each for each in (path, *path.parents) if each.is_symlink()):  # all others were followed
        name = shown if link == path else repr(str(link))
        raise UsageError(f"--out must name a folder, not {name}, a link that leads back to itself; remove it.")
    if path.exists() and not path.is_dir():
        raise UsageError(f"--out must name a folder, not the file {shown}.")
    folder_above("--out", Path(out))
    above = folder_above("--out", path)
    if not os.access(path if path.exists() else above, os.W_OK | os.X_OK):
        raise UsageError(f"--out must be a folder that can be written, not {shown}; give another one.")
    if not path.exists() or not any(path.iterdir()):
        return OutFolder(path, more=more)
    return OutFolder(path, _written(path, shown), more)


def _written(path: Path, shown: str) -> frozenset[str]:
    """Return what an earlier run wrote into a folder; UsageError where none did, or where that was changed since."""
    try:
        found = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        files: Any = found["files"] if found["schema"] == SCHEMA else None
        names = {str(name): str(sha256) for name, sha256 in files.items()}
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise UsageError(
            f"--out must name a new folder, an empty one, or one that a run wrote, not {shown}, which holds other "
            "things; give another one."
        ) from None
    for name, sha256 in names.items():
        file = path / name
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name:
            raise UsageError(
                f"--out must be a folder as a run wrote it, but the manifest in {shown} names {name!r}; give another "
                "one."
            )
        _refuse_link(path, name)
        if file.is_file() and _sha256(file) != sha256:
            raise UsageError(
                f"--out must not replace {str(file)!r}, which was changed after a run wrote it; move it away, or give "
                "another folder."
            )
    _refuse_link(path, MANIFEST)
    return frozenset({*names, MANIFEST})


def _refuse_link(path: Path, name: str) -> None:
    """Raise UsageError where a link stands on the way to a file that a run writes: what it leads to is the user's."""
    link = link_on_the_way(path, name)
    if link is not None:
        raise UsageError(
            f"--out must not write or delete through {str(link)!r}, which is a link; remove it, or give another folder."
        )


def file_of(name: str) -> str:
    """Return the name of an output's file: letters, digits, `.`, `-` and `_` stay, all others are written as %XX."""
    text = quote(name, safe="")[:_MOST_LETTERS]
    return f"{_OUTPUTS}/{text}.npy"


def _write_inputs(folder: Path, request: Request) -> None:
    """Write arrays, files that were read, and the bench with its own modules, as they were, into a new folder."""
    for name, array in array_files(request.values).items():
        (folder / name).parent.mkdir(exist_ok=True)
        with (folder / name).open("xb") as file:
            write_npy(array, file.write)
    sources = request.bench.sources
    files = {BENCH: {} if sources is None else sources.files, INPUTS: request.inputs.kept}
    for path, data in ((folder / kind / name, data) for kind in files for name, data in files[kind].items()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
