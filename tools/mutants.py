"""Break kernbench on purpose, one place at a time, and see whether the tests of that place notice.

    pip install -e .[mutants]
    python tools/mutants.py [--list] [--jobs 2] [--only ID …] [--results results.json]

cosmic-ray says how Python code can be broken; `mutants.toml` beside this file says where, with which seed, and which
tests must notice. Mutants are chosen by a hash of where they are, so the same code has the same mutants, and a change
elsewhere leaves them as they are. Each is made in a copy of the tree and is `killed` when its area's tests fail in
time (CPU time: a busy machine is no failure), `endless` when they do not end in time although they do on whole code,
and `survived` otherwise. A test that fails is not asked for its smallest example. Mutants that change nothing that
anybody could see are listed in `mutants.toml` with the reason and do not count.

With --results, what is known already is not run again: interrupt it as you like.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from attrs import field, frozen

REPO = Path(__file__).resolve().parent.parent
COPIED = ("kernbench_core", "kernbench_builtin", "kernbench_ccl", "plugins_example", "tests", "tools", "docs",
          "pyproject.toml", "README.md", "constraints.txt", "Makefile")  # fmt: skip
#: How many times as long as it may compute a run of tests may take on a machine that has other things to do.
_PATIENCE = 8
#: Operators that need arguments, and those that change what is read by nobody but a type checker.
LEFT_OUT = ("VariableReplacer", "VariableInserter")


@frozen
class Area:
    """Files that are broken, and the tests that have to notice; `{stem}` in a test is the file, `{room}` its folder."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]

    def tests_of(self, file: str) -> tuple[str, ...]:
        """Return the tests for one of the files, those that there are."""
        named = (test.format(stem=Path(file).stem, room="/".join(Path(file).parts[1:-1])) for test in self.tests)
        return tuple(dict.fromkeys(test for test in named if (REPO / test).exists()))


@frozen
class Mutant:
    """One broken line of one file, which hashes have `known` by its first path: `code` is the whole file with it."""

    area: Area
    file: str
    known: str
    line: int
    where: str
    name: str
    before: str
    after: str
    code: str = field(repr=False)

    @property
    def id(self) -> str:
        """Eight letters that say which one it is, whatever changes elsewhere."""
        return digest(self.known, self.where, self.name)[:8]

    def __str__(self) -> str:
        place = f"{self.file}:{self.line} ({self.where})"
        return f"{self.id} {self.area.name:9} {place}\n  - {self.before}\n  + {self.after}"


def digest(*words: object) -> str:
    """Return what stands for some words."""
    return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()


@frozen
class Outline:
    """What the syntax tree of a file says of its lines: the functions they are in, and what is annotation only."""

    functions: tuple[tuple[int, int, str], ...]
    annotations: tuple[tuple[tuple[int, int], tuple[int, int]], ...]

    @classmethod
    def of(cls, source: str) -> Outline:
        """Read a file."""
        functions: list[tuple[int, int, str]] = []
        annotations = []

        def visit(node: ast.AST, inside: str) -> None:
            for child in ast.iter_child_nodes(node):
                name = inside
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    name = f"{inside}.{child.name}".lstrip(".")
                    functions.append((child.lineno, child.end_lineno or child.lineno, name))
                for key in ("annotation", "returns"):
                    noted = getattr(child, key, None)
                    if noted is not None:
                        annotations.append(((noted.lineno, noted.col_offset), (noted.end_lineno, noted.end_col_offset)))
                visit(child, name)

        visit(ast.parse(source), "")
        return cls(tuple(functions), tuple(annotations))

    def function(self, line: int) -> str:
        """Return the innermost function or class around a line."""
        around = [(last - first, name) for first, last, name in self.functions if first <= line <= last]
        return min(around)[1] if around else "module"

    def counts(self, start: tuple[int, int]) -> bool:
        """Tell whether something runs at a place: in a function, and not an annotation."""
        line = start[0]
        in_function = any(first < line <= last and not name.rpartition(".")[2][0].isupper() for first, last, name in
                          self.functions)  # fmt: skip
        return in_function and not any(first <= start < last for first, last in self.annotations)


def places(file: str, source: str) -> Iterator[tuple[tuple[int, int], str, int]]:
    """Yield every place where an operator can break a file: where it is, the operator, and which of its places."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast

    outline = Outline.of(source)
    nodes = list(ast_nodes(get_ast(source)))
    for name in sorted(plugins.operator_names()):
        if name.endswith(LEFT_OUT):
            continue
        operator = plugins.get_operator(name)()
        number = 0
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                if outline.counts(start):
                    yield start, name, number
                number += 1


def chosen(settings: dict[str, Any], areas: dict[str, Area]) -> list[Mutant]:
    """Choose mutants by their hashes: first the place, then how it is broken."""
    seed = settings["seed"]
    ranked = []
    for area in areas.values():
        for file in area.sources:
            known = settings.get("known_as", {}).get(file, file)
            source = (REPO / file).read_text(encoding="utf-8")
            lines, outline = source.splitlines(), Outline.of(source)
            by_place: dict[tuple[int, int], list[tuple[str, int]]] = {}
            for start, name, number in places(file, source):
                by_place.setdefault(start, []).append((name, number))
            seen: Counter[tuple[str, str]] = Counter()
            for start, ways in sorted(by_place.items()):
                site = outline.function(start[0]), lines[start[0] - 1].strip()
                seen[site] += 1
                where = f"{site[0]}, {site[1]} #{seen[site]}"
                name, number = min(ways, key=lambda way: digest(seed, known, where, way[0], way[1]))
                ranked.append((digest(seed, known, where), area, file, known, source, start[0], where, name, number))
    found = []
    for _, area, file, known, source, line, where, name, number in sorted(ranked, key=lambda entry: entry[0]):
        mutant = made(area, file, known, source, line, where, name, number)
        if mutant is not None:
            found.append(mutant)
            if len(found) == settings["count"]:
                break
    return found


def made(
    area: Area, file: str, known: str, source: str, line: int, where: str, name: str, number: int
) -> Mutant | None:
    """Break a file at one place; None where that is no Python, or the same Python."""
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    code = mutate_code(source, plugins.get_operator(name)(), number)
    if code is None:
        return None
    try:
        if ast.dump(ast.parse(code)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    before, after = _differing(source, code)
    return Mutant(area, file, known, line, where.partition(",")[0], f"{name} {where}", before, after, code)


def planted(settings: dict[str, Any], areas: dict[str, Area]) -> list[Mutant]:
    """Make the mutants that `mutants.toml` spells out; SystemExit where the code does not hold what they replace."""
    found = []
    for entry in settings.get("planted", ()):
        source = (REPO / entry["file"]).read_text(encoding="utf-8")
        if source.count(entry["old"]) != 1:
            sys.exit(f"mutants.toml: {entry['file']} must hold {entry['old']!r} once, not {source.count(entry['old'])} "
                     f"times, for the planted mutant {entry['name']!r}; write down what stands there now.")  # fmt: skip
        code = source.replace(entry["old"], entry["new"])
        before, after = _differing(source, code)
        line = source[: source.index(entry["old"])].count("\n") + 1
        file, known = entry["file"], settings.get("known_as", {}).get(entry["file"], entry["file"])
        found.append(Mutant(areas[entry["area"]], file, known, line, "planted", entry["name"], before, after, code))
    return found


def _differing(source: str, code: str) -> tuple[str, str]:
    pairs = zip(source.splitlines(), code.splitlines(), strict=False)
    return next((a.strip(), b.strip()) for a, b in pairs if a != b)


def limit_cpu(seconds: float) -> None:
    """End this process when it has computed for too long: how long that takes depends on what else runs here."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))


class Bench:
    """Copies of the tree, one for each mutant that is tried at a time."""

    def __init__(self, jobs: int, seconds: float) -> None:
        self._seconds = seconds
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copy = self._folder / str(number)
            copy.mkdir()
            for name in COPIED:
                source = REPO / name
                ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
                (shutil.copytree(source, copy / name, ignore=ignored) if source.is_dir() else shutil.copy(source, copy))
            self._free.put(copy)

    def close(self) -> None:
        """Remove the copies."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def judge(self, tests: tuple[str, ...], file: str | None = None, code: str = "") -> tuple[str, float, str]:
        """Run tests, with one file as `code`; return what became of it, the seconds, and the first failed test."""
        copy = self._free.get()
        try:
            if file is not None:
                (copy / file).write_text(code, encoding="utf-8")
            return self._run(copy, tests)
        finally:
            if file is not None:
                shutil.copy(REPO / file, copy / file)
            self._free.put(copy)

    def _run(self, copy: Path, tests: tuple[str, ...]) -> tuple[str, float, str]:
        env = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
        options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-m", "not slow"]
        command = [sys.executable, "-m", "pytest", *options, "--hypothesis-profile=mutants", *tests]
        began = time.monotonic()
        process = subprocess.Popen(
            command, cwd=copy, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True, preexec_fn=partial(limit_cpu, self._seconds),
        )  # fmt: skip
        try:
            out, _ = process.communicate(timeout=_PATIENCE * self._seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
        took = time.monotonic() - began
        if process.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
            if took < self._seconds:
                sys.exit("Somebody else ended the tests of a mutant, which says nothing of it; go on with --results.")
            return "endless", took, ""
        first = next((line for line in out.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
        return ("survived" if process.returncode == 0 else "killed"), took, first.partition(" - ")[0]


def whole_code_passes(bench: Bench, mutants: list[Mutant]) -> bool:
    """Tell whether the tests pass, in time, while nothing is broken: else they would say nothing."""
    right = True
    for tests in dict.fromkeys(mutant.area.tests_of(mutant.file) for mutant in mutants):
        outcome, took, first = bench.judge(tests)
        passed = outcome == "survived"
        verdict = "passed" if passed else first or outcome
        print(f"nothing broken: {verdict} in {took:.0f} s: {' '.join(tests)}", flush=True)
        right &= passed
    return right


def run(mutants: list[Mutant], bench: Bench, jobs: int, results: Path | None) -> dict[str, dict[str, Any]]:
    """Try every mutant that is not in the results yet, and write them down as they come."""
    known: dict[str, dict[str, Any]] = {}
    if results is not None and results.exists():
        known = json.loads(results.read_text(encoding="utf-8"))

    def one(mutant: Mutant) -> None:
        outcome, took, first = bench.judge(mutant.area.tests_of(mutant.file), mutant.file, mutant.code)
        known[mutant.id] = {"outcome": outcome, "seconds": round(took, 1), "by": first, "what": str(mutant)}
        print(f"{outcome:8} {took:5.1f} s  {mutant}\n  {first}", flush=True)
        if results is not None:
            results.write_text(json.dumps(dict(known), indent=1), encoding="utf-8")

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, [mutant for mutant in mutants if mutant.id not in known]))
    return {mutant.id: known[mutant.id] for mutant in mutants}


def main() -> int:
    """Choose, run, and say which survived; 1 when fewer than 95 % were noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--only", nargs="*", default=(), help="ids, or names of areas")
    parser.add_argument("--results", type=Path, help="a JSON file to go on from")
    given = parser.parse_args()
    settings = tomllib.loads((REPO / "tools" / "mutants.toml").read_text(encoding="utf-8"))
    areas = {name: Area(name, tuple(area["sources"]), tuple(area["tests"])) for name, area in settings["areas"].items()}
    mutants = planted(settings, areas) + chosen(settings, areas)
    reasons = {entry["mutant"]: entry["reason"] for entry in settings.get("equivalent", ())}
    if given.only:
        mutants = [mutant for mutant in mutants if {mutant.id, mutant.area.name} & set(given.only)]
    if given.list:
        for mutant in mutants:
            print(mutant, *([f"  equivalent: {reasons[mutant.id]}"] if mutant.id in reasons else []), sep="\n")
        return 0
    bench = Bench(given.jobs, settings["seconds"])
    try:
        if not whole_code_passes(bench, mutants):
            return 2
        found = run([mutant for mutant in mutants if mutant.id not in reasons], bench, given.jobs, given.results)
    finally:
        bench.close()
    alive = [entry for entry in found.values() if entry["outcome"] == "survived"]
    noticed = len(found) - len(alive)
    share = noticed / max(1, len(found))
    print(f"\n{noticed} of {len(found)} noticed ({share:.1%}), {len(reasons)} equivalent; survived:")
    for entry in alive:
        print(entry["what"])
    return 0 if noticed >= 0.95 * len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
