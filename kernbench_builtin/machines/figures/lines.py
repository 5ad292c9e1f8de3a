"""The lines of kernels and the functions that they are in: what they say, and the ops that they gave."""

from __future__ import annotations

import inspect
import linecache
import textwrap
import tokenize
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from types import CodeType
from typing import TYPE_CHECKING, Final

import numpy as np

from kernbench_builtin.machines.figures.columns import ColumnTable, TextColumn
from kernbench_core.callsite import line_number

if TYPE_CHECKING:
    from kernbench_core.oplog.logger import LineUse

_MOST: Final = 100


def kernel_lines(used: Iterable[LineUse]) -> ColumnTable:
    """Return a row for each kernel line that gave ops, by file and number.

    `file` is its name without folders (with as many as tell it from another one), `text` what the line says, `ops` how
    many ops it gave, and `ns` for how long these were served by their units, together.
    """
    sums: dict[tuple[str, int], list[float]] = {}
    for use in used:
        line = sums.setdefault((use.site[0].co_filename, line_number(use.site)), [0, 0.0])
        line[0] += use.ops
        line[1] += use.ns
    names = short_names(file for file, _ in sums)
    rows = sorted((names[file], number, _said(file, number), *sums[file, number]) for file, number in sums)
    file, line_numbers, text, ops, ns = zip(*rows, strict=True) if rows else ((),) * 5
    return ColumnTable(
        len(rows),
        {
            "file": TextColumn.of(file),
            "line": np.array(line_numbers, np.int64),
            "text": TextColumn.of(text),
            "ops": np.array(ops, np.int64),
            "ns": np.array(ns, np.float64),
        },
    )


def kernel_functions(used: Iterable[LineUse]) -> ColumnTable:
    """Return a row for each function that gave ops: its `file`, `name` and first `line`, and the `source` of it.

    The source is "" where nobody knows it. It is taken apart when it is first looked at, from what the file said when
    this was called.
    """
    codes = {(code.co_filename, code.co_firstlineno, code.co_qualname): code for code in _codes(used)}
    names = short_names(file for file, _, _ in codes)
    rows = sorted((names[file], line, name, code) for (file, line, name), code in codes.items())
    sources = [_of(code) for *_, code in rows]
    return ColumnTable(
        len(rows),
        {
            "file": TextColumn.of([file for file, *_ in rows]),
            "name": TextColumn.of([name for _, _, name, _ in rows]),
            "line": np.array([line for _, line, _, _ in rows], np.int64),
            "source": lambda: TextColumn.of([source() for source in sources]),
        },
    )


def short_names(files: Iterable[str]) -> Mapping[str, str]:
    """Return for each file its name without folders, with as many of them as tell it from the others."""
    whole = {file: PurePath(file).parts or (file,) for file in dict.fromkeys(files)}
    found, length = {file: parts[-1:] for file, parts in whole.items()}, 1
    while len(set(found.values())) < len(found) and length < max(map(len, whole.values())):
        length += 1
        taken = list(found.values())
        found = {
            file: whole[file][-length:] if taken.count(short) > 1 else short for file, short in found.items()
        }
    return {file: "/".join(parts) for file, parts in found.items()}


def _codes(used: Iterable[LineUse]) -> Iterable[CodeType]:
    return {id(use.site[0]): use.site[0] for use in used}.values()


def _of(code: CodeType) -> Callable[[], str]:
    """Return what gives the source of a function, out of its file as it is now."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    return lambda: _block(lines)


def _block(lines: Sequence[str]) -> str:
    """Return the function at the head of some lines, without what it is indented by; "" for none."""
    try:
        return textwrap.dedent("".join(inspect.getblock(list(lines)))) if lines else ""
    except (SyntaxError, tokenize.TokenError):
        return ""


def _said(file: str, line: int) -> str:
    linecache.checkcache(file)
    text = " ".join(linecache.getline(file, line).split())
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"

