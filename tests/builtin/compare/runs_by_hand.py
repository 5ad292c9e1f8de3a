"""Figures of runs made by hand: a run that is right, and any run at all."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import strategies as st

from kernbench_builtin.compare.figures import CAUSES, COLUMNS, LINES, FigureTable, RunFigures

SOURCES = st.sampled_from(["def f():\n    pass\n", "def f():\n    load\n"])
NUMBERS = st.one_of(st.integers(0, 9), st.floats(0, 1e6, width=32))
WORDS = st.sampled_from(["a", "b", "c", "d->e", "x.y"])


def run(**changed: Any) -> RunFigures:
    """Return figures of a run of 100 ns; `changed` are other fields."""
    made = RunFigures(
        name="r",
        topology="tiny",
        device="all",
        totals={"time_ns": 100.0, "ops": 4},
        tables={"phase": table("phase", {"kernel": (60.0,), "launch": (40.0,)})},
        causes={"bench": {"bench": "gemm"}},
        texts={},
        missing={},
        op_log_sha256="0" * 64,
    )
    return attrs.evolve(made, **changed)


def table(sort: str, rows: dict[str, tuple[float, ...]], about: dict[str, str] | None = None) -> FigureTable:
    """Return a table of a sort; rows must have as many figures as that has."""
    assert all(len(row) == len(COLUMNS[sort]) for row in rows.values())
    return FigureTable(rows, about or {})


def links(**named: tuple[float, ...]) -> FigureTable:
    """Return links by name, all of one kind: bandwidth, latency, bytes, deliveries, busy and waited ns."""
    return table("link", {name.replace("_", "->"): row for name, row in named.items()})


@st.composite
def tables(draw: st.DrawFn, sort: str) -> FigureTable:
    """Draw a table of a sort; kernel lines say one of a few things, so that they often say the same."""
    if sort in LINES:
        names = draw(st.lists(st.tuples(st.sampled_from(["f.py", "g.py"]), st.integers(1, 9)), unique=True, max_size=8))
        rows = {f"{file}:{line}": tuple(draw(NUMBERS) for _ in COLUMNS[sort]) for file, line in names}
        return FigureTable(rows, {name: draw(st.sampled_from(["load", "dot", "store"])) for name in rows})
    rows = draw(st.dictionaries(WORDS, st.tuples(*[NUMBERS] * len(COLUMNS[sort])), max_size=4))
    return FigureTable(rows, {name: "wire" for name in rows if draw(st.booleans())})


@st.composite
def runs(draw: st.DrawFn) -> RunFigures:
    """Draw the figures of any run."""
    known = draw(st.sets(st.sampled_from([*COLUMNS])))
    values = st.one_of(st.none(), st.booleans(), st.integers(0, 3), WORDS)
    return run(
        totals={"time_ns": draw(NUMBERS), **draw(st.dictionaries(st.sampled_from(["ops", "hbm_bytes"]), NUMBERS))},
        tables={sort: draw(tables(sort)) for sort in COLUMNS if sort in known},
        causes={sort: draw(st.dictionaries(WORDS, values, max_size=3)) for sort in CAUSES if draw(st.booleans())},
        texts=draw(st.dictionaries(WORDS, SOURCES, max_size=2)),
        missing={sort: "it was not kept" for sort in COLUMNS if sort not in known},
        op_log_sha256=draw(st.sampled_from([None, "0" * 64, "1" * 64])),
        interrupted=draw(st.booleans()),
        verified=draw(st.sampled_from([None, True, False])),
    )
