"""What records of one template have in common, worked out once, and how one is rebuilt from it and its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from kernbench_core.oplog.description import handle_of
from kernbench_core.oplog.parameters import (
    ADDRESS_LIST,
    ADDRESSES,
    CONST,
    FLOAT,
    HANDLE,
    HEAD,
    INT,
    LIST,
    READ,
    SIDE,
    TUPLE,
    RawAccess,
    of_reads,
)
from kernbench_core.values.region import Region
from kernbench_core.values.value import OpId, Value


class RecordForm:
    """What all records of one template share: kind, name, function, spaces, constants; and where the rest of each is.

    `constants` are the parameters that are the same in all of them (shared: copy what you change). `int_places` and
    `float_places` say where among the numbers of a record a parameter is that varies, `base_places` where the base of
    the one region of each access is (-1: it has none, or several). The accesses are the reads, then what is written.
    """

    def __init__(self, sig: tuple[Any, ...]) -> None:
        self.op_kind: str
        self.op_name: str
        self.function: str | None
        self.writes: bool
        self.op_kind, self.op_name, self.function, self.writes, count = sig[:HEAD]
        at = HEAD + 5 * count
        #: Of each access its space, whether it has no value, and row bytes, rows and pitch of its one region.
        self.geometry: tuple[tuple[str, bool, int | None, int, int], ...] = tuple(
            sig[each : each + 5] for each in range(HEAD, at, 5)
        )
        bases: list[int] = []
        used = 0
        for _, _, row_bytes, rows, _ in self.geometry:
            single = row_bytes is not None and bool(rows)
            bases.append(used if single else -1)
            used += single
        self.base_places = tuple(bases)
        self._place_params(sig[at : at + 5], used)

    def _place_params(self, packed: tuple[Any, ...], used: int) -> None:
        keys, codes, consts, _, counts = packed
        self.int_places: dict[str, int] = {}
        self.float_places: dict[str, int] = {}
        constants: dict[str, Any] = {}
        #: All parameters in order, those that vary as None.
        self._blank: dict[str, Any] = dict.fromkeys(keys)
        self._lists: list[str] = []
        #: Names and codes of the parameters that are neither constant nor single numbers.
        self._others: list[tuple[str, str]] = []
        self._runs: list[tuple[str, int, int, bool]] = []
        left, lengths = iter(consts), iter(counts)
        later = used + codes.count(INT)
        for key, code in zip(keys, codes, strict=True):
            if code == INT:
                self.int_places[key] = used
                used += 1
            elif code == FLOAT:
                self.float_places[key] = len(self.float_places)
            elif code in (CONST, TUPLE, LIST):
                found = next(left)
                constants[key] = list(found) if code == LIST else found
                self._blank[key] = constants[key]
                self._lists += [key] if code == LIST else []
            elif code in (ADDRESSES, ADDRESS_LIST):
                length = next(lengths)
                self._runs.append((key, later, later + length, code == ADDRESS_LIST))
                later += length
            else:
                self._others.append((key, code))
        self.constants: Mapping[str, Any] = MappingProxyType(constants)

    @property
    def in_side(self) -> bool:
        """Whether a record has parameters in the side table."""
        return any(code == SIDE for _, code in self._others)

    @cached_property
    def spaces(self) -> tuple[str, ...]:
        """The spaces of the accesses."""
        return tuple(space for space, *_ in self.geometry)

    def accesses(self, ints: Sequence[int], values: Iterator[Value], side: Iterator[Any]) -> list[RawAccess]:
        """Rebuild the accesses of a record from its numbers, its values and what it has in the side table."""
        found: list[RawAccess] = []
        for (space, no_value, row_bytes, rows, pitch), place in zip(self.geometry, self.base_places, strict=True):
            regions: tuple[Region, ...] = ()
            if place >= 0:
                assert row_bytes is not None
                regions = (Region(ints[place], row_bytes, rows, pitch),)
            elif row_bytes is None:
                regions = next(side)
            found.append((space, regions, None if no_value else next(values)))
        return found

    def params(
        self,
        ints: Sequence[int],
        floats: Sequence[float],
        side: Iterator[Any],
        op_id: OpId | None,
        reads: Sequence[Value | None],
    ) -> dict[str, Any]:
        """Rebuild the parameters of a record; `side` goes on behind its accesses, `reads` are the values it reads."""
        params = self._blank.copy()
        for key in self._lists:
            params[key] = params[key].copy()
        for key, place in self.int_places.items():
            params[key] = ints[place]
        for key, place in self.float_places.items():
            params[key] = floats[place]
        for key, start, stop, is_list in self._runs:
            found = ints[start:stop]
            params[key] = list(found) if is_list else tuple(found)
        for key, code in self._others:
            if code == HANDLE:
                params[key] = handle_of(op_id)
            elif code == READ:
                params[key] = of_reads(key, reads)
            else:
                assert code == SIDE
                params[key] = next(side)
        return params
