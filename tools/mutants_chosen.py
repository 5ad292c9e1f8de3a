"""Which mutants tools/mutants.py makes: lines by their hashes, and cosmic-ray's ways to break each."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

PACKAGES = ("kernbench_core", "kernbench_builtin", "kernbench_ccl")
#: Operators that need arguments.
_LEFT_OUT = ("VariableReplacer", "VariableInserter")


@frozen
class Mutant:
    """One broken line of one file: `code` is the whole file with it."""

    file: str
    line: int
    function: str
    name: str
    before: str
    after: str
    code: str = field(repr=False)

    @property
    def id(self) -> str:
        """Eight letters that say which one it is, whatever changes elsewhere."""
        return digest(self.file, self.name)[:8]

    def __str__(self) -> str:
        return f"{self.id} {self.file}:{self.line} ({self.function})\n  - {self.before}\n  + {self.after}"

    @classmethod
    def of(cls, file: str, function: str, name: str, source: str, code: str) -> Mutant:
        """Compare a file with its broken text."""
        pairs = enumerate(zip(source.splitlines(), code.splitlines(), strict=False), 1)
        line, before, after = next((line, a.strip(), b.strip()) for line, (a, b) in pairs if a != b)
        return cls(file, line, function, name, before, after, code)


def digest(*words: object) -> str:
    """Return what stands for some words."""
    return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()


@frozen
class Outline:
    """What the syntax tree of a file says of its lines: the functions they are in, and what is annotation only."""

    #: First and last line, name, and whether it is a function and no class.
    scopes: tuple[tuple[int, int, str, bool], ...]
    annotations: tuple[tuple[tuple[int, int], tuple[int, int]], ...]

    @classmethod
    def of(cls, source: str) -> Outline:
        """Read a file."""
        scopes: list[tuple[int, int, str, bool]] = []
        annotations = []

        def visit(node: ast.AST, inside: str) -> None:
            for child in ast.iter_child_nodes(node):
                name = inside
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    name = f"{inside}.{child.name}".lstrip(".")
                    scopes.append((child.lineno, child.end_lineno or 0, name, isinstance(child, ast.FunctionDef)))
                for key in ("annotation", "returns"):
                    noted = getattr(child, key, None)
                    if noted is not None:
                        annotations.append(((noted.lineno, noted.col_offset), (noted.end_lineno, noted.end_col_offset)))
                visit(child, name)

        visit(ast.parse(source), "")
        return cls(tuple(scopes), tuple(annotations))

    def function(self, line: int) -> str:
        """Return the function that a line is in the body of, the innermost; empty where it is in none."""
        around = [(last - first, name, is_function) for first, last, name, is_function in self.scopes
                  if first < line <= last]  # fmt: skip
        _, name, is_function = min(around, default=(0, "", False))
        return name if is_function else ""

    def runs(self, start: tuple[int, int]) -> bool:
        """Tell whether something runs at a place: in a function, and not an annotation."""
        return bool(self.function(start[0])) and not any(first <= start < last for first, last in self.annotations)


@frozen
class Way:
    """A way to break a line: the column, the operator, and which of the operator's places in the file it is."""

    column: int
    operator: str
    number: int


def ways_to_break(source: str) -> dict[int, list[Way]]:
    """Return by line the ways in which cosmic-ray can break a file where something runs."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast

    outline = Outline.of(source)
    nodes = list(ast_nodes(get_ast(source)))
    found: dict[int, list[Way]] = {}
    for name in sorted(plugins.operator_names()):
        if name.endswith(_LEFT_OUT):
            continue
        operator = plugins.get_operator(name)()
        starts = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for number, start in enumerate(starts):
            if outline.runs(start):
                found.setdefault(start[0], []).append(Way(start[1], name, number))
    return found


def broken(source: str, way: Way) -> str | None:
    """Break a file; None where that is no Python, or the same Python."""
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    try:
        code: str | None = mutate_code(source, plugins.get_operator(way.operator)(), way.number)
        return None if code is None or ast.dump(ast.parse(code)) == ast.dump(ast.parse(source)) else code
    except (SyntaxError, AttributeError):  # cosmic-ray cannot replace an exception whose name has a dot
        return None


def ranked(tree: Path, seed: int) -> list[tuple[str, str, int, str, str]]:
    """Return each line of each function as hashes order them: the hash, file, number, function, and its name.

    The name is its function, its text, and which of the function's lines of this text it is: it stays when other code
    changes. Files of `templates` are left out: they are copied and never run here.
    """
    found = []
    for file in git(tree, "ls-files", "--", *PACKAGES):
        if not file.endswith(".py") or "templates" in Path(file).parts or not (tree / file).exists():
            continue
        source = (tree / file).read_text(encoding="utf-8")
        outline = Outline.of(source)
        seen: Counter[tuple[str, str]] = Counter()
        for number, text in enumerate(map(str.strip, source.splitlines()), 1):
            function = outline.function(number)
            if text and function:
                seen[function, text] += 1
                known = f"{function}, {text} #{seen[function, text]}"
                found.append((digest(seed, file, known), file, number, function, known))
    return sorted(found)


def chosen(
    tree: Path,
    seed: int,
    count: int,
    ways: Callable[[str], Mapping[int, Sequence[Way]]] = ways_to_break,
    break_: Callable[[str, Way], str | None] = broken,
) -> Iterator[Mutant]:
    """Choose mutants by their hashes: first the line, then the place in it, then how it is broken there."""
    of_files: dict[str, tuple[str, Mapping[int, Sequence[Way]]]] = {}
    for _, file, number, function, known in ranked(tree, seed):
        if file not in of_files:
            source = (tree / file).read_text(encoding="utf-8")
            of_files[file] = source, ways(source)
        source, of_lines = of_files[file]
        columns = sorted({way.column for way in of_lines.get(number, ())})
        named = []
        for way in of_lines.get(number, ()):
            place = f"{known}, place {columns.index(way.column)}"
            named.append((digest(seed, file, place), digest(seed, file, place, way.operator), way, place))
        for _, _, way, place in sorted(named, key=lambda one: one[:2]):
            code = break_(source, way)
            if code is not None:
                yield Mutant.of(file, function, f"{place}, {way.operator}", source, code)
                count -= 1
                break
        if not count:
            return


def planted(tree: Path, entries: Iterable[Mapping[str, str]]) -> Iterator[Mutant]:
    """Make the mutants that `mutants.toml` spells out; SystemExit where the code does not hold what they replace."""
    for entry in entries:
        source = (tree / entry["file"]).read_text(encoding="utf-8")
        if source.count(entry["old"]) != 1:
            sys.exit(f"mutants.toml: {entry['file']} must hold {entry['old']!r} once, not {source.count(entry['old'])} "
                     f"times, for the planted mutant {entry['name']!r}; write down what stands there now.")  # fmt: skip
        code = source.replace(entry["old"], entry["new"])
        yield Mutant.of(entry["file"], "planted", entry["name"], source, code)


def git(tree: Path, *words: str) -> list[str]:
    """Return the lines that git prints of a tree."""
    command = ["git", "-c", "core.quotePath=false", *words]
    return subprocess.run(command, cwd=tree, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
