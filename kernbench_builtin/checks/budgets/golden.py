"""Goldens: all figures of a run in a file beside its test, compared whole, and written when that is asked for."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kernbench_builtin.checks.budgets.limits import figures_of_result
from kernbench_builtin.compare import RunComparison, RunFigures, compare, figures_of
from kernbench_builtin.compare.formatting import section, total_line
from kernbench_core.errors import UsageError
from kernbench_core.process.whole_files import write_text
from kernbench_core.runs.result import RunResult
from kernbench_core.spread import NOT_KNOWN
from kernbench_core.wording import brief, schema_hint

SCHEMA: Final = "kernbench.golden/1"
#: What is the simulator's own, follows from rounding, or is reported by a bench: it may differ from machine to machine.
_NOT_HELD: Final = ("events", "max_abs_error", "mean_utilisation.", "rows.")
#: Sorts of rows that follow from the others, or move when nothing but a comment does.
_FOLLOW: Final = ("slowest PE", "line", "path", "place")
#: Figures of the whole run of which no row tells.
_ALONE: Final = ("hops", "statistics.", "reported_rows")
#: How many rows of each sort a failure tells.
_TOP: Final = 5
#: What becomes a file name without loss: classes and a function, and an id in lower case; its last dots are not kept.
_PLAIN: Final = re.compile(r"[\w.]+(?:::\w+)*(?:\[[a-z0-9_.-]*[a-z0-9_]\])?", re.ASCII)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,59}")
_LONGEST: Final = 120


@attrs.frozen
class GoldenOutcome:
    """What became of a golden: "same", "new", "rewritten" with how it moved, or what the test fails with."""

    state: str
    moved: str = ""
    failure: str = ""


def case_of(nodeid: str) -> str:
    """Return what a node id says behind the file: "TestSoftmax::test_rows[64]"."""
    return nodeid.partition("::")[2] or nodeid.rpartition("/")[2]


def golden_file(test_file: Path, case: str, name: str | None = None) -> Path:
    """Return where a golden lies: in `goldens`, in a folder for each file of tests. UsageError for a bad name.

    No two tests of a file share one, on file systems that take capitals for small letters too, unless the names of
    functions or classes differ in nothing else.
    """
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise UsageError(
            f"the name of a golden must be small letters, digits, '_', '.' and '-', 60 at most, not {brief(name)}."
        )
    readable = re.sub(r"[^\w.-]+", "-", case.replace("::", "."), flags=re.ASCII).strip("-.")
    if _PLAIN.fullmatch(case) is None or len(readable) > _LONGEST:
        digest = hashlib.sha256(case.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        readable = f"{readable[: _LONGEST - 13]}~{digest}"
    return test_file.parent / "goldens" / test_file.stem / f"{readable}{'' if name is None else '@' + name}.json"


def checked_golden(result: RunResult, file: Path, shown: str, command: str) -> GoldenOutcome:
    """Compare a run with its golden; `command` is what writes it."""
    try:
        golden = _read(file, shown)
    except UsageError as error:
        return GoldenOutcome("damaged", failure=f"has no golden to be held to: {error}\nWrite it again: {command}")
    if golden is None:
        return GoldenOutcome("absent", failure=f"has no golden, as {shown!r} is not there. Write it: {command}")
    compared = _compared(golden, result)
    if not _moved(compared):
        return GoldenOutcome("same")
    said = f"differs from its golden, {shown}. From the golden (A) to this run (B):"
    lines = [said, *_lines(compared, result), f"If it is to be so: {command}"]
    return GoldenOutcome("differs", failure="\n".join(lines))


def updated_golden(result: RunResult, file: Path, shown: str, case: str) -> GoldenOutcome:
    """Write a golden that is not there, cannot be read, or is of other figures or code; never one of wrong data."""
    if not result.right:
        return GoldenOutcome("absent", failure=f"gave wrong data, of which no golden is written: {shown!r}")
    found = GoldenOutcome("new")
    try:
        if (golden := _read(file, shown)) is not None:
            compared = _compared(golden, result)
            if not _moved(compared) and all(each.sort == "versions" for each in compared.causes):
                return GoldenOutcome("same")
            found = GoldenOutcome("rewritten", total_line(golden.total_ns, result.total_ns))
    except UsageError:
        found = GoldenOutcome("rewritten", "what was there could not be read")
    held = {"measured": _measured(result), "figures": figures_of(result).to_json()}
    try:
        write_text(file, _text({"schema": SCHEMA, "test": case, **held}))
    except (OSError, UsageError) as error:
        return GoldenOutcome("damaged", failure=f"has no place for its golden: {error}")
    return found


def _measured(result: RunResult) -> dict[str, float | int | None]:
    """Return the figures that can be limited and are equal wherever a run is made."""
    return {name: value for name, value in figures_of_result(result).items() if not name.startswith(_NOT_HELD)}


def _whole(figures: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the totals of a run with the figures that can be limited among them."""
    return {**figures, **{name: value for name, value in measured.items() if value is not None}}


def _read(file: Path, shown: str) -> RunFigures | None:
    """Return the figures of a golden, None where there is no file; UsageError for one that is none."""
    where = f"golden {shown!r}"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        schema = found["schema"]
        if schema != SCHEMA:
            hint = schema_hint(schema, SCHEMA, "nothing reads it any more")
            raise UsageError(f"{where} must have schema {SCHEMA!r}, not {brief(schema)}; {hint}.")
        figures = found["figures"]
        totals = _whole(figures["totals"], found["measured"])
        return RunFigures.from_json({**figures, "totals": totals}, where)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{where} must be a file that can be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UsageError(f"{where} must be as it was written, and is cut off, merged or changed.") from None


def _compared(golden: RunFigures, result: RunResult) -> RunComparison:
    """Compare a run with its golden, but for totals that an earlier golden does not have."""
    figures = figures_of(result)
    compared = compare(golden, attrs.evolve(figures, totals=_whole(figures.totals, _measured(result))))
    rows = tuple(row for row in compared.rows if not (row.sort == "total" and row.before is None))
    return attrs.evolve(compared, rows=rows, unknown={})


def _moved(compared: RunComparison) -> bool:
    return any(row.sort not in _FOLLOW for row in compared.rows)


def _lines(compared: RunComparison, result: RunResult) -> Iterator[str]:
    """Say what was run otherwise and what moved, as `kernbench diff` does, then figures that only budgets know."""
    known = figures_of(result).totals
    own = [row for row in compared.rows if row.sort == "total" and row.name not in known]
    rows = tuple(row for row in compared.rows if row not in own)
    lines = attrs.evolve(compared, rows=rows).lines(_TOP)
    yield from (line for line in lines if line != NOT_KNOWN)  # a golden asks whether anything moved at all
    told = [row for row in own if not rows or row.name.startswith(_ALONE)]
    yield from section("other figures", (f"{row.name}: {row.before} → {row.after}" for row in told), _TOP)


def _text(found: dict[str, Any]) -> str:
    """Return strict JSON in which each figure or row of figures has a line, so that a change reads well."""
    text = json.dumps(found, indent=1, allow_nan=False)
    return re.sub(r"\[\n\s*([^][{}]*)\n\s*\]", lambda row: "[" + re.sub(r"\n\s*", " ", row[1]) + "]", text)
