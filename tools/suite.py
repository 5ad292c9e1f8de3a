"""Run the suite in parts, and other checks beside it, on as many slots as there are cores; say what each took.

    .venv/bin/python tools/suite.py [-j 2] [--all] [--times] [--also golden types …] [PATH …]

`make test` calls it, and .ci/run calls that with everything that a change must keep. Each part of the suite has
folders of its own, which take the same recorded time (tests/times.csv), so that each collects its own tests only. A
job's output is printed when it ends; a table of CPU seconds comes last, and then the first failure with the command
that repeats it.

tests/selection/rule.py chooses among the tests; --all has every one, and --times, too, and writes tests/times.csv anew.
Asserts are not rewritten, which takes longer than importing the tests: what failed is run once more to tell values.
A test that failed because it was its turn is run on the commit before, and it is said what came of it there.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attrs import field, frozen

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO))

from tests.selection.changed import base, git  # noqa: E402
from tests.selection.records import Times, write_times  # noqa: E402
from tests.selection.rule import LANDING  # noqa: E402

PYTHON = str(Path(sys.executable).parent / "python")
PURE = {"KERNBENCH_PURE": "1"}
#: Where tests are.
ROOTS = ("tests", "plugins_example/tests")
#: The tests that build the site, which run once: in the check that is named for it, or in the suite.
SITE = "tests/test_site.py"
#: Tests that run as the Python that the core was compiled from, too.
PURE_TESTS = "tests/test_fuzz_kernels.py tests/test_fuzz_machines.py tests/reference tests/builtin/machine tests/builtin/components"  # noqa: E501

#: Of each function they have one case and of the long tests none; what is heavy keeps its turn in the suite.
PURE_RULE = {**PURE, **LANDING, "KB_CASES": "1", "KB_LONG": "0", "KB_LEDGER": ""}

#: Of so many tests that failed the values are told.
MOST_TOLD = 20


@frozen
class Job:
    """A command of the shell, with what it has in its environment."""

    name: str
    command: str
    environment: Mapping[str, str] = field(factory=dict)

    @property
    def typed(self) -> str:
        """The command as a person types it."""
        return " ".join([*(f"{name}={value}" for name, value in self.environment.items()), self.command])


@frozen
class Done:
    """What became of a job."""

    job: Job
    code: int
    cpu_s: float
    wall_s: float


#: What may run beside the suite, by name.
CHECKS = {
    job.name: job
    for job in (
        Job("pure", f"{PYTHON} -m pytest -q -p no:cacheprovider {PURE_TESTS}", PURE_RULE),
        Job("golden", f"{PYTHON} tools/golden.py --check"),
        Job("golden-pure", f"{PYTHON} tools/golden.py --check", PURE),
        Job("types", f"{PYTHON} -m mypy"),
        Job("style", f"{PYTHON} -m ruff check . && {Path(PYTHON).parent}/lint-imports"),
        Job("docs", f"{PYTHON} -m pytest -q {SITE}"),
    )
}


def test_files(paths: Sequence[str]) -> list[str]:
    """Return the files of tests that are given, or that lie below a folder that is."""
    found = [[REPO / path] if path.endswith(".py") else (REPO / path).rglob("test_*.py") for path in paths]
    return sorted({str(file.relative_to(REPO)) for files in found for file in files})


def parts(files: Sequence[str], number: int, *, every: bool) -> list[list[str]]:
    """Return folders and files of tests for so many processes, by recorded times: each part is in one piece."""
    times = Times.read()
    shares = {} if every else {"heavy_share": 1 / 12, "long_share": 0.015, "cases": 3}  # about what a landing has
    seconds = [times.of_file(file, **shares) + 0.01 for file in files]
    found: list[list[str]] = [[] for _ in range(number)]
    spent, total = 0.0, sum(seconds)
    for file, each in zip(files, seconds, strict=True):
        found[min(number - 1, int((spent + each / 2) / total * number))].append(file)
        spent += each
    return [_folded(part, test_files(ROOTS)) for part in found if part]


def _folded(part: Sequence[str], files: Iterable[str]) -> list[str]:
    """Return a part with folders in the place of all their files."""
    others = set(files) - set(part)
    found: list[str] = []
    for file in part:
        whole = file
        for folder in Path(file).parents:
            if not str(folder).startswith(ROOTS) or any(other.startswith(f"{folder}/") for other in others):
                break
            whole = str(folder)
        if not found or found[-1] != whole:
            found.append(whole)
    return found


class Runner:
    """Run jobs on slots, and print what each says when it has ended."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._printing = threading.Lock()
        self.done: list[Done] = []
        self.began = time.monotonic()

    def run(self, jobs: Sequence[Job]) -> None:
        """Run jobs, those that come first first."""
        with ThreadPoolExecutor(self._slots) as pool:
            list(pool.map(self._run, jobs))

    def _run(self, job: Job) -> None:
        began = time.monotonic()
        with tempfile.TemporaryFile() as out:
            environment = {**os.environ, **job.environment}
            process = subprocess.Popen(
                job.command, shell=True, cwd=REPO, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            text = out.read().decode(errors="replace")
        done = Done(job, process.returncode, used.ru_utime + used.ru_stime, time.monotonic() - began)
        with self._printing:
            self.done.append(done)
            state = "passed" if done.code == 0 else f"FAILED ({done.code})"
            print(f"\n--- {job.name}: {state} in {done.wall_s:.0f} s ---\n{text.rstrip()}", flush=True)

    def table(self) -> str:
        """Return what each job took, and how busy the slots were."""
        wall = time.monotonic() - self.began
        cpu = sum(done.cpu_s for done in self.done)
        installing = sum(map(float, os.environ.get("KB_INSTALLING", "0").split()))
        rows = [f"{'job':<16}{'CPU s':>8}{'wall s':>8}"]
        rows += [f"{'installing':<16}{installing:8.0f}"] if installing else []
        rows += [f"{done.job.name:<16}{done.cpu_s:8.0f}{done.wall_s:8.0f}" for done in self.done]
        busy = cpu / (wall * self._slots)
        rows += [f"{'all':<16}{cpu + installing:8.0f}{wall:8.0f}   {self._slots} slots, {busy:.0%} used"]
        return "\n".join(rows)


def before(failed: Sequence[str], since: str | None) -> str:
    """Run tests on the commit before, and return in a sentence what came of them there."""
    if since is None:
        return "there is no commit before to try them on"
    folder = Path(tempfile.mkdtemp(prefix="kernbench-before-"))
    try:
        if git("worktree", "add", "--detach", str(folder / "tree"), since) is None:
            return f"{since[:8]} could not be checked out to try them there"
        environment = {**os.environ, "PYTHONPATH": str(folder / "tree")}
        known = [test for test in failed if (folder / "tree" / test.partition("::")[0]).is_file()]
        done = subprocess.run(
            [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *known],
            cwd=folder / "tree", env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        last = done.stdout.strip().splitlines()[-1:] or [done.stderr.strip()]
        return f"on {since[:8]}, the commit before: {last[0].strip('= ')}"
    finally:
        git("worktree", "remove", "--force", str(folder / "tree"))
        shutil.rmtree(folder, ignore_errors=True)


def once_more(failed: Sequence[str]) -> str:
    """Run tests again, with values told where an assert fails; return what pytest says."""
    again = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *failed[:MOST_TOLD]]
    environment = {**os.environ, **LANDING, "KB_LEDGER": ""}
    done = subprocess.run(again, cwd=REPO, env=environment, capture_output=True, text=True, check=False)
    said = f"\n--- once more, with values: {min(len(failed), MOST_TOLD)} of the {len(failed)} that failed ---\n"
    return said + done.stdout + done.stderr


def report(runner: Runner, notes: Path) -> int:
    """Print the table, and the first failure; return the exit code."""

    def noted(name: str) -> list[str]:
        return (notes / name).read_text(encoding="utf-8").splitlines() if (notes / name).exists() else []

    tests, turns = noted("failed"), noted("turns")
    if tests:
        print(once_more(tests))
    print(f"\n{runner.table()}")
    failures = [done for done in runner.done if done.code != 0]
    if not failures:
        return 0
    if turns:
        print(f"\n{len(turns)} failed whose turn it was, which need not be of this change:")
        print("\n".join(f"  {test}" for test in turns))
        print(f"  {before(turns, base(os.environ.get('KB_LANDED')))}")
    again = f"{PYTHON} -m pytest {shlex.join(tests[:5])}" if tests and "tests" in failures[0].job.name else ""
    print(f"\nfailed first: {failures[0].job.name}; again: {again or failures[0].job.typed}")
    return 1


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="slots, and parts of the suite")
    parser.add_argument("--all", action="store_true", help="every test")
    parser.add_argument("--times", action="store_true", help="every test, and tests/times.csv written anew")
    parser.add_argument("--also", nargs="*", default=(), choices=tuple(CHECKS), help="checks beside the suite")
    parser.add_argument("paths", nargs="*", help="files or folders of tests instead of all")
    given = parser.parse_args()
    notes = Path(tempfile.mkdtemp(prefix="kernbench-suite-"))
    environment = {"KB_TURNS": str(notes / "turns"), "KB_FAILED": str(notes / "failed")}
    if given.times:
        environment["KB_TIMES"] = str(notes / "times")
    elif not given.all:
        environment |= LANDING
    files = [file for file in test_files(given.paths or ROOTS) if file != SITE or "docs" not in given.also]
    found = parts(files, given.jobs, every=given.all or given.times)
    jobs = [
        Job(f"tests {number} of {len(found)}", f"{PYTHON} -m pytest -q --assert=plain {shlex.join(part)}", environment)
        for number, part in enumerate(found, 1)
    ]
    runner = Runner(given.jobs)
    try:
        runner.run([*jobs, *(CHECKS[name] for name in given.also)])
        if given.times:
            rows = [line.split("\t") for line in (notes / "times").read_text(encoding="utf-8").splitlines()]
            write_times({nodeid: float(seconds) for seconds, nodeid in rows}, only=bool(given.paths))
        return report(runner, notes)
    finally:
        shutil.rmtree(notes, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
