"""Cells of a notebook by what they define: an edited one has another file name, as ipykernel makes it of the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

#: The files that cells are compiled as: ipykernel's, and IPython's in a terminal.
_CELL: Final = re.compile(r"(?:ipykernel_\d+/)?\d+\.py|<ipython-input-\d+-\w+>")


def with_named_cells(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what `--json` printed with the cells of a notebook called by their kernels, as "cell of gemm"."""
    names = _cell_names(result)
    if not names:
        return result
    own = [{**each, "file": names.get(each["file"], each["file"])} for each in result["functions"]]
    lines = [{**each, "file": names.get(each["file"], each["file"])} for each in result.get("lines") or ()]
    return {**result, "functions": own, "lines": lines, **_with_paths(result, names), **_with_verdict(result, names)}


def _cell_names(result: Mapping[str, Any]) -> dict[str, str]:
    """Return what each cell is called, by its file: the kernel in it, else its first function; numbered where alike."""
    bench = (result["manifest"].get("bench") or {}).get("file", "")
    inside: dict[str, list[str]] = {}
    for each in result.get("functions") or ():
        if _CELL.fullmatch(each["file"]) and not bench.endswith(each["file"]):
            inside.setdefault(each["file"], []).append(each["name"])
    launched = {each["kernel"] for each in result.get("launches") or ()}
    found: dict[str, str] = {}
    seen: dict[str, int] = {}
    for file, functions in inside.items():
        name = f"cell of {next((each for each in functions if each in launched), functions[0])}"
        seen[name] = seen.get(name, 0) + 1
        found[file] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return found


def _with_paths(result: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the launches with the lines that their slowest PEs waited for under the cells' names."""
    if result.get("launches") is None:
        return {}
    launches = [
        {**each, "path": [{**call, "line": _renamed(call["line"], names)} for call in each["path"]]}
        if each.get("path") is not None else each
        for each in result["launches"]
    ]  # fmt: skip
    return {"launches": launches}


def _with_verdict(result: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the verdict with the sentence of what limits the run under the cells' names."""
    verdict = result.get("verdict") or {}
    limiter = verdict.get("limiter") or {}
    sentence = limiter.get("sentence", "")
    for file, name in names.items():
        sentence = sentence.replace(f"{file}:", f"{name}:")
    return {"verdict": {**verdict, "limiter": {**limiter, "sentence": sentence}}} if sentence else {}


def _renamed(line: str, names: Mapping[str, str]) -> str:
    file, colon, number = line.rpartition(":")
    return f"{names.get(file, file)}{colon}{number}"
