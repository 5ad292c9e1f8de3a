"""The verdict on a comparison, in a few lines: by how much, what was changed, what moved, which lines, what limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kernbench_builtin.compare.formatting import (
    both_texts,
    cause_line,
    figure_text,
    percent_text,
    sentence_lines,
    total_line,
)
from kernbench_core.spread import NOT_KNOWN

if TYPE_CHECKING:
    from kernbench_builtin.compare.figures import RunFigures
    from kernbench_builtin.compare.moved_rows import ChangedInput, MovedRow

#: Things that a line names.
_MOST: Final = 3
#: From which share on a difference of two times is more than chance makes, as far as was measured.
_NO_CHANCE: Final = 0.05
#: Totals that say whether a run is right, besides hazards, which notes tell of.
_RIGHT: Final = {"outside": "accesses outside of tensors", "wrong": "wrong tensors"}
_DIGESTS: Final = {"sources": "the text of", "models": "the code of"}


def change_lines(
    before: RunFigures, after: RunFigures, rows: Sequence[MovedRow], causes: Sequence[ChangedInput], spread: str
) -> list[str]:
    """Return the verdict on what moved, wrapped to the width of a terminal but for its first line, that of the total.

    A `spread` that is not known is told where the difference is small.
    """
    lines = [total_line(before.total_ns, after.total_ns)]
    if spread != NOT_KNOWN or abs(after.total_ns - before.total_ns) < _NO_CHANCE * before.total_ns:
        lines += [spread] if spread else []
    return [*lines, *(line for each in sentences(before, after, rows, causes) for line in sentence_lines(each))]


def sentences(
    before: RunFigures, after: RunFigures, rows: Sequence[MovedRow], causes: Sequence[ChangedInput]
) -> Iterator[str]:
    """Yield what was changed, what moved, at which lines, and what limits."""
    if causes:
        yield f"changed: {_listed([*_changed(causes)])}"
    for name in _RIGHT:
        old, new = before.totals.get(name, 0), after.totals.get(name, 0)
        if old != new:
            yield f"{_RIGHT[name]}: {old:,.0f} → {new:,.0f}"
    kernels = after.tables.get("kernel")
    for head, sort in (("moved", "phase"), ("kernels", "kernel"), ("lines", "slowest PE")):
        moved = [row for row in rows if row.sort == sort and row.figure == "ns"]
        if moved and not (sort == "kernel" and kernels is not None and len(kernels.rows) == 1):
            yield f"{head}: {_listed([*map(_moved, moved)])}"
    limits = [("before", before.limiter), ("after", after.limiter)]
    if before.limiter == after.limiter:
        limits = [("before and after", after.limiter)]
    yield from (f"{side}: {limiter}" for side, limiter in limits if limiter)


def are_all_told(causes: Sequence[ChangedInput]) -> bool:
    """Whether the verdict tells all that was run otherwise, with what it was and is."""
    return len(causes) <= _MOST and not any(cause.sort in _DIGESTS for cause in causes)


def _changed(causes: Sequence[ChangedInput]) -> Iterator[str]:
    """Say what was run otherwise; of a text only that, and of functions nothing where their file is told.

    A function that ran on one side only is the effect of another change, where there is one.
    """
    causes = [cause for cause in causes if cause.sort != "sources" or cause.absent is None] or causes
    files = {cause.name for cause in causes if cause.sort == "sources" and ":" not in cause.name}
    other = any(cause.sort == "bench" for cause in causes)  # whose sources are others, of course
    for cause in causes:
        if cause.sort == "sources" and (other or cause.name.partition(":")[0] in files - {cause.name}):
            continue
        digest = _DIGESTS.get(cause.sort)
        yield f"{digest} {cause.name}" if digest and cause.absent is None else cause_line(cause)


def _moved(row: MovedRow) -> str:
    one = row.moved[0]
    if one.before is None or one.after is None:
        return f"{row.name} only in {'B' if one.before is None else 'A'}, {figure_text('ns', abs(one.change))}"
    before, after = both_texts("ns", one.before, one.after)
    percent = percent_text(one.before, one.after)
    return f"{row.name} {before} → {after}{f' ({percent})' if percent else ''}"


def _listed(told: Sequence[str]) -> str:
    more = [f"{len(told) - _MOST} more"] if len(told) > _MOST else []
    return "; ".join([*told[:_MOST], *more])
