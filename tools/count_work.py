"""Count what a run spends outside its hops: instructions and allocations for each event, op and transaction.

    python tools/count_work.py [JOB ...] [--tree TREE] [--pure] [--quick] [--json]
    python tools/count_work.py --write BEFORE.json PYTHON.json COMPILED.json

Valgrind counts the instructions of a run and those of a smaller one of the same sort, each in a process that has
run the smaller one before: what is between them is the work alone, without imports and start-up, and is the same on
every try. A chain of hops is counted in the same way, and taken off: what is told is outside the hop.
Where the instructions are: in modules of kernbench that are compiled, in the interpreter, in what makes and frees
objects, in numpy, or in another library. `--tree` counts those of another checkout. Of the run in Python, samples of
what runs (every millisecond of a processor) say which rooms the time is in; in a compiled module there are none.
`--write` makes the tables of docs/speed.md from what `--json` gave of another checkout, of this one with `--pure`, and
of this one compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gates.arguments import add_jobs, checkout_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "speed.md"
BEGIN, END = "<!-- tools/count_work.py writes from here -->\n", "<!-- to here -->\n"
#: What makes and frees objects: names of CPython's functions.
_MAKES = re.compile(
    r"^_?Py(Object|Mem)_(Raw)?(Malloc|Calloc|Realloc|Free)|^_?PyObject_GC_|^gc_|_dealloc$"
    r"|^(malloc|calloc|realloc|free|_int_\w+)$"
)
_MADE = ("_PyObject_Malloc", "PyObject_Malloc"), ("_PyObject_Calloc", "PyObject_Calloc")
_CUBE = "M={0} N={0} K={0}"
JOBS: Mapping[str, tuple[str, str, str]] = {
    "gemm": ("gemm-naive --topology default", _CUBE.format(512), _CUBE.format(128)),
    "attention": ("attention --topology default --no-data", "model=llama3-8b tokens=256", "model=llama3-8b tokens=128"),
    "all-reduce": (
        "collective --topology default --set system.sips=8", "collective=all_reduce size=256KiB",
        "collective=all_reduce size=16KiB",
    ),
}  # fmt: skip
"""What is counted, by name: a command, its parameters, and those of the smaller one."""
QUICK = {"gemm": ("gemm-naive --topology tiny", _CUBE.format(256), _CUBE.format(128))}
_RUNS = """
import json, os, sys
from contextlib import redirect_stdout
from io import StringIO
from kernbench_core import messages
from kernbench_core.cli import main
made = [0]
if os.environ.get("COUNT_TRANSACTIONS"):
    def counted(init):
        def __init__(self, *args, **kwargs):
            made[0] += 1
            init(self, *args, **kwargs)
        return __init__
    messages.Transaction.__init__ = counted(messages.Transaction.__init__)
def said(words):
    before = made[0]
    with redirect_stdout(StringIO()) as printed:
        code = main([*words, "--json"])
    assert code == 0, (words, code)
    found = json.loads(printed.getvalue())
    return {"events": found["events"], "hops": found["hops"], "ops": found["ops"], "transactions": made[0] - before}
"""
_TWICE = _RUNS + "first, second = (said(words) for words in json.loads(sys.argv[1]))\nprint(json.dumps(second))\n"
_SAMPLED = (
    _RUNS
    + """
import signal
rooms = {}
root = sys.argv[2] + os.sep
def sample(number, frame):
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(root):
            room = "/".join(path[len(root):].split(os.sep)[:2])
            rooms[room] = rooms.get(room, 0) + 1
            return
        frame = frame.f_back
orders = json.loads(sys.argv[1])
said(orders[0])
signal.signal(signal.SIGPROF, sample)
signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
said(orders[1])
signal.setitimer(signal.ITIMER_PROF, 0)
print(json.dumps(rooms))
"""
)


_HOPS = """
import json, sys
sys.path.insert(0, sys.argv[2] + "/tools")
from bench_engine import Chain, Forward
for rounds in json.loads(sys.argv[1]):
    chain = Chain(Forward, rounds)
    before = chain.hops
    chain.seconds()
print(json.dumps({"hops": chain.hops - before}))
"""
_ROUNDS = 10, 60


@frozen
class Counted:
    """Instructions by where they are, and how many objects were made."""

    instructions: Counter[str]
    made: int

    def without(self, other: Counted) -> Counted:
        """Return what is more here than there."""
        return Counted(
            Counter({name: count - other.instructions[name] for name, count in self.instructions.items()}),
            self.made - other.made,
        )


def read(lines: Iterator[str]) -> Counted:
    """Add up a file of callgrind: the cost of each function itself by where it is, and calls of what makes objects."""
    names: dict[str, str] = {}
    where = function = called = ""
    spent: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for line in lines:
        key, equals, value = line.rstrip("\n").partition("=")
        if equals and key in ("ob", "cob", "fn", "cfn"):
            mark, _, name = value.partition(" ")
            kind = key[-2:] + mark
            told = names.setdefault(kind, name) if name else names[kind]
            if key == "ob":
                where = told
            elif key == "fn":
                function = told
            elif key == "cfn":
                called = told
        elif key == "calls":
            calls[called] += int(value.split()[0])
            next(lines)  # the cost of what is called: it stands with that
        elif line[:1] in "0123456789+-*":
            spent[_place(where, function)] += int(line.split()[1])
    made = sum(max(calls[name] for name in alike) for alike in _MADE)
    return Counted(spent, made)


def _place(where: str, function: str) -> str:
    """Return the part of the account in which a function stands."""
    function = function.partition("'")[0]
    if found := re.search(r"/(kernbench_\w+/.*)\.(cpython|abi3)", where):
        return f"compiled: {'/'.join(found[1].split('/')[:2])}"
    if _MAKES.search(function):
        return "objects made and freed"
    if re.search(r"/(libpython|python)[^/]*$", where):
        return "the interpreter"
    return "numpy" if "/numpy" in where else "other libraries"


def orders_of(job: tuple[str, str, str]) -> tuple[list[str], list[str]]:
    """Return the words of the smaller command and of the job's own."""
    command, params, smaller = job

    def words(given: str) -> list[str]:
        return ["run", *command.split(), "-q", *(word for param in given.split() for word in ("-p", param))]

    return words(smaller), words(params)


def ran(program: str, order: object, tree: Path, pure: bool, before: Sequence[str] = (), **more: str) -> dict[str, Any]:
    """Run a program in a tree; the object that it printed last."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", "KERNBENCH_PURE": str(int(pure))}
    done = subprocess.run(
        [*before, sys.executable, "-c", program, json.dumps(order), str(tree)], env={**environment, **more},
        cwd=tree, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"the run that is counted ended with {done.returncode}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def counted(program: str, order: object, tree: Path, pure: bool) -> Counted:
    """Count the instructions of a program."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "callgrind.out"
        ran(program, order, tree, pure, ["valgrind", "--tool=callgrind", f"--callgrind-out-file={file}"])
        with file.open(encoding="utf-8", errors="replace") as lines:
            return read(lines)


def hop(tree: Path, pure: bool) -> float:
    """Return the instructions of a forwarding hop."""
    few, many = _ROUNDS
    work = counted(_HOPS, [few, many], tree, pure).without(counted(_HOPS, [few, few], tree, pure))
    less, more = (int(ran(_HOPS, [rounds], tree, pure)["hops"]) for rounds in _ROUNDS)
    return work.instructions.total() / (more - less)


def account(job: tuple[str, str, str], tree: Path, pure: bool, of_hop: float) -> dict[str, Any]:
    """Return the account of a job: counts, instructions and objects made, and the shares of where they are."""
    small, whole = orders_of(job)
    work = counted(_TWICE, [small, whole], tree, pure).without(counted(_TWICE, [small, small], tree, pure))
    count = {"COUNT_TRANSACTIONS": "1"}
    less, more = (ran(_TWICE, [small, order], tree, True, **count) for order in (small, whole))
    number = {name: more[name] - less[name] for name in more}
    total = work.instructions.total()
    rooms = Counter(ran(_SAMPLED, [small, whole], tree, True)) if pure else Counter()
    return {
        **number,
        "instructions": total,
        "of_hops": round(of_hop * number["hops"]),
        "made": work.made,
        "where": {name: count / total for name, count in work.instructions.most_common() if count * 200 > total},
        "rooms": {name: count / rooms.total() for name, count in rooms.most_common(12)},
    }


def told(name: str, found: Mapping[str, Any]) -> str:
    """Return an account as lines of text."""
    total = found["instructions"] - found["of_hops"]
    lines = [
        f"{name}: {found['events']:,} events, {found['ops']:,} ops, {found['transactions']:,} transactions; "
        f"{found['of_hops'] / found['instructions']:.1%} of {found['instructions']:,} instructions are hops, outside:"
    ]
    for each in ("events", "ops", "transactions"):
        count = max(found[each], 1)
        lines.append(f"  {each[:-1]:<12} {total / count:>14,.0f} instructions {found['made'] / count:>12,.1f} objects")
    for head, shares in (("instructions", found["where"]), ("samples", found["rooms"])):
        lines += [f"  {share:>6.1%} of {head}: {where}" for where, share in shares.items()]
    return "\n".join(lines)


Account = Mapping[str, Any]


def tables(before: Account, python: Account, compiled: Account) -> str:
    """Return the tables of a page: what each event, op and transaction costs, and where that is now."""
    titles = ["job", ""]
    titles += [f"of {each}: {what}" for each in ("an event", "an op") for what in ("instructions", "objects")]
    rows = [
        _row([name, form, *_costs(found[name]), f"{found[name]['of_hops'] / found[name]['instructions']:.0%}"])
        for name in compiled
        for form, found in (("before", before), ("in Python", python), ("compiled", compiled))
    ]
    return "\n".join(
        (
            _head([*titles, "hops, of all"]) + "".join(rows),
            _shares("instructions, compiled", compiled, "where"),
            _shares("time, in Python", python, "rooms"),
        )
    )


def _costs(found: Mapping[str, Any]) -> list[str]:
    """Return instructions and objects of an event and of an op, outside hops."""
    work = found["instructions"] - found["of_hops"]
    return [
        word
        for each in ("events", "ops")
        for word in (f"{work / found[each]:,.0f}", f"{found['made'] / found[each]:,.1f}")
    ]


def _shares(what: str, accounts: Account, part: str) -> str:
    """Return a table of shares, a column for each job; the largest first, none below 2 % in every job."""
    places = Counter[str]()
    for found in accounts.values():
        places |= Counter(found[part])
    return _head([what, *accounts]) + "".join(
        _row([where.removeprefix("compiled: "), *(f"{found[part].get(where, 0.0):.0%}" for found in accounts.values())])
        for where, most in places.most_common()
        if most >= 0.02
    )


def _head(titles: Sequence[str]) -> str:
    return _row(titles) + f"|{'---|' * len(titles)}\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def written(text: str, inside: str) -> str:
    """Return a page with the tables in their place."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{inside}\n{end}{after}"


def account_in(file: str) -> Any:
    """Return the account that `--json` wrote into a file; ArgumentTypeError for another."""
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{file} must be what --json printed: {error}") from None
    if not isinstance(found, dict) or not set(found) >= set(JOBS):
        raise argparse.ArgumentTypeError(f"{file} must be what --json printed, of {', '.join(JOBS)}; count again")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Count and print; 2 where valgrind is not there."""
    parser = argparse.ArgumentParser(description="Count instructions and objects outside the hop.")
    add_jobs(parser, JOBS)
    parser.add_argument("--tree", type=checkout_of, default=ROOT, help="a checkout to count instead of this one")
    parser.add_argument("--pure", action="store_true", help="in Python")
    parser.add_argument("--quick", action="store_true", help="a small job, for tests")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    accounts = "BEFORE", "PYTHON", "COMPILED"
    parser.add_argument("--write", nargs=3, type=account_in, metavar=accounts, help="write docs/speed.md from three")
    options = parser.parse_args(argv)
    if options.write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), tables(*options.write)), encoding="utf-8")
        return 0
    if shutil.which("valgrind") is None:
        print("count_work.py needs valgrind; install it (package valgrind).", file=sys.stderr)
        return 2
    jobs = {**JOBS, **QUICK} if options.quick else JOBS
    of_hop = hop(options.tree, options.pure)
    names = options.jobs or (QUICK if options.quick else JOBS)
    found = {name: account(jobs[name], options.tree, options.pure, of_hop) for name in names}
    print(json.dumps(found, indent=2) if options.json else "\n".join(told(*each) for each in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
