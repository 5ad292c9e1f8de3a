"""What a run answered, as `--json` prints it and `--out` keeps it: read whole, or refused in a sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kernbench_builtin.compare.result_form import faults
from kernbench_core.errors import UsageError
from kernbench_core.units import format_time
from kernbench_core.wording import brief, schema_hint

RESULT: Final = "result.json"
AGAIN: Final = "run it again with --out."
_SCHEMA: Final = "kernbench.run/1"
#: By how much sums of times may differ from what they sum to.
_ROUNDING: Final = 1e-6


def read_result(folder: Path) -> Mapping[str, Any]:
    """Read what a run answered, as `--json` prints it; UsageError for what is missing, cut off, changed, or later."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise UsageError(f"run {str(folder)!r} must be a folder that --out wrote, and {what}; give such a folder.")
    path = folder / RESULT
    if not path.is_file():
        raise UsageError(f"run {str(folder)!r} must hold {RESULT}, and does not; give a folder that --out wrote.")
    result = read_json(path)
    check_result(path, result)
    return result


class _NotFiniteError(ValueError):
    """A number that no run writes, by the text that it has in the file."""


def _not_finite(text: str) -> Any:
    raise _NotFiniteError(text)


def _finite(text: str) -> float:
    """Read a number; one too large for a float is none."""
    number = float(text)
    return number if math.isfinite(number) else float(_not_finite(text))


def read_json(path: Path) -> Mapping[str, Any]:
    """Read a JSON object of finite numbers; UsageError for what is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_not_finite, parse_float=_finite)
    except _NotFiniteError as error:
        raise UsageError(f"file {str(path)!r} must hold finite numbers, not {error}; {AGAIN}") from None
    except OSError as error:
        raise UsageError(f"file {str(path)!r} must be readable: {error.strerror}.") from None
    except (ValueError, RecursionError):
        if path.suffix == ".py":
            raise UsageError(
                f"{str(path)!r} must be a run, and is a program; run it with --out DIR, and name DIR."
            ) from None
        raise UsageError(f"file {str(path)!r} must be whole JSON, and is cut off or changed; {AGAIN}") from None
    if not isinstance(found, dict):
        raise UsageError(f"file {str(path)!r} must hold a JSON object; {AGAIN}")
    return found


def check_result(path: Path, result: Mapping[str, Any]) -> None:
    """Raise UsageError for a result that is no run's, or of another version, or lacks what a page needs."""
    check_schema(path, result)
    wrong = next(faults(result), None)
    if wrong is not None:
        raise UsageError(f"file {str(path)!r} must hold {wrong}; {AGAIN}")
    if len({len(column) for column in (result.get("links") or {}).values()}) > 1:
        raise UsageError(f"file {str(path)!r} must hold links as columns of one length; {AGAIN}")
    total, together = result["total_ns"], sum(result["phases"].values())
    if not math.isclose(total, together, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
        phases = f"phases that sum to its total_ns, {format_time(total)}, not to {format_time(together)}"
        raise UsageError(f"file {str(path)!r} must hold {phases}; {AGAIN}")


def check_schema(path: Path, result: Mapping[str, Any]) -> None:
    """Raise UsageError for a result that is no run's, or of another version."""
    schema = result.get("schema")
    if schema != _SCHEMA:
        hint = schema_hint(schema, _SCHEMA, "give a folder that --out wrote")
        raise UsageError(f"file {str(path)!r} must have schema {_SCHEMA!r}, not {brief(schema)}; {hint}.")
