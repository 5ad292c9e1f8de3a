"""Try files written in Triton: run each as it is, in a process of its own under limits, and count what came of it.

    python tools/try_triton.py FOLDER                                 # every .py file that has a kernel, on `tiny`
    python tools/try_triton.py FOLDER --timeout 120 --memory 8GiB --topology default -j 2 --json > outcomes.json
    python tools/try_triton.py tests --pytest "-x -k small"           # files of tests, by pytest
    python tools/try_triton.py --triton-suite FOLDER --sample 1000    # Triton's own tests, of a copy in a folder

torch, and what else a file imports, must be installed where this runs. Two tables come out: files by what came of them,
and kernels (jit functions that were launched) by the same, each by the first folder below FOLDER; then every sentence
that stopped a kernel, most frequent first. A kernel counts as run where all its launches outside of autotune ran. The
exit code is 1 where a file crashed Python or a kernel ended in an error that kernbench has no sentence for.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import asdict, field, frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_builtin.triton.script import Script
from kernbench_builtin.triton.session import TritonRun
from kernbench_core.errors import KernbenchError
from kernbench_core.units import parse_quantity
from tools import triton_suite

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures
    from kernbench_builtin.triton.simulation import JitLaunch

CHECKED, RAN, NOTHING = "ran, own checks passed", "ran", "launched no kernel"
WRONG, MISSING, OWN = "own check failed", "module missing", "own error"
ASSEMBLY, TIMEOUT, CRASH = "inline assembly", "timeout", "crash"
REASONS = {
    "UnsupportedError": "name refused", "OutOfBoundsError": "access outside a tensor", "TcmOverflowError": "scratchpad",
    "UninitializedReadError": "read of what nobody wrote", "PendingDataError": "value not there yet",
    "LimitError": "limit", "ShapeError": "shapes", "UsageError": "launch refused", "DeadlockError": "deadlock",
}  # fmt: skip
_WALL = 20
"""What a file may take of the clock, of what it may take of the processor."""
OUTCOMES = (CHECKED, RAN, NOTHING, WRONG, MISSING, OWN, ASSEMBLY, *REASONS.values(), "kernel raised", TIMEOUT, CRASH)


@frozen
class KernelOutcome:
    """What came of the launches of a kernel: `RAN`, or the reason of the last that did not, with its sentence."""

    name: str
    outcome: str
    sentence: str = ""


@frozen
class FileOutcome:
    """What came of a file, in `seconds` of wall time."""

    folder: str
    file: str
    outcome: str
    sentence: str
    seconds: float
    kernels: Sequence[KernelOutcome] = field(factory=list)


def reason_of(kind: str, sentence: str) -> str:
    """Return the outcome that an error's class and sentence stand for."""
    if "inline_asm" in sentence or "inline assembly" in sentence:
        return ASSEMBLY
    return REASONS.get(kind, "kernel raised")


class Watched(TritonRun):
    """A session that writes down, line by line, which kernels begin, which run, and what stops the others."""

    def __init__(self, topology: str, options: Mapping[str, Any], notes: Path) -> None:
        super().__init__(topology, options)
        self._notes = notes.open("w", encoding="utf-8", buffering=1)
        self._told: set[object] = set()

    def write(self, **line: object) -> None:
        """Write a line, once."""
        text = json.dumps(line)
        if text not in self._told:
            self._told.add(text)
            self._notes.write(f"{text}\n")

    def launch(self, asked: JitLaunch) -> LaunchFigures:
        """Run a kernel, and write down what came of it."""
        code = getattr(asked.kernel, "__wrapped__", asked.kernel).__code__
        named = {"kernel": asked.name, "of": f"{code.co_filename}:{code.co_firstlineno}", "trial": self._trying}
        self.write(**named, state="begun")
        try:
            figures = super().launch(asked)
        except KernbenchError as error:
            self.write(**named, state="stopped", kind=type(error).__name__, sentence=str(error))
            raise
        self.write(**named, state="ran")
        return figures


def run_alone(file: str, notes: Path, options: argparse.Namespace) -> int:
    """Run one file in this process, and write down what its kernels do."""
    memory = int(parse_quantity(options.memory, "size"))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    seconds = int(options.timeout)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    session = Watched(options.topology, {"oob": options.oob}, notes)
    script = Script(file) if options.pytest is None else Script("pytest", _pytest(file, options.pytest), is_module=True)
    try:
        return script.run(session)
    except KernbenchError as error:
        session.write(state="end", kind=type(error).__name__, sentence=str(error))
        return 1


def _pytest(file: str, arguments: str) -> list[str]:
    return ["-q", "-p", "no:cacheprovider", file, *shlex.split(arguments)]


def tried(file: Path, root: Path, options: argparse.Namespace) -> FileOutcome:
    """Run a file in a process of its own, and return what came of it."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        call = [
            sys.executable, __file__, str(file.resolve()), "--alone", str(notes), "--memory", options.memory,
            "--topology", options.topology, "--timeout", str(options.timeout), "--oob", options.oob,
            *([] if options.pytest is None else [f"--pytest={options.pytest}"]),
        ]  # fmt: skip
        try:
            done = subprocess.run(call, cwd=folder, capture_output=True, timeout=_WALL * options.timeout, check=False)
            code, told = done.returncode, (done.stdout + done.stderr).decode(errors="replace")
        except subprocess.TimeoutExpired:
            code, told = None, ""
        lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    found = [json.loads(line) for line in lines]
    kernels = kernels_of(found)
    outcome, sentence = file_outcome(file, code, told, found, kernels)
    below = file.relative_to(root).parts
    return FileOutcome(
        below[0] if len(below) > 1 else root.name, str(file.relative_to(root)), outcome, sentence,
        round(time.monotonic() - started, 1), kernels,
    )  # fmt: skip


def kernels_of(lines: Iterable[Mapping[str, Any]]) -> list[KernelOutcome]:
    """Return what came of each kernel of which lines tell."""
    found: dict[tuple[str, str], KernelOutcome] = {}
    launched: dict[tuple[str, str], bool] = {}  # whether all launches ran that were no trials
    for line in lines:
        if "kernel" not in line:
            continue
        key, name = (line["kernel"], line["of"]), line["kernel"]
        found.setdefault(key, KernelOutcome(name, TIMEOUT))
        if line["state"] == "stopped" and (not line["trial"] or key not in launched):
            found[key] = KernelOutcome(name, reason_of(line["kind"], line["sentence"]), line["sentence"])
        elif line["state"] == "ran" and not line["trial"] and launched.get(key, True):
            found[key] = KernelOutcome(name, RAN)
        if line["state"] != "begun" and not line["trial"]:
            launched[key] = launched.get(key, True) and line["state"] == "ran"
    return list(found.values())


def file_outcome(
    file: Path, code: int | None, told: str, lines: Sequence[Mapping[str, Any]], kernels: Sequence[KernelOutcome]
) -> tuple[str, str]:
    """Return what came of a file by its exit code (None: out of time), and what was said of it."""
    if code is None or code in (-signal.SIGXCPU, -signal.SIGKILL):
        return TIMEOUT, ""
    ends = [line for line in lines if line["state"] == "end"]
    if ends:
        return reason_of(ends[-1]["kind"], ends[-1]["sentence"]), ends[-1]["sentence"]
    if code < 0:
        return CRASH, f"signal {-code}"
    if code == 0:
        return (CHECKED if _checks(file) else RAN) if kernels else NOTHING, ""
    stopped = [each for each in kernels if each.outcome != RAN]
    if stopped:
        return stopped[0].outcome, stopped[0].sentence
    last = next(
        (line for line in reversed(told.strip().splitlines()) if re.match(r"^(E +)?[\w.]*(Error|Exit)", line)), ""
    )
    for mark, outcome in (("ModuleNotFoundError", MISSING), ("ImportError", MISSING), ("AssertionError", WRONG)):
        if mark in last:
            return outcome, last
    return OWN, last or told.strip()[-200:]


def _checks(file: Path) -> bool:
    """Tell whether a file checks what it computes: whether it asserts, or compares by `allclose` and its like."""
    tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
    names = {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(tree)}
    return any(isinstance(each, ast.Assert) for each in ast.walk(tree)) or bool(
        names & {"allclose", "assert_close", "assert_allclose", "equal"}
    )


def files_below(root: Path, tests: bool) -> Iterator[Path]:
    """Give the files of a folder, or the file itself: those of tests, or those that have a kernel."""
    for file in [root] if root.is_file() else sorted(root.rglob("*.py")):
        if file.name.startswith("test_") if tests else re.search(r"\btriton\b.*\bjit\b", _text(file)) is not None:
            yield file


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def tables(outcomes: Sequence[FileOutcome]) -> str:
    """Lay out what came of files, of kernels, and what was said of them."""
    files = Counter((each.folder, each.outcome) for each in outcomes)
    kernels = Counter((each.folder, kernel.outcome) for each in outcomes for kernel in each.kernels)
    said = Counter(_alike(kernel.sentence) for each in outcomes for kernel in each.kernels if kernel.sentence)
    said.update(
        _alike(each.sentence) for each in outcomes if each.sentence and not any(k.sentence for k in each.kernels)
    )
    parts = [_table("files", files), _table("kernels", kernels)]
    return "\n\n".join([*parts, "\n".join(f"{count:4}  {text}" for text, count in said.most_common())])


def _table(head: str, counts: Mapping[tuple[str, str], int]) -> str:
    folders = sorted({folder for folder, _ in counts})
    columns = [outcome for outcome in OUTCOMES if any(counts.get((folder, outcome)) for folder in folders)]
    rows = [[head, *columns, "all"]]
    for folder in folders:
        numbers = [counts.get((folder, outcome), 0) for outcome in columns]
        rows.append([folder, *map(str, [*numbers, sum(numbers)])])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _alike(sentence: str) -> str:
    """Return a sentence without what is the kernel's own: quoted names, places, numbers."""
    first = sentence.strip().splitlines()[0] if sentence.strip() else ""
    return re.sub(r"-?\d[\d.,]*", "N", re.sub(r"[\w./-]+\.py:\d+", "FILE", re.sub(r"'[^']*'", "'…'", first)))[:220]


def _add_suite(parser: argparse.ArgumentParser) -> None:
    """Add the options of Triton's own tests."""
    suite = parser.add_argument_group("Triton's own tests")
    suite.add_argument(
        "--triton-suite", type=Path, metavar="FOLDER", help="a checkout, or its folder of language tests"
    )
    suite.add_argument("--sample", type=int, metavar="N", help="random cases; without it all")
    suite.add_argument("--seed", type=int, default=0, metavar="S", help="which random cases")
    suite.add_argument("--cases", type=Path, metavar="FILE", help="choose among the cases of a list, one a line")
    suite.add_argument("--only", default="", metavar="TEXT", help="cases whose name has this; the page stays as it is")
    suite.add_argument("--results", type=Path, metavar="FILE", help="write a line of JSON for each case")
    suite.add_argument("--page", type=Path, default=triton_suite.PAGE, help="the page that gets the table")


def main(given: Sequence[str] | None = None) -> int:
    """Try the files of a folder and print what came of them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="a folder, or one file")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="processor time of a file or case, in s"
    )
    parser.add_argument("--memory", default="12GiB", help="address space of a file")
    parser.add_argument("--topology", default="tiny")
    parser.add_argument(
        "--oob", choices=("error", "poison"), default="error", help="what an access outside a tensor is"
    )
    parser.add_argument("--pytest", metavar="ARGS", help="run files of tests by pytest, with these arguments")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="files at a time")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    _add_suite(parser)
    options = parser.parse_args(given)
    if options.triton_suite is not None:
        return triton_suite.main(options)
    if options.folder is None:
        parser.error("name a folder, or one file")
    if options.alone is not None:
        return run_alone(str(options.folder), options.alone, options)
    root = options.folder.parent if options.folder.is_file() else options.folder
    files = list(files_below(options.folder, options.pytest is not None))
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for each in pool.map(lambda file: tried(file, root, options), files):
            outcomes.append(each)
            print(
                f"{each.file}: {each.outcome} ({each.seconds:.0f} s) {each.sentence[:160]}", file=sys.stderr, flush=True
            )
    print(json.dumps([asdict(each) for each in outcomes]) if options.json else tables(outcomes))
    kinds = {kernel.outcome for each in outcomes for kernel in each.kernels} | {each.outcome for each in outcomes}
    return 1 if CRASH in kinds else 0


if __name__ == "__main__":
    sys.exit(main())
