"""Rows of figures, kept by column: numpy arrays of one length under names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_core.errors import UsageError
from kernbench_core.runs.listing import html_more, html_table
from kernbench_core.wording import brief

_Array: TypeAlias = npt.NDArray[Any]
#: Rows and characters of a cell that a repr shows, and rows of a table in a notebook.
_SHOWN, _CELL, _TABLED = 4, 22, 12


@attrs.frozen(eq=False)
class TextColumn:
    """A column of texts that repeat: for each row the number of its text."""

    numbers: npt.NDArray[np.integer[Any]]
    texts: Sequence[str]

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextColumn:
        """Return the column of these texts, each kept once."""
        known: dict[str, int] = {}
        numbers = [known.setdefault(text, len(known)) for text in texts]
        return cls(np.array(numbers, np.int32), tuple(known))

    def array(self) -> _Array:
        """Return the texts, row by row."""
        table = np.empty(len(self.texts), object)
        table[:] = self.texts
        found: _Array = table[self.numbers]
        return found


ColumnSource: TypeAlias = _Array | TextColumn | Callable[[], _Array | TextColumn]


class ColumnTable:
    """Keep `rows` rows by column. A column may be given as a function, which is called when it is first looked at.

    `columns["name"]` is a numpy array that is only read (texts are of dtype object), `columns[3]` a row as a dict,
    `columns[2:5]` and `columns[mask]` are columns of those rows. `len` counts rows, iteration gives them, `in` and
    `keys()` are about names, so that `dict(columns)` has the arrays by name. Equal where all names and values are.

    >>> links = kb.run("vector-add", "tiny", {"n": 64}).links
    >>> int(links["bytes"].max()), links[links["bytes"] > 900]["name"][0]
    (1536, 'sip0.cube0.r0c0->sip0.cube0.ucie_n')
    """

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __init__(self, rows: int, columns: Mapping[str, ColumnSource]) -> None:
        self._rows = rows
        self._columns = dict(columns)

    def keys(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return self._rows

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            found = self.column(key)
            seen = found.array() if isinstance(found, TextColumn) else found.view()
            seen.flags.writeable = False  # a result is a value: what is written there would change it for all
            return seen
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            if not -self._rows <= key < self._rows:
                raise IndexError(f"row must be one of {self._rows:,}, counted from 0, or from the end as -1, not {key}")
            at = range(self._rows)[key]
            return {name: _plain(self[name][at]) for name in self._columns}
        if not _names_rows(key):
            raise KeyError(
                f"columns must be asked for by name ({', '.join(self._columns)}), and rows by number, by a slice, a "
                f"mask or several numbers, not by {brief(key)}"
            )
        kept = np.arange(self._rows)[key]
        return ColumnTable(len(kept), {name: self[name][kept] for name in self._columns})

    def __iter__(self) -> Iterator[dict[str, Any]]:
        arrays = {name: self[name].tolist() for name in self._columns}
        return (dict(zip(arrays, row, strict=True)) for row in zip(*arrays.values(), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ColumnTable):
            return NotImplemented
        return self.keys() == other.keys() and all(np.array_equal(self[name], other[name]) for name in self.keys())

    def to_json(self) -> dict[str, list[Any]]:
        """Return plain lists by name."""
        return {name: self[name].tolist() for name in self._columns}

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame; UsageError where pandas is not installed."""
        pandas = _installed("pandas")
        return pandas.DataFrame({name: self[name] for name in self._columns})

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table; UsageError where pyarrow is not installed."""
        arrow = _installed("pyarrow")
        return arrow.table({name: self[name] for name in self._columns})

    def column(self, name: str) -> _Array | TextColumn:
        """Return a column as it is kept; KeyError for a name that there is not."""
        if name not in self._columns:
            known = ", ".join(self._columns)
            raise KeyError(f"there must be a column of this name, and {brief(name)} is none of {known}")
        found = self._columns[name]
        if callable(found):
            found = self._columns[name] = found()
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"_rows": self._rows, "_columns": {name: self.column(name) for name in self._columns}}

    def _first(self, rows: int) -> list[list[str]]:
        return [list(map(_cell, (self[name][at] for name in self._columns))) for at in range(min(rows, self._rows))]

    def __repr__(self) -> str:
        lines = [list(self._columns), *self._first(_SHOWN)]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        told = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        more = [f"… {self._rows - _SHOWN:,} more"] if self._rows > _SHOWN else []
        return "\n".join([f"<ColumnTable of {self._rows:,} rows>", *told, *more])

    def _repr_html_(self) -> str:
        return html_table(self.keys(), self._first(_TABLED)) + html_more(self._rows - _TABLED)


def _installed(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise UsageError(
            f"{module} must be installed for that; install it (pip install {module}), or use the numpy arrays that "
            "dict(columns) gives."
        ) from None


def _names_rows(key: Any) -> bool:
    """Say whether a key may name several rows: a slice, or one row of numbers or truths."""
    return isinstance(key, slice) or (not isinstance(key, tuple) and np.ndim(key) == 1)


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _cell(cell: Any) -> str:
    cell = _plain(cell)
    text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"
