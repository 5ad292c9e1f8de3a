"""Many names of links in few texts: "sip0.cube[0-3].pe[0-7].(pe_dma->pe_tcm)" is 32 of them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

#: A run of numbers in the place of one, from and to.
_Span: TypeAlias = tuple[int, int]
_NUMBER: Final = re.compile(r"[0-9]+")
_SPANS: Final = re.compile(r"\[([0-9]{1,9})-([0-9]{1,9})\]")
#: What a name must not have to be put together with others, and how one that has it is written.
_OTHER: Final = re.compile(r"[\[\]()=\0]|(?<![0-9])0[0-9]|[0-9]{10}")
_LITERAL: Final = "="
_MOST: Final = 1 << 22


def folded(names: Iterable[str]) -> list[str]:
    """Return texts that stand for these names together, sorted; equal sets of names give equal texts."""
    literal, shapes = [], dict[str, list[tuple[_Span, ...]]]()
    for name in sorted(set(names)):
        if _OTHER.search(name):
            literal.append(_LITERAL + name)
            continue
        text = _factored(name)
        numbers = tuple((int(n), int(n)) for n in _NUMBER.findall(text))
        shapes.setdefault(_NUMBER.sub("\0", text), []).append(numbers)
    spelt = (_spelt(shape, box) for shape, boxes in shapes.items() for box in _merged(boxes))
    return sorted([*literal, *spelt])


def unfolded(texts: Iterable[str]) -> Iterator[str]:
    """Yield the names that texts stand for; ValueError where they are far too many."""
    left = _MOST
    for text in texts:
        if text.startswith(_LITERAL):
            yield text.removeprefix(_LITERAL)
            continue
        first, *rest = _SPANS.split(text)
        spans = [range(int(low), int(high) + 1) for low, high in zip(rest[::3], rest[1::3], strict=True)]
        left -= math.prod(map(len, spans))
        if left < 0:
            raise ValueError(f"more than {_MOST:,} links")
        for numbers in itertools.product(*spans):
            yield _whole(first + "".join(f"{n}{after}" for n, after in zip(numbers, rest[2::3], strict=True)))


def _factored(name: str) -> str:
    """Write a wire whose ends lie in one place with that at the head: "sip0.pe1.(pe_dma->pe_tcm)"."""
    source, arrow, destination = name.partition("->")
    ends = source.split("."), destination.split(".")
    pairs = zip(ends[0][:-1], ends[1][:-1], strict=False)
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    if not arrow or not shared:
        return name
    return f"{'.'.join(ends[0][:shared])}.({'.'.join(ends[0][shared:])}->{'.'.join(ends[1][shared:])})"


def _whole(text: str) -> str:
    """Undo `_factored`."""
    if not text.endswith(")"):
        return text
    place, _, ends = text[:-1].partition(".(")
    source, _, destination = ends.partition("->")
    return f"{place}.{source}->{place}.{destination}"


def _merged(boxes: list[tuple[_Span, ...]]) -> list[tuple[_Span, ...]]:
    """Put boxes of numbers together that touch along one axis, axis by axis from the last."""
    boxes = sorted(boxes)
    for axis in reversed(range(len(boxes[0]))):
        rows: dict[tuple[tuple[_Span, ...], tuple[_Span, ...]], list[_Span]] = {}
        for box in boxes:
            spans = rows.setdefault((box[:axis], box[axis + 1 :]), [])
            if spans and spans[-1][1] + 1 == box[axis][0]:
                spans[-1] = spans[-1][0], box[axis][1]
            else:
                spans.append(box[axis])
        boxes = sorted((*before, span, *after) for (before, after), spans in rows.items() for span in spans)
    return boxes


def _spelt(shape: str, box: tuple[_Span, ...]) -> str:
    spans = iter(box)
    return re.sub("\0", lambda _: _of(*next(spans)), shape)


def _of(low: int, high: int) -> str:
    return str(low) if low == high else f"[{low}-{high}]"
