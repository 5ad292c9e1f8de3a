"""The table of the comparisons, and the pages where it is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gates.jobs import CCL, ENGINE
from gates.sides import ROOT, Finding

PAGES = ROOT / "docs" / "speed.md", ROOT / "README.md"
BEGIN, END = "<!-- tools/bench_engine.py and tools/bench_ccl.py write from here -->\n", "<!-- to here -->\n"
TITLES = (
    "job", "events", "before", "in Python", "times as fast", "compiled", "times as fast", "events/s, compiled",
    "peak memory",
)  # fmt: skip


def line(found: Finding) -> str:
    """Return the line of a job: seconds on each side, how many times as fast, and what is asked."""
    told, gate = found.told, found.job.gate
    newest = told.get("compiled", told["pure"])
    what, count = next(((name, newest[name]) for name in ("events", "requests", "ops") if name in newest), ("", None))
    cells = (
        found.job.label,
        "-" if count is None else f"{count:,}" + ("" if what == "events" else f" {what}"),
        f"{told['before']['s']:.2f} s",
        _seconds(found, "pure"),
        _times(found.pure, gate.pure),
        _seconds(found, "compiled"),
        _times(found.compiled, gate.compiled),
        "-" if count is None else f"{count / newest['s']:,.0f}",
        f"{newest['peak_mib']:,.0f} MiB",
    )
    return f"| {' | '.join(cells)} |\n"


def _seconds(found: Finding, form: str) -> str:
    """Return the seconds of a form, and behind those of the one that is installed how many it may take."""
    if form not in found.told:
        return "-"
    most_s = found.job.gate.most_s
    is_limited = most_s is not None and (form == "compiled") is ("compiled" in found.told)
    limit = f" (at most {most_s:g} s{'' if found.in_time else ', NOT MET'})" if is_limited else ""
    return f"{found.told[form]['s']:.2f} s{limit}"


def _times(ratio: float | None, gate: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.2f}" + ("" if gate is None else f" (asked: {gate:g}{'' if ratio >= gate else ', NOT MET'})")


def head() -> str:
    """Return the first two lines of the table."""
    return f"| {' | '.join(TITLES)} |\n|{'---|' * len(TITLES)}\n"


def updated(text: str, rows: Iterable[str]) -> str:
    """Return a page with lines written into its table; those of other jobs stay, those of none go."""
    before, _, rest = text.partition(BEGIN)
    inside, _, after = rest.partition(END)
    kept = {_label(row): row for row in re.findall(r"^\|.*\|\n", inside, re.MULTILINE)[2:]}
    kept |= {_label(row): row for row in rows}
    order = [job.label for job in (*ENGINE.values(), *CCL.values())]
    return f"{before}{BEGIN}\n{head()}{''.join(kept[label] for label in order if label in kept)}\n{END}{after}"


def _label(row: str) -> str:
    return row.split("|")[1].strip()
