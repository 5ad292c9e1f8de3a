"""The folder of a sweep: its plan, a record of each point, and the table, each file whole or absent.

    sweep.json            the plan, and what made it
    points/KEY.json       the record of one point
    table.jsonl, .csv     the points in order, made anew of the records

A record is never changed, but for one of a point that failed and is tried again. One sweep at a time writes a folder.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from kernbench_builtin.sweeps.evaluate import POINT_SCHEMA, STATUSES, folder_of
from kernbench_builtin.sweeps.plan import SweepPlan
from kernbench_builtin.sweeps.results import FULL, SweepResult
from kernbench_core.cache.dependencies import digest_of
from kernbench_core.errors import KernbenchWarning, UsageError
from kernbench_core.package import __version__
from kernbench_core.wording import brief, schema_hint

SWEEP_SCHEMA: Final = "kernbench.sweep/1"
_PLAN, _POINTS, _LOCK = "sweep.json", "points", "sweep.lock"
_ELSEWHERE: Final = "give another folder"
#: What every record has, and of which type.
_FORM: Final = {
    "files": dict, "code": str, "index": int, "values": dict, "status": str, "figures": dict, "objectives": dict,
    "error": (dict, type(None)),
}  # fmt: skip
#: The end of names that nobody else gives a file.
_TEMPORARY = ".kernbench-tmp"


@frozen
class SweepFolder:
    """A folder that this process writes a sweep into, and nobody else does meanwhile.

    Of one that is not `kept` when the sweep is over no record is written.
    """

    path: Path
    plan: SweepPlan
    kept: bool = True
    #: A digest of the code and the files that points are made of.
    code: str = ""
    _records: dict[str, dict[str, Any]] = field(factory=dict)

    @property
    def records(self) -> Mapping[str, dict[str, Any]]:
        """The records of all points that are over, by key."""
        return self._records

    def put(self, record: dict[str, Any]) -> None:
        """Keep a record: when this returns it is on the disk, and it is there whole or not at all.

        Raise UsageError where there is no room for it, or the folder cannot be written.
        """
        with _explain_write_error(self.path):
            if self.kept:
                write_whole(self.path / _POINTS / f"{record['key']}.json", _text(record))
        self._records[record["key"]] = record

    def sweep(self) -> SweepResult:
        """Return what there is."""
        return SweepResult(self.plan, _in_order(self._records.values()), self.path)

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the folder, whole or not at all; UsageError where that fails."""
        with _explain_write_error(self.path):
            write_whole(self.path / name, data)


@contextmanager
def open_sweep(
    path: Path, plan: SweepPlan, digests: Mapping[str, str] | None = None, *, most: int | None = None,
    kept: bool = True, retry_changed: bool = False,
) -> Iterator[SweepFolder]:  # fmt: skip
    """Give the folder of a sweep, new or as an earlier one of the same plan left it; locked while the block runs.

    `digests` are those of the files that the plan names, and of the code that computes; `most` is how many points there
    are to be at most. Raise UsageError where another sweep is at work there, and where the folder holds something else:
    another plan, records of another version, and points made of files or code that were changed since; with
    `retry_changed` their records are removed, and those of points that failed, of which nobody knows what they read.
    Warn where files are changed while the block runs.
    """
    with _made(path):
        _check_free(path)
        (path / _POINTS).mkdir(parents=True, exist_ok=True)
    with _locked(path):
        for stale in (*path.glob(f"*{_TEMPORARY}"), *(path / _POINTS).glob(f"*{_TEMPORARY}")):
            stale.unlink(missing_ok=True)
        files = dict(digests or {})
        head = {"schema": SWEEP_SCHEMA, "version": __version__, "files": files, "points": most, "plan": plan.to_json()}
        code = hashlib.sha256(_text(files)).hexdigest() if files else ""
        records = {record["key"]: record for record in _read_records(path)}
        if (path / _PLAN).exists():
            _check_same(path, head)
        changed = _changed(records, code, folder_of(plan.bench))
        if changed and not retry_changed:
            old = _read_head(path)["files"]
            of_plan = [name for name, digest in files.items() if old.get(name, digest) != digest]
            name = next(filter(None, [*of_plan, *changed.values()]), "the code of kernbench or of a plug-in")
            raise UsageError(
                f"the points in {str(path)!r} must be of the same files, but {name!r} has changed for "
                f"{len(changed):,} of them; run these again with --retry-changed, or give another folder."
            )
        gone = {key for key, record in records.items() if changed and (key in changed or record["error"])}
        with _explain_write_error(path):
            for key in gone:  # before anything else: what stayed would be shown beside what is made now
                (path / _POINTS / f"{key}.json").unlink()
            write_whole(path / _PLAN, _text(head))
        folder = SweepFolder(path, plan, kept, code, {key: each for key, each in records.items() if key not in gone})
        yield folder
        _warn_of_changes(folder.records.values(), files)


def _warn_of_changes(records: Iterable[Mapping[str, Any]], files: Mapping[str, str]) -> None:
    """Warn where points are of other content of one file, or a file is not what it was when the sweep began."""
    seen: dict[str, str] = {}
    made_of = (each for record in records for each in record["files"].items())
    torn = [name for name, digest in made_of if seen.setdefault(name, digest) != digest]
    torn += [name for name, digest in files.items() if Path(name).is_file() and digest_of(name) != digest]
    if torn:
        warnings.warn(
            f"{torn[0]!r} was changed while the sweep went on, and its points may be of two versions; run it again, in "
            "a folder with --retry-changed.",
            KernbenchWarning,
            stacklevel=3,
        )


def _changed(records: Mapping[str, Mapping[str, Any]], code: str, folder: Path) -> dict[str, str]:
    """Return the keys of the records made of other code, or of files that were changed since, with one such file."""
    told = {each for record in records.values() for each in record["files"].items()}
    other = {each for each in told if digest_of(each[0] if each[0][0] == "$" else str(folder / each[0])) != each[1]}
    found = {}
    for key, record in records.items():
        names = [each[0] for each in record["files"].items() if each in other]
        if names or record["code"] != code:
            found[key] = next(iter(names), "")
    return found


def read_sweep(path: str | Path) -> SweepResult:
    """Read the folder of a sweep, finished or not; UsageError for what is none, and for one of another version."""
    folder = Path(path)
    head = _read_head(folder)
    return SweepResult(
        SweepPlan.from_json(head["plan"]), _in_order(_read_records(folder)), folder, most=head.get("points")
    )


def is_sweep(path: str | Path) -> bool:
    """Whether there is a folder of a sweep."""
    try:
        return (Path(path) / _PLAN).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def write_whole(path: Path, data: bytes) -> None:
    """Have a file hold `data` on the disk, or be as it was, whatever ends this process or the machine, and when."""
    temporary = path.parent / f".{path.name}.{os.getpid()}{_TEMPORARY}"
    try:
        with temporary.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    above = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(above)
    finally:
        os.close(above)


def _text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _in_order(records: Any) -> tuple[Mapping[str, Any], ...]:
    """Return records in the order of their points; those that were screened come before those that ran in full."""
    return tuple(sorted(records, key=lambda each: (each.get("fidelity") == FULL, each["index"], each["key"])))


def _check_free(path: Path) -> None:
    """Raise UsageError where no sweep may be written: into a file, or beside other things."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"-o must name a folder, not the file {str(path)!r}; give another name.")
    if path.is_dir() and not is_sweep(path):
        others = [each.name for each in path.iterdir() if each.name not in (_POINTS, _LOCK)]
        others = [name for name in others if not name.endswith(_TEMPORARY)]
        if others:
            raise UsageError(
                f"-o must name a new folder, an empty one, or that of a sweep, not {str(path)!r}, which holds "
                f"{sorted(others)[0]!r}; give another name."
            )
        if any((path / _POINTS).glob("*.json")):
            raise UsageError(
                f"-o must not name a folder with points and without {_PLAN!r}, as {str(path)!r}: nothing says which "
                f"sweep they belong to; {_ELSEWHERE}."
            )


def _read_head(path: Path) -> dict[str, Any]:
    """Read what a folder says of its sweep; UsageError where it is none, or of another version."""
    if not is_sweep(path):
        raise UsageError(f"{str(path)!r} must be the folder of a sweep, which has a file {_PLAN!r}.")
    try:
        head: Any = json.loads((path / _PLAN).read_text(encoding="utf-8"))
        schema, version = head["schema"], head["version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{str(path / _PLAN)!r} must be as a sweep wrote it, and is damaged; {_ELSEWHERE}.") from None
    if schema != SWEEP_SCHEMA:
        todo = schema_hint(schema, SWEEP_SCHEMA, "give another folder")
        raise UsageError(f"{str(path / _PLAN)!r} must have the schema {SWEEP_SCHEMA!r}, not {brief(schema)}; {todo}.")
    if version != __version__:
        raise UsageError(
            f"the points in {str(path)!r} must be of this version of kernbench, {__version__}, and are of {version}: "
            "models may have changed; give another folder, or run that version."
        )
    return dict(head)


def _check_same(path: Path, head: Mapping[str, Any]) -> None:
    """Raise UsageError where a folder holds the points of another sweep than that of `head`."""
    found = _read_head(path)
    old = SweepPlan.from_json(found["plan"]).without_limits().to_json()
    new = SweepPlan.from_json(head["plan"]).without_limits().to_json()
    differs = [name for name in new if new[name] != old.get(name)]
    if differs:
        raise UsageError(
            f"{str(path)!r} must hold points of the same sweep, and its plan differs in {', '.join(differs)}; give "
            "another folder."
        )


def _read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a folder; UsageError for one that no sweep of this version wrote."""
    for file in sorted((path / _POINTS).glob("*.json")):
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            if record["schema"] != POINT_SCHEMA or record["key"] != file.stem:
                raise UsageError(
                    f"{str(file)!r} must have the schema {POINT_SCHEMA!r} and the name of its key, not "
                    f"{brief(record['schema'])}; {schema_hint(record['schema'], POINT_SCHEMA, 'remove it')}."
                )
            wrong = [name for name, kind in _FORM.items() if not isinstance(record[name], kind)]  # type: ignore[arg-type]
            if wrong or record["status"] not in STATUSES:
                raise ValueError(wrong)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise UsageError(f"{str(file)!r} must be as a sweep wrote it, and is damaged; remove it.") from None
        yield record


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other sweeps out of a folder while the block runs; a process that ends, however it does, lets go."""
    import fcntl

    with ExitStack() as stack:
        with _made(path):
            lock = stack.enter_context((path / _LOCK).open("a"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{str(path)!r} must have one sweep at a time, and another one is running there; wait for it, or give "
                "another folder."
            ) from None
        yield


@contextmanager
def _made(path: Path) -> Iterator[None]:
    """Say of an error of the file system that there can be no sweep."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"-o must name a folder that can be made and written, not {brief(str(path))}: {error.strerror}; give "
            "another name."
        ) from error


@contextmanager
def _explain_write_error(path: Path) -> Iterator[None]:
    """Say of an error of the file system what it means for a sweep."""
    try:
        yield
    except OSError as error:
        room = "make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "give another folder"
        raise UsageError(
            f"the folder of the sweep, {str(path)!r}, must be writable, and that failed with {error.strerror!r}; all "
            f"points recorded so far are whole: {room}, and go on with --resume."
        ) from error
