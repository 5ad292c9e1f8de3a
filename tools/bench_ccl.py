"""Measure what it takes to simulate all-reduces, and print it as the table of docs/collectives_speed.md.

    python tools/bench_ccl.py [--update] [--json] [--quick] [JOB …]
    python tools/bench_ccl.py --gates [JOB ...] [--before TREE] [--update] [--quick]

Each job has a process of its own, so that its peak memory is its own; they come one after another. A job named `sips`
is one out-of-place run over the 8 SIPs of `default`, one named `pes` over the 512 PEs of `full`, each of which brings a
vector; `table` is `kernbench ccl all_reduce -b 1K -e 16M -f 2 --ranks 8`, data checked, in two processes, and may take
two minutes. `--update` writes the table between the marks in docs/collectives_speed.md. The exit code is 1 when data
is wrong or a limit is passed. Wall times are those of this machine: nothing else should run on it. `--gates` compares
with the last commit that was pure Python, as tools/bench_engine.py does.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gates.arguments import GATES, add_jobs

from kernbench_core.units import format_bytes, format_time

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "collectives_speed.md"
BEGIN, END = "<!-- tools/bench_ccl.py writes from here -->\n", "<!-- to here -->\n"
TITLES = ("all-reduce, f16", "data", "simulated", "events", "events/s", "CPU time", "wall time", "peak memory")
KIB, MIB = 1 << 10, 1 << 20


@frozen
class Job:
    """One measurement: sizes from `least` to `most` bytes, doubling, in and out of place where there are several.

    `limit_s` is the wall time that it may take, where it has a limit; `sets` changes the machine.
    """

    what: str
    topology: str
    ranks: int | None
    contributors: str
    least: int
    most: int
    check: bool
    jobs: int = 1
    limit_s: float | None = None
    sets: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What the table calls it."""
        if self.least != self.most:
            return f"table of {format_bytes(self.least)} to {format_bytes(self.most)}, {self.what}"
        return f"{format_bytes(self.most)} over {self.what}" + "".join(f", {text}" for text in self.sets)


def _sips(size: int, check: bool = True) -> Job:
    return Job("8 SIPs", "default", 8, "sip", size, size, check)


def _pes(size: int, check: bool) -> Job:
    return Job("512 PEs", "full", None, "pe", size, size, check)


JOBS = {
    "sips-1M": _sips(MIB),
    "sips-16M": _sips(16 * MIB),
    "sips-64M": _sips(64 * MIB),
    "pes-64K": _pes(64 * KIB, True),
    "pes-1M": _pes(MIB, False),
    "pes-2M": _pes(2 * MIB, False),
    "pes-16M": evolve(_pes(16 * MIB, False), sets=("system.chunk_bytes=16 KiB",)),
    "table": Job("8 SIPs", "default", 8, "sip", KIB, 16 * MIB, True, jobs=2, limit_s=120.0),
}
"""Every job, by its name. Vectors of 512 PEs are checked where they fit into memory several times."""
QUICK = {
    "sips-4K": Job("2 SIPs", "tiny", 2, "sip", 4 * KIB, 4 * KIB, True),
    "pes-4K": Job("4 PEs", "tiny", None, "pe", 4 * KIB, 4 * KIB, True),
    "table": Job("2 SIPs", "tiny", 2, "sip", KIB, 4 * KIB, True, limit_s=120.0),
}
"""What `--quick` runs instead, for tests."""

ONE_RUN = """
import json, resource, sys, time
from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import Chooser, Question
from kernbench_ccl.plan import load_ccl
from kernbench_ccl.measure import Setup, machine_of
from kernbench_ccl.measure.measurement import measure
from kernbench_ccl.measure import Sweep
from kernbench_core.values.dtypes import itemsize
from kernbench_core.plugins import load_plugins, own_plugins
job = json.loads(sys.argv[1])
began = time.perf_counter()
plugins = load_plugins(own_plugins(), installed=False)
sets = (*job["sets"], *([] if job["ranks"] is None else [f"system.sips={job['ranks']}"]))
setup = Setup(job["topology"], None, sets, False, job["check"])
machine = machine_of(setup, plugins)
question = Question(COLLECTIVES["all_reduce"], "f16", "sum", 0, contributors=job["contributors"])
chooser = Chooser(question, machine, load_ccl(catalogue=Catalogue.of(plugins)), plugins)
choice = chooser.best(job["most"])
case = Sweep(question, setup, machine, plugins).case(job["most"] // itemsize("f16"), choice, False)
found = measure(case, machine, plugins, checked=job["check"])
wall = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "algorithms": [case.algorithm], "time_ns": found.time_ns, "busbw": found.busbw, "wrong": found.wrong,
    "faults": [*found.failures, *found.hazards], "events": found.events, "wall_s": wall,
    "cpu_s": used.ru_utime + used.ru_stime, "peak_mib": used.ru_maxrss / 1024,
}))
"""
"""The program of a process that runs one size out of place; all that it takes counts, also loading and compiling."""

A_TABLE = """
import json, resource, sys, time
from contextlib import redirect_stdout
from io import StringIO
from kernbench_core.cli import main
if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    words = ["ccl", "all_reduce", "-b", str(job["least"]), "-e", str(job["most"]), "-f", "2", "--json", "-q"]
    words += ["--topology", job["topology"], "--ranks", str(job["ranks"]), "-j", str(job["jobs"])]
    began = time.perf_counter()
    with redirect_stdout(StringIO()) as printed:
        code = main(words)
    wall = time.perf_counter() - began
    table = json.loads(printed.getvalue())
    halves = [row[half] for row in table["rows"] for half in ("out_of_place", "in_place")]
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({
        "algorithms": list(dict.fromkeys(row["algorithm"] for row in table["rows"])), "time_ns": None, "busbw": None,
        "wrong": table["wrong"], "faults": [] if code == 0 else [f"exit code {code}"],
        "events": sum(half["events"] for half in halves), "wall_s": wall,
        "cpu_s": sum(each.ru_utime + each.ru_stime for each in used),
        "peak_mib": max(each.ru_maxrss for each in used) / 1024,
    }))
"""
"""The program of a process that makes a table; its peak memory is that of the largest of its processes."""


def measure(job: Job) -> dict[str, Any]:
    """Run a job in a process of its own; return simulated ns, events, CPU and wall time in s, peak memory in MiB."""
    order = json.dumps({name: getattr(job, name) for name in Job.__slots__ if not name.startswith("__")})
    program = ONE_RUN if job.least == job.most else A_TABLE
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program, order], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    slow = job.limit_s is not None and found["wall_s"] > job.limit_s
    return found | {"job": job.label, "checked": job.check, "limit_s": job.limit_s, "ok": not (
        slow or found["wrong"] or found["faults"]
    )}  # fmt: skip


def line(found: dict[str, Any]) -> str:
    """Return the line of the table for one job."""
    data = "not run" if not found["checked"] else "right" if not found["wrong"] else "WRONG"
    simulated = "-" if found["time_ns"] is None else f"{format_time(found['time_ns'])}, {found['busbw']:.1f} GB/s busbw"
    limit = "" if found["limit_s"] is None else f" (at most {found['limit_s']:g} s)"
    cells = (
        found["job"],
        data,
        simulated,
        f"{found['events']:,}",
        f"{found['events'] / found['cpu_s']:,.0f}",
        f"{found['cpu_s']:.1f} s",
        f"{found['wall_s']:.1f} s{limit}",
        f"{found['peak_mib']:,.0f} MiB",
    )
    return f"| {' | '.join(cells)} |\n"


def lines(names: list[str], jobs: dict[str, Job]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run jobs; yield the line of each, and what was found."""
    for name in names:
        found = measure(jobs[name])
        yield line(found), found


def updated(text: str, rows: list[str]) -> str:
    """Return a page with the lines of the jobs in `rows` written into its table; others stay."""
    before, _, rest = text.partition(BEGIN)
    inside, _, after = rest.partition(END)
    kept = {_label(row): row for row in re.findall(r"^\|.*\|\n", inside, re.MULTILINE)[2:]}
    kept |= {_label(row): row for row in rows}
    order = {job.label: number for number, job in enumerate(JOBS.values())}
    known = sorted((label for label in kept if label in order), key=order.__getitem__)
    head = f"| {' | '.join(TITLES)} |\n|{'---|' * len(TITLES)}\n"
    return f"{before}{BEGIN}\n{head}{''.join(kept[label] for label in known)}\n{END}{after}"


def _label(row: str) -> str:
    return row.split("|")[1].strip()


def main(argv: list[str] | None = None) -> int:
    """Be the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], epilog=GATES)
    add_jobs(parser, JOBS)
    parser.add_argument("--update", action="store_true", help="write the table into docs/collectives_speed.md")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="measure less, for tests")
    options = parser.parse_args(argv)
    jobs = QUICK if options.quick else JOBS
    rows, results = [], []
    for row, found in lines(options.jobs or list(jobs), jobs):
        if not options.json:
            print(row, end="", flush=True)
        rows.append(row)
        results.append(found)
        if options.update and not options.quick:
            PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    ok = all(found["ok"] for found in results)
    if options.json:
        print(json.dumps({"ok": ok, "results": results}, indent=2))
    return 0 if ok else 1


if __name__ == "__main__":
    if "--gates" in sys.argv:
        from gates.command import run_gates
        from gates.jobs import CCL

        sys.exit(run_gates(CCL, sys.argv[1:]))
    sys.exit(main())
