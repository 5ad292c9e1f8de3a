"""Compare kernbench with what shares no code with it, and write docs/accuracy.md.

    python tools/accuracy [--check] [--only AREA]

The page is written when every comparison was run; `--check` leaves it alone and shows where it has changed, and
`--only` runs one comparison and prints its cases. The exit code is 1 when an error is above its limit, or the page
another one.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tools.accuracy.comparison import AREAS, areas, rows_of
from tools.accuracy.page import page

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "accuracy.md"


def main(argv: list[str] | None = None) -> int:
    """Run the comparisons, write or check the page, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the page that there is, and write nothing")
    parser.add_argument("--only", choices=AREAS, help="print the cases of one comparison")
    options = parser.parse_args(argv)
    found, wrong = [], 0
    for name, area in areas((options.only,) if options.only else AREAS):
        rows = rows_of(area)
        found.append((area.ABOUT, rows))
        for row in rows:
            if abs(row.error) > area.ABOUT.within:
                wrong = 1
                print(f"{name}: {row.case} is off by {row.error:+.2%}, beyond {area.ABOUT.within:.1%}", file=sys.stderr)
            if options.only:
                print(f"{row.case:60} {row.ours:14.6g} {row.reference:14.6g} {row.unit:8} {row.error:+.2%}")
    if options.only:
        return wrong
    text = page(found)
    if options.check:
        old = PAGE.read_text(encoding="utf-8").splitlines(keepends=True)
        changes = list(difflib.unified_diff(old, text.splitlines(keepends=True), "docs/accuracy.md", "now"))
        sys.stdout.writelines(changes)
        return 1 if changes else wrong
    PAGE.write_text(text, encoding="utf-8")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
