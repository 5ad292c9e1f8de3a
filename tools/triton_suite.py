"""Run a copy of Triton's own language tests under kernbench, and tabulate what came of them by function and reason.

`tools/try_triton.py --triton-suite FOLDER` does it: cases with the marker `interpreter` of six files, on the device
`cpu` as under Triton's interpreter (`TRITON_INTERPRET=1`), in processes that run some hundred cases each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

FILES = (
    "test_core.py", "test_standard.py", "test_random.py", "test_block_pointer.py", "test_tensor_descriptor.py",
    "test_tuple.py",
)  # fmt: skip
PASSED, SKIPPED, WRONG = "passed", "skipped", "silently wrong"
TIMEOUT, GONE, NOT_IMPORTED = "timeout", "Python crashed", "file not imported"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "triton.md"
BEGIN, END = "<!-- suite begin -->", "<!-- suite end -->"
_PART = 250
"""Cases that one process runs at most."""


@frozen
class CaseOutcome:
    """What came of a case, in seconds of processor time: the first line of its error, and the place that raised it."""

    case: str
    outcome: str
    line: str = ""
    where: str = ""
    seconds: float = 0.0

    @property
    def function(self) -> str:
        """The test function that the case is one of."""
        return self.case.partition("[")[0]

    @property
    def reason(self) -> str:
        """Why it failed, without what is the case's own."""
        return f"{self.outcome}: {alike(self.line)}" if self.line else self.outcome


def alike(line: str) -> str:
    """Return a first line without what is the case's own: places, quoted names, numbers."""
    line = re.sub(r"[\w./-]+\.py:\d+", "FILE", line)
    return re.sub(r"-?\b(0x[\da-f]+|\d[\d.,]*(e-?\d+)?)", "N", re.sub(r"(?<!\w)'[^']*'(?!\w)", "'…'", line))[:160]


def folder_of(given: Path) -> Path:
    """Return the folder of the tests: the one given, or that below it where a checkout of Triton has them."""
    for folder in (given, given / "python" / "test" / "unit" / "language", given / "test" / "unit" / "language"):
        if any((folder / name).is_file() for name in FILES):
            return folder.resolve()
    raise SystemExit(f"{given} must be a checkout of Triton or a folder with {FILES[0]}, {FILES[1]}, …; it has none.")


class Suite:
    """The copy in a folder, run with the limits of the tool's options."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder = folder_of(folder)
        self._options = options
        self.unreadable: dict[str, str] = {}

    def _run(self, cases: Sequence[str] | None, files: Iterable[str]) -> tuple[list[dict[str, Any]], int | None, str]:
        """Run or list cases in a process of its own; return what it wrote down, its exit code, and its last words."""
        options = self._options
        work = {
            "cases": cases, "files": [str(self._folder / name) for name in files], "arguments": self._arguments(),
            "timeout": options.timeout, "memory": options.memory, "topology": options.topology,
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as name:
            asked, notes = Path(name) / "work.json", Path(name) / "notes"
            asked.write_text(json.dumps(work), encoding="utf-8")
            call = [sys.executable, str(Path(__file__).with_name("triton_suite_cases.py")), str(asked), str(notes)]
            one = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(
                call, cwd=name, env={**os.environ, **one}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
            )
            lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
        return [json.loads(line) for line in lines], done.returncode, done.stdout.decode(errors="replace")[-2000:]

    def _arguments(self) -> list[str]:
        """Return what pytest is told; the device only where a conftest.py of the suite knows of it."""
        above = [self._folder, *self._folder.parents]
        known = any("--device" in _text(folder / "conftest.py") for folder in above)
        usual = ["-q", "-p", "no:cacheprovider", "--tb=no", "--continue-on-collection-errors", "-W", "ignore"]
        return [*usual, *(["--device", "cpu"] if known else [])]

    def cases(self) -> list[str]:
        """Return the names of all cases; of files that cannot be imported, the error is in `unreadable`."""
        files = [name for name in FILES if (self._folder / name).is_file()]
        lines, code, told = self._run(None, files)
        self.unreadable = {line["file"]: line["error"] for line in lines if "error" in line}
        found = [line["case"] for line in lines if "case" in line]
        if not found and not self.unreadable:
            raise SystemExit(f"pytest found no cases in {self._folder} (exit code {code}):\n{told}")
        return found

    def outcomes(self, cases: Sequence[str]) -> Iterator[CaseOutcome]:
        """Run cases, some hundred a process; give what came of each as it is known."""
        by_file: dict[str, list[str]] = defaultdict(list)
        for case in cases:
            if _file(case) in self.unreadable:
                yield CaseOutcome(case, NOT_IMPORTED, self.unreadable[_file(case)])
            else:
                by_file[_file(case)].append(case)
        parts = [each[at : at + _PART] for each in by_file.values() for at in range(0, len(each), _PART)]
        with ThreadPoolExecutor(self._options.jobs) as pool:
            for ran, each in enumerate(pool.map(self._part, parts), 1):
                print(f"{ran} of {len(parts)} parts ran", file=sys.stderr, flush=True)
                yield from each

    def _part(self, cases: Sequence[str]) -> list[CaseOutcome]:
        """Run cases of a file, in a new process after each case that ended the one before."""
        found: dict[str, CaseOutcome] = {}
        while left := [case for case in cases if case not in found]:
            lines, code, told = self._run(left, [_file(left[0])])
            before, begun = len(found), ""
            for line in lines:
                begun = line.get("begun", begun)
                if "outcome" in line:
                    found[begun] = CaseOutcome(begun, **line)
            if begun and begun not in found:
                late = code in (-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL)
                found[begun] = CaseOutcome(begun, TIMEOUT if late else GONE, "" if late else f"signal or code {code}")
            if len(found) == before:
                said = next((line for line in reversed(told.splitlines()) if line.strip()), "")
                found.update({case: CaseOutcome(case, GONE, said) for case in left})
        return list(found.values())


def _file(case: str) -> str:
    return case.partition("::")[0]


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def sampled(cases: Sequence[str], most: int, seed: int) -> list[str]:
    """Return random cases in their order, as many of each function as fit, so that those with few cases are there."""
    chance = random.Random(seed)
    shuffled = sorted(cases)
    chance.shuffle(shuffled)
    turn: Counter[str] = Counter()
    drawn = []
    for place, case in enumerate(shuffled):
        function = case.partition("[")[0]
        drawn.append((turn[function], place, case))
        turn[function] += 1
    chosen = {case for _, _, case in sorted(drawn)[:most]}
    return [case for case in cases if case in chosen]


def counted_cases(outcomes: Sequence[CaseOutcome], listed: bool) -> list[CaseOutcome]:
    """Return the cases that count: not those that the suite skips, but where a list says that they pass in Triton."""
    return [each for each in outcomes if listed or each.outcome != SKIPPED]


def report(outcomes: Sequence[CaseOutcome], head: str, listed: bool = False) -> str:
    """Lay out the totals, and the functions that are not whole with their reasons, as a page has them."""
    counted = counted_cases(outcomes, listed)
    by_function: dict[str, list[CaseOutcome]] = defaultdict(list)
    for each in counted:
        by_function[each.function].append(each)
    passed = sum(each.outcome == PASSED for each in counted)
    whole = sum(all(each.outcome == PASSED for each in cases) for cases in by_function.values())
    kinds = Counter(each.outcome for each in counted if each.outcome != PASSED)
    rows = [
        head, "", "| | of | passed | |", "|---|--:|--:|--:|",
        f"| cases | {len(counted)} | {passed} | {_share(passed, len(counted))} |",
        f"| functions, whole | {len(by_function)} | {whole} | {_share(whole, len(by_function))} |", "",
        f"Silently wrong: {kinds.pop(WRONG, 0)}. "
        + "; ".join(f"{kind}: {count}" for kind, count in kinds.most_common()) + ("." if kinds else ""),
    ]  # fmt: skip
    failing = {name: cases for name, cases in by_function.items() if any(each.outcome != PASSED for each in cases)}
    if failing:
        rows += ["", "| function | cases | failed | reason |", "|---|--:|--:|---|"]
    for name, cases in sorted(failing.items()):
        reasons = Counter(each.reason for each in cases if each.outcome != PASSED)
        for reason, count in reasons.most_common():
            rows.append(f"| `{name}` | {len(cases)} | {count} | {_cell(reason)} |")
    return "\n".join(rows)


def _share(part: int, all_of: int) -> str:
    return f"{100 * part / all_of:.1f} %" if all_of else "–"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def written_to(page: Path, text: str) -> None:
    """Put a report between the marks of a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} must have the lines {BEGIN} and {END}, for the table to stand between; add them.")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main(options: argparse.Namespace) -> int:
    """Run the suite in a folder, or a sample of it; write the table into the page, and return the exit code."""
    suite = Suite(options.triton_suite, options)
    cases = suite.cases()
    listed = options.cases is not None
    if listed:
        there = set(cases)
        named = [name for name in options.cases.read_text(encoding="utf-8").splitlines() if name]
        cases = [name for name in named if name in there or _file(name) in suite.unreadable]
        print(f"{len(named) - len(cases)} cases of the list are not in the suite", file=sys.stderr)
    cases = [case for case in cases if options.only in case]
    of = len(cases)
    if options.sample is not None:
        cases = sampled(cases, options.sample, options.seed)
    outcomes = []
    with (options.results or Path(os.devnull)).open("w", encoding="utf-8", buffering=1) as results:
        for each in suite.outcomes(cases):
            outcomes.append(each)
            results.write(f"{json.dumps(asdict(each), ensure_ascii=False)}\n")
    sample = f"{len(cases)} of {of} cases, by seed {options.seed}" if options.sample is not None else f"All {of} cases"
    skipped = sum(each.outcome == SKIPPED for each in outcomes)
    within = f"each within {options.timeout:g} s of processor time"
    head = f"{sample}, {within}; {skipped} of them skipped by the suite itself."
    gone = [f"`{name}` is not imported: {_cell(error)}" for name, error in suite.unreadable.items()]
    text = report(outcomes, "\n\n".join([head, *gone]), listed)
    print(text)
    if not options.only:
        written_to(options.page, text)
    return 1 if gone or any(each.outcome in (WRONG, GONE) for each in outcomes) else 0
