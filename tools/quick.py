"""Run the tests of what changed: those that mirror a file, those of its room, and those that import it.

    .venv/bin/python tools/quick.py [--since COMMIT] [--seconds 20] [--list]

`make quick` calls it. What changed is what is different from the main branch, or on that branch from what landed last,
or from the commit before. The nearest tests come first, until they take `--seconds` of recorded CPU time. Heavy tests,
and all cases but three of a test, are left to `make test`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO))

from tests.selection.changed import TestMap, base, changed_files  # noqa: E402
from tests.selection.records import Times  # noqa: E402


def within(files: Sequence[str], seconds: float) -> list[str]:
    """Return the first of the files that take so many CPU seconds without their heavy tests; one at least."""
    times, found = Times.read(), list[str]()
    for file in files:
        seconds -= times.of_file(file, heavy_share=0.0, long_share=0.0)
        if found and seconds < 0:
            break
        found.append(file)
    return found


def main() -> int:
    """Choose and run; the exit code is pytest's, 0 where there is nothing to run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", default=base(os.environ.get("KB_LANDED")), help="a commit to compare with")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds of tests")
    parser.add_argument("--list", action="store_true", help="print the files of tests and run nothing")
    given = parser.parse_args()
    changed = changed_files(given.since)
    touched = TestMap().touched(changed)
    chosen = within(touched, given.seconds)
    left = f"; {len(touched) - len(chosen)} more that they touch are left to `make test`" if chosen != touched else ""
    since = given.since[:8] if given.since else "nothing"
    print(f"{len(changed)} files changed since {since}: {len(chosen)} files of tests{left}", flush=True)
    if given.list:
        print("\n".join(chosen))
    if given.list or not chosen:
        return 0
    environment = {**os.environ, "KB_CASES": "3", "KB_HEAVY": "0"}
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *chosen], cwd=REPO, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
