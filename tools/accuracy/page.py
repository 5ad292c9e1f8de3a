"""docs/accuracy.md: every comparison, its cases, and which way kernbench errs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from tools.accuracy.comparison import About, Row

SHOWN = 24
"""Cases of a comparison that the page shows; of more, those with the largest errors."""

HEAD = """# Accuracy

What kernbench's models were held against, how far off they are, and which way. `python tools/accuracy` writes this
page by running every case; `--check` runs them and tells what has changed, and the suite holds every error to its
limit. No reference shares code with the model that it is compared with. Errors are kernbench's figure over the
reference's, less one.
"""


def page(found: Iterable[tuple[About, Sequence[Row]]]) -> str:
    """Return the whole page."""
    compared = list(found)
    lines = [HEAD, "| comparison | cases | worst | median | limit |", "|---|---|---|---|---|"]
    for about, rows in compared:
        sizes = [abs(row.error) for row in rows]
        link = about.title.lower().replace(" ", "-").replace(",", "")
        lines.append(
            f"| [{about.title}](#{link}) | {len(rows)} | {max(sizes):.2%} | {statistics.median(sizes):.2%} "
            f"| {about.within:.1%} |"
        )
    for about, rows in compared:
        lines += ["", *_section(about, rows)]
    return "\n".join(lines) + "\n"


def _section(about: About, rows: Sequence[Row]) -> Iterator[str]:
    yield f"## {about.title}"
    for what, said in (
        ("Held against", about.reference),
        ("Equal in both", about.equal),
        ("Different", about.differs),
        ("Which way it errs", about.direction),
        ("What it costs", about.cost),
    ):
        yield f"\n*{what}:* {said}"
    worst = sorted(rows, key=lambda row: -abs(row.error))[:SHOWN]
    shown = [row for row in rows if row in worst][:SHOWN]
    yield ""
    if len(shown) < len(rows):
        yield f"The {len(shown)} of {len(rows)} cases with the largest errors:\n"
    yield "| case | kernbench | reference | | error |"
    yield "|---|---|---|---|---|"
    for row in shown:
        yield f"| {row.case} | {row.ours:.6g} | {row.reference:.6g} | {row.unit} | {row.error:+.2%} |"
