"""Goldens as files: what one holds, how it is read and written, and what is said of one that is damaged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.process.whole_files import write_text
from kernbench_core.wording import brief, schema_hint

SCHEMA: Final = "kernbench.golden/1"
#: What begins the lines by which git marks two sides of a file.
_MARKERS: Final = ("<<<<<<< ", "||||||| ", ">>>>>>> ")
#: Letters of what stands in one line.
_WIDTH: Final = 100


@attrs.frozen
class Golden:
    """What a run of a test gave when it was taken to be right.

    `test` is what its node id says behind the file, so that a renamed file keeps its goldens; `figures` are those of
    `RunFigures.to_json`, `measured` those that can be limited.
    """

    test: str
    measured: Mapping[str, float | int | None]
    figures: Mapping[str, Any]

    def to_text(self) -> str:
        """Return the content of its file: JSON whose lines stand for a figure each, so that a change reads well."""
        return _text({"schema": SCHEMA, **attrs.asdict(self, recurse=False)})


class GoldenFault(UsageError):
    """A file is there that is no golden of the test; `replaceable` says whether it was one, and may be written anew."""

    def __init__(self, message: str, replaceable: bool = False) -> None:
        super().__init__(message)
        self.replaceable = replaceable


def read_golden(path: Path, shown: str, test: str) -> Golden | None:
    """Return the golden of a test, None where there is no file; `shown` is what sentences call it.

    Raise GoldenFault, whose sentence leaves out what to do, for a file that cannot be read or is none.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GoldenFault(f"golden {shown!r} must be a file that can be read: {error.strerror}.") from None
    except ValueError:
        raise GoldenFault(f"golden {shown!r} must be text in UTF-8.") from None
    ours = f'"{SCHEMA.rpartition("/")[0]}/' in text
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(_MARKERS) or line.rstrip() == "=======":
            raise GoldenFault(
                f"golden {shown!r} must hold one side of a merge, and line {number} is {brief(line, 20)}.", ours
            )
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise GoldenFault(f"golden {shown!r} must be JSON, and is nested too deep.") from None
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise GoldenFault(f"golden {shown!r} must be JSON, and at {at} it says {error.msg!r}.", ours) from None
    except ValueError as error:
        raise GoldenFault(f"golden {shown!r} must be JSON: {error}.", ours) from None
    return _checked(found, shown, test)


def write_golden(path: Path, golden: Golden) -> None:
    """Write a golden, whole or not at all; UsageError where the folder cannot be written."""
    try:
        write_text(path, golden.to_text())
    except OSError as error:
        raise UsageError(f"file {str(path)!r} must be writable: {error.strerror}.") from None


def _checked(found: Any, shown: str, test: str) -> Golden:
    """Return the golden that a JSON value is; GoldenFault for one that is none, or another test's."""
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        ours = isinstance(schema, str) and schema.rpartition("/")[0] == SCHEMA.rpartition("/")[0]
        otherwise = "an earlier kernbench wrote it" if ours else "it is no golden, so move it away"
        hint = schema_hint(schema, SCHEMA, otherwise)
        older = ours and hint == otherwise
        raise GoldenFault(f"golden {shown!r} must have schema {SCHEMA!r}, not {brief(schema)}; {hint}.", older)
    wrong = [each.name for each in attrs.fields(Golden) if not isinstance(found.get(each.name), _FORMS[each.name])]
    if not wrong and not all(_is_figure(each) for each in found["measured"].values()):
        wrong = ["measured"]
    if wrong:
        raise GoldenFault(f"golden {shown!r} must hold {' and '.join(wrong)} as it was written.", True)
    if found["test"] != test:
        raise GoldenFault(
            f"golden {shown!r} must be that of {test!r}, and is that of {brief(found['test'])}; where both tests are "
            "there, give one another name."
        )
    return Golden(**{each.name: found[each.name] for each in attrs.fields(Golden)})


def _is_figure(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


_FORMS: Mapping[str, type] = {"test": str, "measured": dict, "figures": dict}


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of it")


def _text(value: Any, depth: int = 0) -> str:
    """Return strict JSON in which each member of an object has a line, and each long item of a list."""
    plain = json.dumps(value, allow_nan=False)
    if not isinstance(value, dict | list) or not value or (isinstance(value, list) and len(plain) <= _WIDTH):
        return plain
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        each = [f"{json.dumps(key)}: {_text(item, depth + 1)}" for key, item in value.items()]
        begin, end = "{}"
    else:
        each = [_text(item, depth + 1) for item in value]
        begin, end = "[]"
    lines = f",\n{pad}".join(each)
    return f"{begin}\n{pad}{lines}\n{pad[1:]}{end}"
