"""The figures of a run, out of what it answered."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final, Protocol

from kernbench_builtin.compare.figures import COLUMNS, FigureTable, RunFigures
from kernbench_builtin.compare.notebook_cells import with_named_cells
from kernbench_builtin.machines.figures.columns import ColumnTable
from kernbench_core.spread import TimeSpread
from kernbench_core.units import DIMENSIONS, NUMBER, parse_quantity

#: Keys of a manifest that are told otherwise, or that change no figure.
_NO_OPTIONS: Final = {
    "schema", "bench", "params", "topology", "configuration", "limits", "versions", "plugins", "verify_data",
    "verify_ops", "backend", "changes", "configuration_sha256", "op_log_sha256", "files",
}  # fmt: skip
_EARLIER: Final = "an earlier kernbench wrote it; run it again"
#: Values of an argument that are told of launches that differ in it.
_VALUES: Final = 4
_NO_LINKS: Final = "run it with --out, or with --links all"
_NO_PATH: Final = "run it with --explain"
_QUANTITY: Final = re.compile(rf"({NUMBER})\s*(\S+)")

#: What is read of links.
LINK_COLUMNS: Final = ("name", "kind", *COLUMNS["link"])


class AnsweredRun(Protocol):
    """What figures are taken of: a `RunResult` of `kernbench_core.runs`."""

    @property
    def links(self) -> ColumnTable:
        """All wires and channels."""

    def to_json(self) -> Mapping[str, Any]:
        """Return what `--json` prints."""


def figures_of(result: AnsweredRun, name: str = "", files: Mapping[str, str] = MappingProxyType({})) -> RunFigures:
    """Return the figures of a run that was just made; `name` is what messages call it, by default its bench.

    `files` are texts of the bench's own files, by the names that its manifest has for them.
    """
    return figures_of_json(result.to_json(), result.links, name, files)


def figures_of_json(
    result: Mapping[str, Any], links: ColumnTable | None = None, name: str = "",
    files: Mapping[str, str] = MappingProxyType({}),
) -> RunFigures:  # fmt: skip
    """Return the figures of what `--json` printed; `links` are those of the run, where it does not list all itself.

    Of `files`, texts of the bench's own files by name, those are taken that the run had.
    """
    result = with_named_cells(result)
    if links is None and result.get("links") is not None:
        listed = result["links"]
        links = ColumnTable(len(listed["name"]), {column: _column(listed[column]) for column in LINK_COLUMNS})
    tables = dict(_tables(result, links))
    causes = _causes(result)
    texts = {file: text for file, text in files.items() if causes["sources"].get(file) == _sha256(text)}
    missing = {sort: why for sort, why in _reasons(result).items() if sort not in tables}
    return RunFigures(
        name=name or result["bench"],
        topology=result["topology"],
        device=result["device"],
        totals=_totals(result),
        tables=tables,
        causes=causes,
        texts=texts | {name: source for name, source in _functions(result) if source},
        missing=missing,
        op_log_sha256=result.get("op_log_sha256"),
        interrupted=result["interrupted"],
        verified=result["verified"],
        spread=spread_of(result),
        limiter=((result.get("verdict") or {}).get("limiter") or {}).get("sentence", ""),
        failure=_failure(result),
    )


def _failure(result: Mapping[str, Any]) -> str:
    """Return what the verdict says of a run whose data nobody verified, and whose script says that it is wrong."""
    verdict = result.get("verdict") or {}
    failed = result["verified"] is None and not result["interrupted"] and not verdict.get("data_right", True)
    return str(verdict.get("data", "")) if failed else ""


def spread_of(result: Mapping[str, Any]) -> TimeSpread | None:
    """Return the spread of the total time that `--json` printed; None where the run was not shaken."""
    shaken = result.get("shake")
    return TimeSpread.of_json(shaken.get("total")) if isinstance(shaken, Mapping) else None


def _column(values: list[Any]) -> Any:
    import numpy as np

    return np.array([*values, None], object)[:-1] if values and isinstance(values[0], str) else np.array(values)


def _reasons(result: Mapping[str, Any]) -> Mapping[str, str]:
    """Return why a sort is not known, by sort."""
    path = "nothing was explained, as the run was interrupted" if result["interrupted"] else _NO_PATH
    asked = {"link": _NO_LINKS, "link kind": _NO_LINKS, "path": path, "place": path}
    return {sort: asked.get(sort, _EARLIER) for sort in COLUMNS}


def _totals(result: Mapping[str, Any]) -> dict[str, float]:
    kernels = result.get("kernels") or {}
    point = kernels.get("roofline") or {}
    return {
        "time_ns": result["total_ns"],
        "kernel_time_ns": kernels.get("time_ns", 0.0),
        "launches": len(result.get("launches") or ()),
        "ops": result["ops"],
        "flop": point.get("flops", 0.0),
        "hbm_bytes": point.get("hbm_bytes", 0),
        "hazards": len(result["hazards"]),
        "outside": len(result.get("outside") or ()),
        "wrong": result["wrong"],
    }


def _tables(result: Mapping[str, Any], links: ColumnTable | None) -> Iterator[tuple[str, FigureTable]]:
    yield "phase", FigureTable({name.replace("_", " "): (float(ns),) for name, ns in result["phases"].items()})
    if result.get("launches") is not None:
        yield "kernel", FigureTable(_summed(_launches(result["launches"])))
        if all(each.get("path") is not None for each in result["launches"]):
            texts = {f"{each['file']}:{each['line']}": each["text"] for each in result.get("lines") or ()}
            lines = _summed(_slowest_lines(result["launches"]))
            yield "slowest PE", FigureTable(lines, {name: texts[name] for name in lines if texts.get(name)})
    for sort, key, name, about in _LISTED:
        if result.get(key) is not None:
            yield sort, _listed(sort, result[key], name, about)
    if links is not None:
        yield "link kind", FigureTable(_summed(_of_links("link kind", links, "kind")))
        kinds = dict(zip(links["name"].tolist(), links["kind"].tolist(), strict=True))
        yield "link", FigureTable(dict(_of_links("link", links, "name")), kinds)
    if result.get("explain") is not None:
        yield "path", FigureTable(_summed(_path(result["explain"]["where"])))
        yield "place", FigureTable(_summed(_places(result["explain"]["launches"])))


#: Tables that a result lists as objects: sort, key, the name of each, and what it is.
_LISTED: Final[tuple[tuple[str, str, Callable[[Any], str], Callable[[Any], str]], ...]] = (
    ("component kind", "components", lambda each: each["kind"], lambda _: ""),
    ("op", "op_kinds", lambda each: f"{each['kind']} {each['name']}", lambda _: ""),
    ("line", "lines", lambda each: f"{each['file']}:{each['line']}", lambda each: each["text"]),
)


def _listed(
    sort: str, entries: Iterable[Mapping[str, Any]], name: Callable[[Any], str], about: Callable[[Any], str]
) -> FigureTable:
    rows = {name(each): tuple(each[column] for column in COLUMNS[sort]) for each in entries}
    return FigureTable(rows, {name(each): about(each) for each in entries if about(each)})


def _launches(launches: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[float, ...]]]:
    for each in launches:
        point = each.get("roofline") or {}
        took = each["ended_ns"] - each["started_ns"]
        yield each["kernel"], (1, took, point.get("flops", 0.0), point.get("hbm_bytes", 0))


def _slowest_lines(launches: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield what the PE that ended last waited for, line by line."""
    for call in (call for each in launches for call in each["path"]):
        yield call["line"] or "the PE's CPU", (call["ns"],)


def _of_links(sort: str, links: ColumnTable, name: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield the figures of each link; as one of a kind it counts itself."""
    columns = [[1] * len(links) if column == "links" else links[column].tolist() for column in COLUMNS[sort]]
    return zip(links[name].tolist(), zip(*columns, strict=True), strict=True)


def _path(where: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[float, ...]]]:
    for each in where:
        yield f"{each['phase'].replace('_', ' ')} · {each['sort']} · {each['kind']}", (each["ns"],)


def _places(launches: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[float, ...]]]:
    for launch in launches:
        for each in launch["path"]:
            yield f"{launch['kernel']} · {each['sort']} · {each['place']}", (each["to_ns"] - each["from_ns"],)


def _summed(rows: Iterable[tuple[str, tuple[float, ...]]]) -> dict[str, tuple[float, ...]]:
    """Add up the figures that have one name."""
    found: dict[str, tuple[float, ...]] = {}
    for name, row in rows:
        before = found.get(name)
        found[name] = row if before is None else tuple(map(sum, zip(before, row, strict=True)))
    return found


def _functions(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the functions of kernels by name, with their sources; those of one name are told apart by numbers."""
    seen: dict[str, int] = {}
    for each in result.get("functions") or ():
        name = f"{each['file']}:{each['name']}"
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name} ({seen[name]})"), each["source"]


def _causes(result: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    manifest = result["manifest"]
    plugins = manifest.get("plugins") or ()
    launches = (manifest.get("bench") or {}).get("launches")
    options = {name: value for name, value in manifest.items() if name not in _NO_OPTIONS}
    return {
        "bench": {"bench": result["bench"]},
        "params": {name: _plain(value) for name, value in result["params"].items()},
        **({"launches": dict(_asked(launches))} if launches else {}),
        "options": dict(_flat(options)),
        "configuration": {key: _spelled(each) for key, each in _flat(manifest.get("configuration") or {})},
        "sources": dict(_sources(result, manifest.get("bench") or {})),
        "models": dict(result.get("models") or {}),
        "plugins": {each["plugin"]: f"{each['distribution']} {each['version']}" for each in plugins},
        "versions": dict(manifest.get("versions") or {}),
    }


def _asked(launches: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield how often a script launched each kernel, and with what; several values are put together."""
    kernels: dict[str, dict[str, list[Any]]] = {}
    for each in launches:
        found = kernels.setdefault(each["kernel"], {"launches": []})
        found["launches"].append(each["count"])
        given = {"grid": "x".join(map(str, each["grid"])), **each["constexprs"], **each["arguments"], **each["hints"]}
        for name, value in given.items():
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
    for kernel, found in kernels.items():
        found["launches"] = [sum(found["launches"])]
        yield from ((f"{kernel} {name}", _together(values)) for name, values in found.items())


def _together(values: Sequence[Any]) -> Any:
    """Return one value, or a text of several."""
    if len(values) == 1:
        return values[0]
    told = ", ".join(map(str, values[:_VALUES]))
    return told if len(values) <= _VALUES else f"{told}, … ({len(values)} values, {_sha256(repr(values))[:6]})"


def _plain(value: Any) -> Any:
    """Return a parameter without the name of its file: of an array the digest counts."""
    if isinstance(value, Mapping):
        shape = value.get("shape")
        return f"{'×'.join(map(str, shape if isinstance(shape, list) else ()))} array {str(value.get('sha256'))[:12]}"
    return value


def _sources(result: Mapping[str, Any], bench: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the SHA-256 of the files of the bench, of what it read or declares, of functions of kernels, by name."""
    if "file" in bench:
        yield PurePath(bench["file"]).name, str(bench.get("sha256"))
    yield from (bench.get("modules") or {}).items()
    for name, each in (bench.get("inputs") or {}).items():
        yield f"input {name}", str(each["sha256"])
    yield from _declared(bench.get("depends") or {})
    for name, source in _functions(result):
        yield name, _sha256(source) if source else ""


def _declared(depends: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the digests of the places that a bench declares, by their names without folders."""
    found: dict[str, list[str]] = {}
    for place, digest in depends.items():
        found.setdefault(PurePath(place).name, []).append(digest or "absent")
    yield from ((f"declared {name}", " ".join(digests)) for name, digests in found.items())


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _spelled(value: Any) -> Any:
    """Return a quantity in the usual unit of its dimension, however it is written; anything else as it is."""
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    kind = next((kind for kind in DIMENSIONS.values() if found and found[2] in kind.units), None)
    return value if kind is None else kind.text(parse_quantity(value, kind.name, minimum=-math.inf))


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a configuration by dotted key; of lists by number."""
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple) and value:
        for number, each in enumerate(value):
            yield from _flat(each, f"{name}[{number}]")
    elif name:
        yield name, value
