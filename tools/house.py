"""What the house weighs and who knows whom: rooms with files, lines and arrows, and what a model imports.

`python tools/house.py` prints it; `--figure FILE.svg` draws the rooms of a tree, each above those that it knows. Arrows
come of import statements, those for types included; arrows that others lead along are left out of the figure.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

REPO = Path(__file__).parents[1]
PACKAGES = ("kernbench_core", "kernbench_builtin", "kernbench_ccl")
#: What is imported for a model alone, and for a model and what runs it.
CLOSURES = {"a model": "kernbench_core.component", "model and engine": "kernbench_core.engine.engine"}
#: What lies flat in core, by what it is for.
BASICS = ("callsite", "errors", "package", "params", "units", "wording")
Edges = dict[str, set[str]]


def room_of(module: str) -> str:
    """Return the room that a module is in: a folder of a package, or a group of what lies flat in it."""
    package, name = [*module.split("."), "", ""][:2]
    if name == "workers":
        return f"{package}.contract"
    if name and (REPO / package / name).is_dir():
        return f"{package}.{name}"
    if package != "kernbench_core" or name in ("", "plugin", "calibration"):
        return f"{package}.{name or 'plugin'}"
    return f"{package}.basics" if name in BASICS else f"{package}.contract"


def imported(file: Path) -> set[str]:
    """Return the modules of ours that a file imports, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith(PACKAGES) and "." in name}


def read() -> tuple[dict[str, list[Path]], Edges, int]:
    """Return the files of each room, the rooms that each knows, and how many import statements lead out of rooms."""
    rooms: dict[str, list[Path]] = {}
    edges: Edges = {}
    arrows = 0
    for package in PACKAGES:
        for file in sorted((REPO / package).rglob("*.py")):
            module = ".".join(file.relative_to(REPO).with_suffix("").parts).removesuffix(".__init__")
            room = room_of(module)
            rooms.setdefault(room, []).append(file)
            others = {room_of(name) for name in imported(file)} - {room}
            others = set() if file.parent.name == package and file.stem == "__init__" else others
            edges.setdefault(room, set()).update(others)
            arrows += len(others)
    return rooms, edges, arrows


def closure(module: str) -> tuple[int, int]:
    """Return how many files of ours a fresh process has after an import, as Python, and how many lines they have."""
    code = f"import sys, {module}; print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('kernbench')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    files = {re.sub(r"\.cpython-[^/]*\.so$", ".py", name) for name in done.stdout.split()}
    return len(files), sum(len(Path(name).read_text(encoding="utf-8").splitlines()) for name in files)


def lines_of(files: list[Path]) -> int:
    """Return how many lines files have."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def levels(edges: Edges) -> dict[str, int]:
    """Return how high each room stands: above all that it knows; ValueError for a circle."""
    found: dict[str, int] = {}

    def level(room: str, above: tuple[str, ...]) -> int:
        if room in above:
            raise ValueError(f"these rooms know each other in a circle: {' -> '.join((*above, room))}")
        if room not in found:
            found[room] = 1 + max((level(each, (*above, room)) for each in edges.get(room, ())), default=-1)
        return found[room]

    for room in edges:
        level(room, ())
    return found


def reduced(edges: Edges) -> Edges:
    """Return the arrows that no way over other rooms leads along."""

    @functools.cache
    def reach(room: str) -> frozenset[str]:
        return frozenset(edges[room]).union(*map(reach, edges[room]))

    return {
        room: {each for each in to if not any(each in reach(other) for other in to - {each})}
        for room, to in edges.items()
    }


def figure(edges: Edges) -> str:
    """Draw the rooms in rows, those of a package beside each other, as SVG text."""
    high, wide, tall, step = levels(edges), 128, 24, 50
    rows: dict[int, list[str]] = {}
    for room in sorted(high, key=lambda each: (PACKAGES.index(each.partition(".")[0]), each)):
        rows.setdefault(high[room], []).append(room)
    width = max(map(len, rows.values())) * (wide + 12) + 12
    top = max(rows)
    place = {
        room: (12 + at * (wide + 12) + (width - 12 - len(row) * (wide + 12)) / 2, 12 + (top - level) * step)
        for level, row in rows.items()
        for at, room in enumerate(row)
    }
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {(top + 1) * step + 12}" role="img" '
        'aria-label="the rooms of kernbench and which know which" font-family="sans-serif" font-size="11">'
    ]
    for room, to in sorted(reduced(edges).items()):
        x, y = place[room]
        for each in sorted(to):
            ends = place[each][0] + wide / 2, place[each][1]
            ways = f'x1="{x + wide / 2:g}" y1="{y + tall:g}" x2="{ends[0]:g}" y2="{ends[1]:g}"'
            out.append(f'<line {ways} stroke="#999"/>')
    fills = dict(zip(PACKAGES, ("#cfe2f3", "#d9ead3", "#fff2cc"), strict=True))
    for room, (x, y) in place.items():
        package, _, name = room.partition(".")
        out.append(
            f'<rect x="{x:g}" y="{y:g}" width="{wide}" height="{tall}" rx="4" fill="{fills[package]}" stroke="#555"/>'
            f'<text x="{x + wide / 2:g}" y="{y + 16:g}" text-anchor="middle">'
            f'{escape(name)} ({package.removeprefix("kernbench_")})</text>'
        )
    return "\n".join([*out, "</svg>"])


def main() -> None:
    """Print the house, or draw it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--figure", type=Path, metavar="FILE.svg", help="draw it there")
    asked = parser.parse_args()
    rooms, edges, arrows = read()
    if asked.figure:
        asked.figure.write_text(figure(edges) + "\n", encoding="utf-8")
        return
    files, lines = Counter[str](), Counter[str]()
    for room in sorted(rooms, key=lambda each: levels(edges)[each], reverse=True):
        package = room.partition(".")[0]
        files[package] += len(rooms[room])
        lines[package] += lines_of(rooms[room])
        print(f"{lines_of(rooms[room]):7,} lines {len(rooms[room]):4} files  {room}")
    for package in PACKAGES:
        print(f"{lines[package]:7,} lines {files[package]:4} files  {package}")
    print(f"{lines.total():7,} lines {files.total():4} files  in all; {arrows:,} arrows to other rooms, none upward")
    for what, module in CLOSURES.items():
        count, long = closure(module)
        print(f"{long:7,} lines {count:4} files  imported by {what}")


if __name__ == "__main__":
    main()
