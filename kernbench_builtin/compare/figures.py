"""What a run is compared by: plain numbers by name, and what was run; nothing of paths, of wall times, of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

import attrs

from kernbench_builtin.compare.link_names import folded, unfolded
from kernbench_builtin.compare.result_form import NUMBER, Maybe, faults
from kernbench_core.errors import UsageError
from kernbench_core.spread import TimeSpread
from kernbench_core.wording import brief, schema_hint

SCHEMA: Final = "kernbench.figures/1"
#: The sorts of things that have figures, in the order in which they are told, with the names of their figures.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "phase": ("ns",),
    "kernel": ("launches", "ns", "flop", "hbm_bytes"),
    "component kind": ("components", "served", "ops", "busy_ns", "waits", "waited_ns"),
    "link kind": ("links", "bytes", "deliveries", "busy_ns", "waited_ns"),
    "link": ("gb_per_s", "latency_ns", "bytes", "deliveries", "busy_ns", "waited_ns"),
    "op": ("ops", "ns", "bytes"),
    "slowest PE": ("ns",),
    "line": ("ops", "ns"),
    "path": ("ns",),
    "place": ("ns",),
}
#: Those whose names are lines of kernels.
LINES: Final = ("slowest PE", "line")
#: What was run, in the order in which it is told: values by name.
CAUSES: Final = ("bench", "params", "launches", "options", "configuration", "sources", "models", "plugins", "versions")
_FORM: Final = {
    "name": str, "topology": str, "device": str, "totals": {str: NUMBER},
    "tables": {str: {"columns": [str], "rows": {str: [NUMBER]}, "about": {str: str}}}, "causes": {str: dict},
    "texts": {str: str}, "missing": {str: str}, "op_log_sha256": Maybe(str), "interrupted": bool,
    "verified": Maybe(bool),
}  # fmt: skip


@attrs.frozen
class FigureTable:
    """The figures of things of one sort, by name, in the order of `COLUMNS`.

    `about` says what each is, where that is known: the kind of a link, the text of a line.
    """

    rows: Mapping[str, tuple[float, ...]]
    about: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class RunFigures:
    """The figures of one run. Times are ns, sizes bytes, rates GB/s.

    `name` is what messages call it. `totals` are figures of all of it (`time_ns`, `kernel_time_ns`, `ops`, `flop`,
    `hbm_bytes`, `hazards`, …, as objectives of sweeps call them). `tables` are figures by sort (a key of `COLUMNS`) and
    name; a sort that nobody knows of this run is not there, and `missing` says why. `causes` are the values of what was
    run (`CAUSES`), by sort and name: the configuration by dotted key, the SHA-256 of sources, the code of models.
    `texts` are the sources of kernels and files of benches, as far as they are known, by the names that
    `causes["sources"]` has. `path` and `place` split the critical path. `spread` is that of the total time, where the
    run was shaken. `limiter` is the sentence of the verdict that says what limits the run, `failure` says how its
    script failed, if it did.
    """

    name: str
    topology: str
    device: str
    totals: Mapping[str, float]
    tables: Mapping[str, FigureTable]
    causes: Mapping[str, Mapping[str, Any]]
    texts: Mapping[str, str]
    missing: Mapping[str, str]
    op_log_sha256: str | None
    interrupted: bool = False
    verified: bool | None = None
    spread: TimeSpread | None = None
    limiter: str = attrs.field(default="", eq=False)
    failure: str = ""

    @property
    def total_ns(self) -> float:
        """Simulated time of the whole run, in ns."""
        return self.totals["time_ns"]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; equal figures give equal objects."""
        found = attrs.asdict(self, recurse=False)
        tables = {
            sort: {"columns": list(COLUMNS[sort]), "rows": {name: list(row) for name, row in table.rows.items()},
                   "about": dict(table.about)}
            for sort, table in self._folded().items()
        }  # fmt: skip
        plain = {name: dict(found[name]) for name in ("totals", "texts", "missing")}
        causes = {sort: dict(values) for sort, values in self.causes.items()}
        del found["spread"], found["limiter"]
        spread = {} if self.spread is None else {"spread": self.spread.to_json()}
        return {"schema": SCHEMA, **found, **plain, **spread, "causes": causes, "tables": tables}

    def _folded(self) -> dict[str, FigureTable]:
        """Return the tables with many links in few rows: those that are alike, under texts that stand for them."""
        found = dict(self.tables)
        if "link" in found:
            alike: dict[tuple[tuple[float, ...], str], list[str]] = {}
            for name, row in found["link"].rows.items():
                alike.setdefault((row, found["link"].about.get(name, "")), []).append(name)
            rows = sorted((text, row, about) for (row, about), names in alike.items() for text in folded(names))
            found["link"] = FigureTable(
                {text: row for text, row, _ in rows}, {text: about for text, _, about in rows if about}
            )
        return found

    @classmethod
    def from_json(cls, found: Any, where: str = "figures") -> RunFigures:
        """Return what `to_json` was called on; UsageError, which names `where`, for what `to_json` does not give."""
        schema = found.get("schema") if isinstance(found, Mapping) else None
        if schema != SCHEMA:
            hint = schema_hint(schema, SCHEMA, "make it again")
            raise UsageError(f"{where} must have schema {SCHEMA!r}, not {brief(schema)}; {hint}.")
        wrong = next(chain(faults(found, _FORM), _faults(found)), None)
        if wrong is None:
            try:
                tables = {sort: _table(sort, table) for sort, table in found["tables"].items()}
                own = {name: found.get(name) for name in _FORM if name != "tables"}
                return cls(**own, tables=tables, spread=TimeSpread.of_json(found.get("spread")))
            except ValueError as error:
                wrong = f"the links of a machine, not {error}"
        raise UsageError(f"{where} must hold {wrong}; make it again.")


def _table(sort: str, found: Mapping[str, Any]) -> FigureTable:
    """Return the table that a JSON object holds; ValueError where names stand for too many links."""
    rows, about = {name: tuple(row) for name, row in found["rows"].items()}, dict(found["about"])
    if sort != "link":
        return FigureTable(rows, about)
    names = [(text, name) for text in rows for name in unfolded([text])]
    return FigureTable(
        {name: rows[text] for text, name in names}, {name: about[text] for text, name in names if text in about}
    )


def _faults(found: Mapping[str, Any]) -> Iterator[str]:
    """Say what of figures that have the right form does not belong together."""
    if "time_ns" not in found["totals"]:
        yield "totals.time_ns, which is missing"
    for sort, table in found["tables"].items():
        if sort not in COLUMNS or table["columns"] != list(COLUMNS[sort]):
            yield f"tables of {', '.join(COLUMNS)} with their own columns, not {brief(sort)} with {table['columns']}"
            continue
        for name, row in table["rows"].items():
            if len(row) != len(COLUMNS[sort]):
                yield f"{len(COLUMNS[sort])} figures of {sort} {brief(name)}, not {len(row)}"
    for sort in found["causes"]:
        if sort not in CAUSES:
            yield f"causes of the sorts {', '.join(CAUSES)}, not {brief(sort)}"
