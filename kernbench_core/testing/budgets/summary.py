"""What the end of a pytest run says of goldens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kernbench_core.testing.budgets.records import NEW, REWRITTEN, SAME, CaseRecord


def summary_lines(cases: Iterable[CaseRecord], stale: Sequence[str], update: bool) -> Iterator[str]:
    """Yield which goldens were written and what changed in them, where they were to be, and which are nobody's."""
    goldens = [golden for case in cases for run in case.runs for golden in run.goldens]
    if update:
        count = Counter(each.state for each in goldens)
        yield f"goldens: {count[NEW]} new, {count[REWRITTEN]} rewritten, {count[SAME]} as they were"
        for each in goldens:
            if each.state in (NEW, REWRITTEN):
                said = f": {each.said}" if each.said else ""
                yield f"  {each.file}: {each.state}{said}"
    if stale:
        yield "goldens that no test asked for; remove those that nobody needs:"
        yield from (f"  {file}" for file in stale)
