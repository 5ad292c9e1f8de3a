"""What a notebook shows of several things: a few of them, how many there are, and a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from kernbench_core.process.notebook import Pictured
from kernbench_core.wording import brief

T = TypeVar("T")
#: Things that a repr shows, characters of each, and rows of a table.
_SHOWN, _LETTERS, _TABLED = 5, 300, 20


class Listing(tuple[T, ...], Pictured):
    """A tuple whose repr is short, and which is a picture in a notebook, or a table where it has none."""

    __slots__ = ()

    def __repr__(self) -> str:
        told = [_short(each) for each in self[:_SHOWN]]
        more = [f"… {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
        return f"({', '.join([*told, *more])}{',' if len(self) == 1 else ''})"

    def _repr_html_(self) -> str | None:
        drawn = super()._repr_html_()
        if drawn is not None or not self:
            return drawn
        return html_table((), ((_short(each),) for each in self[:_TABLED])) + html_more(len(self) - _TABLED)


def listed(found: Iterable[Any]) -> Listing[Any]:
    """Return what was found, to be shown."""
    return Listing(found)


class Document(dict[str, Any]):
    """A dict of a JSON document, whose repr is short."""

    def __repr__(self) -> str:
        return f"<{self.get('schema', 'a document')}: {', '.join(map(str, self))[:_LETTERS]}>"


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; every text is escaped."""
    title = f"<thead>{_row('th', head)}</thead>" if head else ""
    return f"<table>{title}<tbody>{''.join(_row('td', row) for row in rows)}</tbody></table>"


def html_more(count: int) -> str:
    """Say how many rows are not shown; "" where that is none."""
    return f"<p>{count:,} more</p>" if count > 0 else ""


def _row(tag: str, cells: Iterable[str]) -> str:
    from html import escape  # when it is used: few runs show a table, all would load its names of characters

    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _short(thing: object) -> str:
    return brief(thing, _LETTERS)
