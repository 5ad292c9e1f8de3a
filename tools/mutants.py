"""Break kernbench on purpose, one line at a time, and count the tests that notice.

    pip install -e .[mutants]
    python tools/mutants.py [--list] [--rule] [--only ID …] [--results results.json]

cosmic-ray says how Python code can be broken. Which lines are is a matter of a hash of their file, function and text
with the seed of `mutants.toml`: each line of a function of the three packages is as likely, as a fault may be in any,
and a change elsewhere leaves them chosen. The tests are those that tests/selection/changed.py has for the file, the
nearest first, as far as the budget goes: so many CPU seconds by tests/times.csv.

Each mutant is made in a copy of the tree that runs as Python. It is `killed` when tests fail; `endless` when they take
far longer than was recorded (CPU time: a busy machine is no failure) or wait for ever, and do not on whole code;
`survived` otherwise.
At the end the tests that killed one run on whole code: what fails there, too, counts for nothing. With `--rule` the
tests run as a landing has them, without it all of the files. Mutants that change nothing that anybody could see are
listed in `mutants.toml` with the reason and do not count.

With --results, what is known already is not run again: interrupt it as you like.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tools"))
sys.path.insert(0, str(REPO))

from mutants_chosen import Mutant, chosen, git, planted  # noqa: E402

from tests.selection.changed import TestMap  # noqa: E402
from tests.selection.records import Times  # noqa: E402
from tests.selection.rule import LANDING  # noqa: E402

#: CPU seconds that each run may take, and how many times those that its tests took when they ran compiled.
_START, _SLOWER = 40, 3
#: Seconds after which a run is looked at, and CPU seconds that one has by then which waits for nothing.
_STILL, _SOME = 300, 0.5
#: So many tests that fail are too few to be believed at once.
_FEW = 3
#: What pytest ends with where there is nothing to run.
_NO_TESTS = 5
#: Bytes that one process may have: what a mutant makes grow must not end what else runs here.
_MEMORY = 6 << 30


def within(budget: float, touched: Sequence[str], times: Times) -> tuple[list[str], float]:
    """Return the nearest test file, those after it that the budget has CPU seconds for, and what they take."""
    found: list[str] = []
    spent = 0.0
    for test in touched:
        seconds = times.of_file(test)
        if not found or spent + seconds <= budget:
            found.append(test)
            spent += seconds
    return found, spent


def _limit(seconds: int) -> None:
    """End this process when it has computed for too long: how long that takes depends on what else runs here."""
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_DATA, _MEMORY)):
        hard = resource.getrlimit(kind)[1]  # of whoever started this tool
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


class Bench:
    """Copies of a tree, one for each mutant that is tried at a time: what git has or would add, so nothing compiled."""

    def __init__(self, tree: Path, jobs: int, options: Sequence[str], environment: Mapping[str, str]) -> None:
        self._options = options
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        own = {name: value for name, value in os.environ.items() if not name.startswith(("KB_", "PYTHONDONTWRITE"))}
        self._environment = {**own, "CI": "1", "TMPDIR": str(self._folder), **environment}
        shutil.copy(REPO / "tools" / "mutants_plugin.py", self._folder)
        self._free: SimpleQueue[Path] = SimpleQueue()
        changed = git(tree, "diff", "--name-only", "--diff-filter=d", "HEAD")
        for number in range(jobs):
            copy = self._folder / f"copy{number}"
            git(tree, "clone", "--quiet", "--shared", str(tree), str(copy))
            for name in changed + git(tree, "ls-files", "--others", "--exclude-standard"):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(tree / name, copy / name)
            self._free.put(copy)

    def close(self) -> None:
        """Remove the copies."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def judge(self, tests: Sequence[str], seconds: float, mutant: Mutant | None = None) -> tuple[str, list[str]]:
        """Run tests on broken or on whole code; return what became of it, and what failed, in this order."""
        copy = self._free.get()
        before = "" if mutant is None else (copy / mutant.file).read_text(encoding="utf-8")
        try:
            if mutant is not None:
                _write(copy / mutant.file, mutant.code)
            return self._run(copy, tests, seconds, {})
        finally:
            if mutant is not None:
                _write(copy / mutant.file, before)
            self._free.put(copy)

    def failing(self, tests: Iterable[str]) -> set[str]:
        """Return which of some tests fail on whole code, whosever turn it is."""
        only = self._folder / "only.json"
        only.write_text(json.dumps(sorted(tests)), encoding="utf-8")
        files = sorted({test.partition("::")[0] for test in tests})
        copy = self._free.get()
        _, failed = self._run(copy, files, 1e6, {"MUTANTS_ONLY": str(only), **dict.fromkeys(LANDING, "")})
        self._free.put(copy)
        return set(failed)

    def _run(self, copy: Path, tests: Sequence[str], seconds: float, more: Mapping[str, str]) -> tuple[str, list[str]]:
        noted = copy.with_suffix(".failed")
        noted.write_text("", encoding="utf-8")
        given = {"PYTHONPATH": f"{copy}:{self._folder}", "MUTANTS_FAILED": str(noted), **more}
        options = ["-q", "-p", "no:cacheprovider", "-p", "mutants_plugin", "--continue-on-collection-errors"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *self._options, *tests], cwd=copy, start_new_session=True,
            env={**self._environment, **given}, preexec_fn=partial(_limit, int(seconds)), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        ended = _end(process)
        failed = list(dict.fromkeys(map(json.loads, noted.read_text(encoding="utf-8").splitlines())))
        if ended == -signal.SIGKILL or (ended == -signal.SIGTERM and not failed):
            sys.exit("Somebody else ended the tests of a mutant, which says nothing of it; go on with --results.")
        if ended in (None, -signal.SIGXCPU):
            return "endless", failed
        return ("survived" if ended in (0, _NO_TESTS) else "killed"), failed


def _end(process: subprocess.Popen[bytes]) -> int | None:
    """Wait for a session of processes; end one that computes nothing, and so waits for ever, and return None."""
    computed = 0.0
    while True:
        try:
            return process.wait(_STILL)
        except subprocess.TimeoutExpired:
            before, computed = computed, _computed(process.pid)
        if computed - before < _SOME:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def _computed(session: int) -> float:
    """Return the CPU seconds of the processes of a session, and of what they waited for."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            values = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(values[3]) == session:
                ticks += sum(map(int, values[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _write(path: Path, code: str) -> None:
    """Write a source, and forget what it was compiled to: Python knows that by size and second only."""
    path.write_text(code, encoding="utf-8")
    for old in path.parent.glob(f"__pycache__/{path.stem}.*"):
        old.unlink()


def verdict(outcome: str, tests: Sequence[str]) -> str:
    """Say what became of a mutant, and by how many tests."""
    if outcome == "survived":
        return "survived"
    count = "1 test" if len(tests) == 1 else f"{len(tests):,} tests"
    if outcome == "endless":
        return f"endless, and killed by {count}"
    if not any("::" in test for test in tests):
        return "killed by collection"
    return f"killed by {count}, first {tests[0]}"


class Results:
    """What is known of mutants by their ids, and of tests on whole code, in a file to go on from."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        known = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}
        self.mutants: dict[str, dict[str, Any]] = known.get("mutants", {})
        self.fails_anyway: dict[str, bool] = known.get("fails_anyway", {})

    def save(self) -> None:
        """Write down what is known."""
        if self._path is not None:
            found = {"mutants": dict(self.mutants), "fails_anyway": self.fails_anyway}
            self._path.write_text(json.dumps(found, indent=1), encoding="utf-8")

    def checked(self, bench: Bench, ids: Iterable[str]) -> list[dict[str, Any]]:
        """Return the entries of some mutants without the tests that fail on whole code, too, which are run for it."""
        entries = [self.mutants[one] for one in ids]
        new = {test for entry in entries for test in entry["tests"]} - self.fails_anyway.keys()
        failing = bench.failing(new) if new else set()
        self.fails_anyway.update({test: test in failing for test in sorted(new)})
        self.save()
        for test in sorted(test for test, fails in self.fails_anyway.items() if fails):
            print(f"fails on whole code, too: {test}")
        found = []
        for entry in entries:
            tests = [test for test in entry["tests"] if not self.fails_anyway[test]]
            nothing = entry["outcome"] == "killed" and entry["tests"] and not tests
            found.append({**entry, "tests": tests, "outcome": "survived" if nothing else entry["outcome"]})
        return found


def tried(mutant: Mutant, bench: Bench, tests: Sequence[str], recorded: float) -> tuple[str, list[str]]:
    """Return what became of a mutant; what takes too long on whole code, too, says nothing of it.

    Where few tests fail they run once more: one that fails by chance kills nothing.
    """
    seconds = _START + _SLOWER * recorded
    outcome, failed = bench.judge(tests, seconds, mutant)
    if outcome == "endless" and bench.judge(tests, seconds)[0] == "endless":
        outcome = "killed" if failed else "survived"
    if outcome == "killed" and 0 < len(failed) <= _FEW:
        again = bench.judge(failed, seconds, mutant)[1]
        failed = [test for test in failed if test in again]
        outcome = "killed" if failed else "survived"
    return outcome, failed


def run(mutants: Sequence[Mutant], bench: Bench, given: argparse.Namespace, results: Results) -> None:
    """Try every mutant of which nothing is known yet, and write down what is as it comes."""
    tests, times = TestMap(given.tree), Times.read()

    def one(mutant: Mutant) -> None:
        files, recorded = within(given.budget, tests.touched([mutant.file]), times)
        outcome, failed = tried(mutant, bench, files, recorded)
        results.mutants[mutant.id] = {"outcome": outcome, "what": str(mutant), "files": files, "tests": failed}
        results.save()
        print(f"{mutant}\n  {verdict(outcome, failed)}; {len(files)} test files", flush=True)

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(one, [mutant for mutant in mutants if mutant.id not in results.mutants]))


def main() -> int:
    """Choose, run, and say which survived; 1 where any did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--rule", action="store_true", help="choose among the tests as a landing does")
    parser.add_argument("--budget", type=float, default=40.0, help="CPU seconds of tests for each mutant")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--only", nargs="*", default=(), help="ids")
    parser.add_argument("--results", type=Path, help="a JSON file to go on from")
    parser.add_argument("--tree", type=Path, default=REPO, help="a checkout of another commit to break and to test")
    parser.add_argument("--marks", default="", help="which tests there are of a tree, as pytest's -m")
    given = parser.parse_args()
    given.tree = given.tree.resolve()
    settings = tomllib.loads((REPO / "tools" / "mutants.toml").read_text(encoding="utf-8"))
    mutants = [*planted(given.tree, settings["planted"]), *chosen(given.tree, settings["seed"], settings["count"])]
    reasons = {entry["mutant"]: entry["reason"] for entry in settings.get("equivalent", ())}
    mutants = [mutant for mutant in mutants if mutant.id in given.only or not given.only]
    if given.list:
        for mutant in mutants:
            print(mutant, *([f"  equivalent: {reasons[mutant.id]}"] if mutant.id in reasons else []), sep="\n")
        return 0
    mutants = [mutant for mutant in mutants if mutant.id not in reasons]
    options = ["--hypothesis-profile=mutants", *(["-m", given.marks] if given.marks else [])]
    bench = Bench(given.tree, given.jobs, options, LANDING if given.rule else {})
    results = Results(given.results)
    try:
        run(mutants, bench, given, results)
        found = results.checked(bench, [mutant.id for mutant in mutants])
    finally:
        bench.close()
    alive = [entry["what"] for entry in found if entry["outcome"] == "survived"]
    once = [f"{entry['what']}\n  {entry['tests'][0]}" for entry in found if len(entry["tests"]) == 1]
    print(f"\n{len(found) - len(alive)} of {len(found)} noticed, {len(once)} of them by one test:", *once, sep="\n")
    print("\nSurvived:", *alive, sep="\n")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
