"""The page of a run that was saved with --out: read whole, or refused in a sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kernbench_core.drawing import MachineDrawing
from kernbench_core.drawing.machine_drawing import SCHEMA as MACHINE_SCHEMA
from kernbench_core.errors import UsageError
from kernbench_core.report.result_form import faults
from kernbench_core.report.run_page import RunPage
from kernbench_core.timeline import TIMELINE, Timeline, load
from kernbench_core.units import format_time
from kernbench_core.wording import brief, schema_hint

RESULT: Final = "result.json"
MACHINE: Final = "machine.json"
_SCHEMA: Final = "kernbench.run/1"
#: By how much sums of times may differ from what they sum to.
_ROUNDING: Final = 1e-6


def read_run(folder: Path, name: str = "") -> RunPage:
    """Read the folder of a run; UsageError for what is missing, cut off, changed, or of a later kernbench."""
    result = read_result(folder)
    machine = read_machine(folder)
    timeline_path = folder / TIMELINE
    timeline = load(timeline_path) if timeline_path.is_file() else None
    return RunPage(name or folder.name or str(folder), result, machine, timeline, dict(_sources(timeline, folder)))


def read_result(folder: Path) -> Mapping[str, Any]:
    """Read what a run answered, as `--json` prints it; UsageError for what is missing, cut off, changed, or later."""
    if not folder.is_dir():
        what = "a file" if folder.exists() else "nothing there"
        raise UsageError(f"run {str(folder)!r} must be a folder that --out wrote, not {what}; give such a folder.")
    path = folder / RESULT
    if not path.is_file():
        raise UsageError(f"run {str(folder)!r} must hold {RESULT}, and does not; give a folder that --out wrote.")
    result = _json(path)
    _check_result(path, result)
    return result


def check_version(folder: Path) -> None:
    """Raise UsageError where the folder of a run has a result of another version, or one that cannot be read."""
    path = folder / RESULT
    if path.is_file():
        _check_schema(path, _json(path))


def read_machine(folder: Path) -> Mapping[str, Any] | None:
    """Read the machine of a run as it is drawn, None where there is none; UsageError for one that is damaged."""
    path = folder / MACHINE
    machine = _json(path) if path.is_file() else None
    if machine is not None:
        try:
            MachineDrawing.from_json(machine)
        except ValueError as error:
            hint = schema_hint(machine.get("schema"), MACHINE_SCHEMA, _AGAIN.rstrip("."))
            raise UsageError(f"file {str(path)!r}: {error}; {hint}.") from None
    return machine


_AGAIN: Final = "run it again with --out."


class _NotFiniteError(ValueError):
    """A number that no run writes, by the text that it has in the file."""


def _not_finite(text: str) -> Any:
    raise _NotFiniteError(text)


def _finite(text: str) -> float:
    """Read a number; one too large for a float is none."""
    number = float(text)
    return number if math.isfinite(number) else float(_not_finite(text))


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_not_finite, parse_float=_finite)
    except _NotFiniteError as error:
        raise UsageError(f"file {str(path)!r} must hold finite numbers, not {error}; {_AGAIN}") from None
    except OSError as error:
        raise UsageError(f"file {str(path)!r} must be readable: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise UsageError(f"file {str(path)!r} must be whole JSON, and is cut off or changed; {_AGAIN}") from None
    if not isinstance(found, dict):
        raise UsageError(f"file {str(path)!r} must hold a JSON object; {_AGAIN}")
    return found


def _check_result(path: Path, result: Mapping[str, Any]) -> None:
    """Raise UsageError for a result that is no run's, or of another version, or lacks what a page needs."""
    _check_schema(path, result)
    wrong = next(faults(result), None)
    if wrong is not None:
        raise UsageError(f"file {str(path)!r} must hold {wrong}; {_AGAIN}")
    total, together = result["total_ns"], sum(result["phases"].values())
    if not math.isclose(total, together, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
        phases = f"phases that sum to its total_ns, {format_time(total)}, not to {format_time(together)}"
        raise UsageError(f"file {str(path)!r} must hold {phases}; {_AGAIN}")


def _check_schema(path: Path, result: Mapping[str, Any]) -> None:
    """Raise UsageError for a result that is no run's, or of another version."""
    schema = result.get("schema")
    if schema != _SCHEMA:
        hint = schema_hint(schema, _SCHEMA, "give a folder that --out wrote")
        raise UsageError(f"file {str(path)!r} must have schema {_SCHEMA!r}, not {brief(schema)}; {hint}.")


def _sources(timeline: Timeline | None, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of the files of kernels that the folder holds; of others only the lines that ran are known.

    What a folder names elsewhere is not read: it may come from somebody else.
    """
    for name in dict.fromkeys(line.rpartition(":")[0] for line in (() if timeline is None else timeline.lines)):
        own = folder / "bench" / Path(name).name
        if own.is_file() and not own.is_symlink():
            with suppress(OSError, ValueError):
                yield name, own.read_text(encoding="utf-8")
