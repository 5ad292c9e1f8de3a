"""What parts of runs must not call an option, or an answer: as every run does, or another part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_core.runs.options import RunCall, command_options

if TYPE_CHECKING:
    from kernbench_core.runs.options import OptionRecord

_OF_COMMAND: Final = ["as_json", "json", "quiet", "verbose", "help", "plugin", "no_plugin", "strict_plugins"]
_OF_JSON: Final = (
    "schema", "ops", "hops", "late_starts", "statistics", "checked", "wrong", "failures", "ops_checked", "ops_wrong",
    "op_failures",
)  # fmt: skip


def taken_name(part: Any, others: Iterable[tuple[str, Any]]) -> str | None:
    """Return which name of a `RunPart` every run has, or one of the `others`, each with its words; None for none."""
    from kernbench_core.runs.answers import Correctness  # which import numpy, and completion asks parts
    from kernbench_core.runs.result import RunResult

    owners = dict.fromkeys(_named("an option", *_options(RunCall), *_OF_COMMAND), "every run")
    owners |= dict.fromkeys(_named("a result", *dir(RunResult), *Correctness.GIVES, *_OF_JSON), "every run")
    for words, other in others:
        owners |= dict.fromkeys(_names(other), words)
    taken = next((each for each in (*_names(part), *_named("a result", part.NAME)) if each in owners), None)
    return taken and f"{taken}, which {owners[taken]} has"


def _names(part: Any) -> list[str]:
    options = _named("an option", *_options(part.OPTIONS), *_options(part.COMMAND))
    return [*options, *_named("a result", *part.GIVES)]


def _named(what: str, *names: str) -> list[str]:
    return [f"{what} called {name!r}" for name in names]


def _options(record: type[OptionRecord]) -> Iterator[str]:
    """Yield what options are called, in Python and, with `_` for each `-`, on the command line."""
    fields = attrs.fields_dict(record)
    yield from fields
    for field, option in command_options(record).items():
        yield ("no_" if fields[field].default is True else "") + (option.name or field).replace("-", "_")
