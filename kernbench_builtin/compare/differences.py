"""What moved from one run to another, and what of what was run is not the same."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_builtin.compare import formatting
from kernbench_builtin.compare.change_verdict import are_all_told, change_lines
from kernbench_builtin.compare.figures import CAUSES, COLUMNS, LINES, RunFigures
from kernbench_builtin.compare.folding import large
from kernbench_builtin.compare.line_pairs import paired_lines, paired_names, unified, unlike_files
from kernbench_builtin.compare.moved_rows import RATES, ChangedInput, MovedFigure, MovedRow, SourceChange
from kernbench_core.spread import NOT_KNOWN
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_builtin.compare.run_figures import AnsweredRun

SCHEMA: Final = "kernbench.diff/1"

_NO_CAUSE: Final = (
    "Nothing that both runs name is otherwise: the bench reads something else, or code of kernbench itself changed."
)


@attrs.frozen(repr=False, slots=False)
class RunComparison:
    """What moved from one run to another.

    `rows` are ordered by sort as `COLUMNS` is, "total" first, and within a sort by how much they moved: links that are
    others than they were, then the most time, then the most of anything else. `causes` are ordered as `CAUSES`.
    `unknown` says, by sort, what cannot be compared, and why; `notes` are sentences about the two runs.
    """

    before: RunFigures
    after: RunFigures
    rows: tuple[MovedRow, ...]
    causes: tuple[ChangedInput, ...]
    sources: tuple[SourceChange, ...]
    unknown: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether no figure moved, and the same was run."""
        return not self.rows and not self.causes and self.before.op_log_sha256 == self.after.op_log_sha256

    @property
    def change_ns(self) -> float:
        """By how many ns the total time rose."""
        return self.after.total_ns - self.before.total_ns

    @property
    def totals_ns(self) -> tuple[float, float]:
        """The total times of both, in ns: medians where both were shaken."""
        old, new = self.before.spread, self.after.spread
        if old is None or new is None:
            return self.before.total_ns, self.after.total_ns
        return old.median_ns, new.median_ns

    @property
    def differs(self) -> bool | None:
        """Whether the total times are apart by more than their spread; None where neither was shaken.

        Where one was, its spread is taken for that of single runs, which both then are.
        """
        old, new = self.before.spread, self.after.spread
        if old is not None and new is not None:
            return old.differs_from(new)
        known = old or new
        return None if known is None else abs(self.change_ns) > known.width_ns

    @property
    def spread(self) -> str:
        """Say whether the total time is another one, as far as the spread of both is known; "" where nothing moved."""
        old, new = self.before.spread, self.after.spread
        if old is not None and new is not None:
            return old.compared_with(new)
        known = old or new
        if known is None:
            return NOT_KNOWN if self.change_ns else ""
        shaken, single = ("A", "B") if new is None else ("B", "A")
        found = "beyond" if self.differs else "no difference shown within"
        width = format_time(known.width_ns)
        return f"{found} the spread of {shaken}, {width}; {single} has no spread: run it with --shake"

    def of_sort(self, sort: str) -> tuple[MovedRow, ...]:
        """Return the rows of one sort, what moved most at the head."""
        return tuple(row for row in self.rows if row.sort == sort)

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        path = {
            side: {sort: {name: row[0] for name, row in figures.tables[sort].rows.items()}
                   for sort in ("path", "place") if sort in figures.tables}
            for side, figures in (("before", self.before), ("after", self.after))
        }  # fmt: skip
        return {
            "schema": SCHEMA,
            "same": self.same,
            "before": _summary(self.before),
            "after": _summary(self.after),
            "change_ns": self.change_ns,
            "differs": self.differs,
            "notes": list(self.notes),
            "unknown": dict(self.unknown),
            "causes": [cause.to_json() for cause in self.causes],
            "sources": [attrs.asdict(source) for source in self.sources],
            "rows": [row.to_json() for row in self.rows],
            "critical_path": path,
        }

    def lines(self, top: int = 10) -> list[str]:
        """Say it in lines for people: the verdict, then the details."""
        return [*self.verdict, *self.details(top)]

    @property
    def verdict(self) -> list[str]:
        """The lines that say by how much the time changed, what was changed, what moved, and what limits."""
        if self.same:
            return [*self.notes, formatting.total_line(self.before.total_ns, self.after.total_ns, same=True)]
        lines = [*self.notes, *change_lines(self.before, self.after, self.told, self.causes, self.spread)]
        if not (self.rows or self.causes):
            lines.append("the op logs differ, though no figure does and the same was run")
        return lines

    def details(self, top: int = 10) -> list[str]:
        """Say what was run otherwise where the verdict tells not all, and of each sort the `top` that moved most."""
        lines: list[str] = []
        if not are_all_told(self.causes):
            lines += formatting.section("what was run otherwise", map(formatting.cause_line, self.causes), 2 * top)
        for source in self.sources:
            lines += formatting.section(f"the source of {source.name}", source.lines)
        for sort in ("total", *COLUMNS):
            rows = tuple(row for row in self.told if row.sort == sort)
            lines += formatting.rows_section(sort, rows, top, len(self.of_sort(sort)) - len(rows))
        return lines + formatting.unknown_section(self.unknown)

    @cached_property
    def told(self) -> tuple[MovedRow, ...]:
        """The rows that moved by 0.1 % and 1 ns at least; all where none did."""
        return large(self.rows) or self.rows

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the lines."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def __repr__(self) -> str:
        return f"<RunComparison of {self.before.name} and {self.after.name}: {len(self.rows)} rows moved>"


def compare(
    before: RunFigures | AnsweredRun | str | Path, after: RunFigures | AnsweredRun | str | Path
) -> RunComparison:
    """Lay two runs side by side: results, their figures, or folders and files that `kernbench diff` takes.

    Raise UsageError for a path that holds no run. Every difference counts, however small. Kernel lines are paired by
    their text, so that a new line number alone is no difference. Exchanged runs give the same rows, with before and
    after exchanged.

        kb.compare(kb.run("gemm", "tiny"), kb.run("gemm", "tiny", {"tile_m": 64}))
    """
    before, after = _figures(before), _figures(after)
    rows = list(_ranked(_totals(before, after)))
    for sort in COLUMNS:
        if sort in before.tables and sort in after.tables:
            rows += _ranked(_of_sort(sort, before, after))
    causes = tuple(_causes(before, after))
    notes = list(_notes(before, after))
    if rows and not causes and not (before.interrupted or after.interrupted):
        notes.append(_NO_CAUSE)
    return RunComparison(
        before, after, tuple(rows), causes, tuple(_sources(before, after)), dict(_unknown(before, after)), tuple(notes)
    )


def _figures(run: RunFigures | AnsweredRun | str | Path) -> RunFigures:
    from kernbench_builtin.compare.run_figures import figures_of
    from kernbench_builtin.compare.saved_figures import figures_of_saved

    if isinstance(run, RunFigures):
        return run
    return figures_of_saved(run) if isinstance(run, str | Path) else figures_of(run)


def _totals(before: RunFigures, after: RunFigures) -> Iterator[MovedRow]:
    for name in sorted({*before.totals, *after.totals}):
        one = MovedFigure(name, before.totals.get(name), after.totals.get(name))
        if one.before != one.after:
            yield MovedRow("total", name, (one,))


def _of_sort(sort: str, before: RunFigures, after: RunFigures) -> Iterator[MovedRow]:
    tables = before.tables[sort], after.tables[sort]
    nothing = (None,) * len(COLUMNS[sort])
    found = []
    for pair in paired_lines(*tables) if sort in LINES else paired_names(*tables):
        name, old, new = pair
        rows = nothing if old is None else tables[0].rows[old], nothing if new is None else tables[1].rows[new]
        if rows[0] != rows[1]:
            figures = [MovedFigure(*each) for each in zip(COLUMNS[sort], *rows, strict=True)]
            moved = sorted((each for each in figures if each.before != each.after), key=_figure_order)
            about = tables[1].about.get(new or "") or tables[0].about.get(old or "", "")
            found.append((_pair_order(old, new, about), MovedRow(sort, name, tuple(moved), about)))
    yield from (row for _, row in sorted(found, key=itemgetter(0)))


def _pair_order(old: str | None, new: str | None, about: str) -> tuple[list[str], str]:
    """Order things by name, and those of one name by what they are, in the same way when the runs are exchanged."""
    return sorted(name for name in (old, new) if name is not None), about


def _figure_order(each: MovedFigure) -> tuple[bool, bool, float, str]:
    """Order the figures of a thing: what it is, then times, then anything else; the most at the head."""
    return each.figure not in RATES, not each.figure.endswith("ns"), -abs(each.change), each.figure


def _ranked(rows: Iterator[MovedRow]) -> list[MovedRow]:
    return sorted(rows, key=_row_order)


def _row_order(row: MovedRow) -> tuple[bool, bool, float, float]:
    """Order the things of one sort; a thing that is another one than it was before all others."""
    other = any(each.figure in RATES and None not in (each.before, each.after) for each in row.moved)
    did = [each for each in row.moved if each.figure not in RATES]
    times = sum(abs(each.change) for each in did if each.figure.endswith("ns"))
    rest = sum(abs(each.change) for each in did if not each.figure.endswith("ns"))
    total_first = row.sort == "total" and row.name == "time_ns"
    return not total_first, not other, -times, -rest


def _causes(before: RunFigures, after: RunFigures) -> Iterator[ChangedInput]:
    for sort in CAUSES:
        old, new = before.causes.get(sort, {}), after.causes.get(sort, {})
        for name in sorted({*old, *new}):
            count = f"{name.partition(' ')[0]} launches"
            if sort == "launches" and name != count and (count in old) != (count in new):
                continue  # of a kernel that only one has it is said how often that was launched
            if name not in old or name not in new:
                yield ChangedInput(sort, name, old.get(name), new.get(name), "before" if name not in old else "after")
            elif old[name] != new[name] or isinstance(old[name], bool) is not isinstance(new[name], bool):
                yield ChangedInput(sort, name, old[name], new[name])


def _sources(before: RunFigures, after: RunFigures) -> Iterator[SourceChange]:
    """Yield the diffs of files of benches, and of kernels that are in none of these.

    One that only the first run has is the new form of the only one that only the second has.
    """
    texts = before.texts, after.texts
    files = _same_texts(*({name: text for name, text in each.items() if ":" not in name} for each in texts))
    kernels = _same_texts(*({name: text for name, text in each.items() if ":" in name} for each in texts))
    told = {first for first, _ in files}
    pairs = [*files, *(pair for pair in kernels if pair[0].rpartition(":")[0] not in told)]
    for first, second in pairs:
        old, new = before.texts[first], after.texts[second]
        if old != new:
            name = first if first == second else f"{first} → {second}"
            yield SourceChange(name, tuple(unified(old, new, first, second)))


def _same_texts(old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return which texts are the same thing before and after, by their names."""
    gone, come = [name for name in old if name not in new], [name for name in new if name not in old]
    others = [(gone[0], come[0])] if len(gone) == len(come) == 1 else []
    return [*((name, name) for name in old if name in new), *others]


def _unknown(before: RunFigures, after: RunFigures) -> Iterator[tuple[str, str]]:
    for sort in COLUMNS:
        reasons = {
            figures.missing.get(sort, "it was not kept")
            for figures in (before, after)
            if sort not in figures.tables
        }
        sides = [side for side, figures in (("A", before), ("B", after)) if sort not in figures.tables]
        if sides:
            yield sort, f"not known of {' and '.join(sides)}: {'; '.join(sorted(reasons))}"


def _notes(before: RunFigures, after: RunFigures) -> Iterator[str]:
    """Say what a reader has to know of the two runs."""
    benches = [figures.causes.get("bench", {}).get("bench") for figures in (before, after)]
    if benches[0] != benches[1]:
        yield f"A and B ran different benches, {benches[0]} and {benches[1]}."
    lines = (sort for sort in LINES if sort in before.tables and sort in after.tables)
    unlike = {unlike_files(before.tables[sort], after.tables[sort]) for sort in lines} - {None}
    for first, second in sorted(filter(None, unlike)):
        yield f"{first} and {second} differ in most lines: lines of kernels are not compared."
    for side, figures in (("A", before), ("B", after)):
        if figures.interrupted:
            yield f"{side} was interrupted: its figures are of what it did until then."
        if figures.verified is False:
            yield f"{side} gave wrong data."
        elif figures.failure:
            yield f"{side}: {figures.failure}."
        if races := int(figures.totals.get("hazards", 0)):
            yield f"{side} has {races:,} {'hazard' if races == 1 else 'hazards'}: uses of memory that nothing orders."


def _summary(figures: RunFigures) -> dict[str, Any]:
    return {
        "name": figures.name,
        "bench": figures.causes.get("bench", {}).get("bench"),
        "topology": figures.topology,
        "total_ns": figures.total_ns,
        "spread": None if figures.spread is None else figures.spread.to_json(),
        "interrupted": figures.interrupted,
        "verified": figures.verified,
        "failure": figures.failure,
        "op_log_sha256": figures.op_log_sha256,
    }
