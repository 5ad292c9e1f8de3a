"""Measure two trees of kernbench side by side: processor time of whole commands, this tree's over the other's.

    git worktree add /tmp/before COMMIT
    python tools/compare_trees.py /tmp/before [--pairs 15] [--most 1.03] [--json] [JOB ...]

Each job is run in pairs, a process for each, and which tree comes first changes from pair to pair. Both trees run on
the interpreter, and with the libraries, of this one. The number is the median of the pairs' ratios; the exit code is 1
when one is above `--most`. Nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
JOBS = {
    "gemm": ["run", "gemm-naive", "-p", "M=1024", "-p", "N=1024", "-p", "K=1024", "-q"],
    "all_reduce": ["ccl", "all_reduce", "--ranks", "8", "-b", "1M", "-e", "1M"],
    "help": ["--help"],
}


def seconds(tree: Path, arguments: list[str]) -> float:
    """Run a command of a tree; return the processor time in s that it took."""
    program = "import sys; from kernbench_core.cli import main; sys.argv[0] = 'kernbench'; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else one tree may be compiled anew each time, the other not
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], cwd=tree, env=environment, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"kernbench {' '.join(arguments)} in {tree} must end well, not with {process.returncode}.")
    return used.ru_utime + used.ru_stime


def compared(job: str, other: Path, pairs: int) -> dict[str, object]:
    """Run a job in pairs; return the median ratio and the medians of both in s."""
    arguments, times = JOBS[job], []
    for tree in (HERE, other):  # compile both, and warm the disk
        seconds(tree, arguments)
    for pair in range(pairs):
        first, second = (HERE, other) if pair % 2 else (other, HERE)
        measured = {first: seconds(first, arguments)}
        measured[second] = seconds(second, arguments)
        times.append((measured[HERE], measured[other]))
    return {
        "job": job,
        "ratio": statistics.median(own / others for own, others in times),
        "own_s": statistics.median(own for own, _ in times),
        "other_s": statistics.median(others for _, others in times),
    }


def main() -> int:
    """Compare, print a line for each job, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the other tree")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"only these of {', '.join(JOBS)}")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--most", type=float, default=1.03)
    parser.add_argument("--json", action="store_true", help="print one JSON object for each job")
    options = parser.parse_intermixed_args()
    if not (options.other / "kernbench_core").is_dir():
        parser.error(f"{options.other} must be a tree of kernbench, with a folder kernbench_core")
    for job in options.jobs:
        if job not in JOBS:
            parser.error(f"jobs must be among {', '.join(JOBS)}, not {job!r}")
    passed = True
    for job in options.jobs or JOBS:
        found = compared(job, options.other.resolve(), options.pairs)
        ok = float(str(found["ratio"])) <= options.most
        passed &= ok
        line = f"{job:12} {found['ratio']:.3f} times ({found['own_s']:.2f} s, other {found['other_s']:.2f} s)"
        print(json.dumps(found) if options.json else f"{line}  at most {options.most}  {'ok' if ok else 'TOO SLOW'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
