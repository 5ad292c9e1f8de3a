"""The command line of the comparisons, for each tool that has jobs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence

from gates.arguments import add_jobs, checkout_of
from gates.sides import Job, checkout, compare, sides_of
from gates.table import PAGES, head, line, updated
from kernbench_core.compiled import in_words, is_compiled


def run_gates(jobs: Mapping[str, Job], argv: Sequence[str]) -> int:
    """Compare, print a line for each job as it is done, and return 1 when one is slower than asked."""
    parser = argparse.ArgumentParser(description="Compare with the last commit that was pure Python.")
    parser.add_argument("--gates", action="store_true", help="compare (this)")
    add_jobs(parser, jobs)
    parser.add_argument(
        "--before", type=checkout_of, metavar="TREE", help="a checkout to compare with, instead of making one"
    )
    parser.add_argument("--update", action="store_true", help="write the lines into README.md and docs/speed.md")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="measure less, for tests: the ratios say nothing")
    options = parser.parse_args(argv)
    if not is_compiled():
        print(f"What runs here is {in_words()}, so only that is compared; make compiled compiles it.", file=sys.stderr)
    findings = []
    if not options.json:
        print(head(), end="", flush=True)
    with checkout(options.before) as before:
        sides = sides_of(before, is_compiled())
        for name in options.jobs or list(jobs):
            findings.append(compare(jobs[name], sides, options.quick))
            if not options.json:
                print(line(findings[-1]), end="", flush=True)
            if options.update and not options.quick:
                for page in PAGES:
                    page.write_text(updated(page.read_text(encoding="utf-8"), [line(findings[-1])]), encoding="utf-8")
    ok = options.quick or all(found.ok for found in findings)
    if options.json:
        found_of = {
            found.job.label: {"pure": found.pure, "compiled": found.compiled, "ok": found.ok, "told": found.told}
            for found in findings
        }
        print(json.dumps({"ok": ok, "jobs": found_of}, indent=2))
    return 0 if ok else 1
