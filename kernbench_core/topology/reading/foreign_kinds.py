"""Kinds of values that only the sections of plug-ins have: read by cattrs, whose import takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_origin

import attrs
import cattrs
from cattrs.errors import AttributeValidationNote, ClassValidationError, IterableValidationError

from kernbench_core.topology.reading.faults import Faults, ReadingFault, faults_of


def foreign_reader(kind: Any, reader_of: Callable[[Any], Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return what types a value as a kind that cattrs knows; what is in it may be of our kinds again (`reader_of`)."""
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    converter.register_structure_hook_func(_is_ours, lambda value, inner: reader_of(inner)(value))

    def read(value: Any) -> Any:
        try:
            return converter.structure(value, kind)
        except (ClassValidationError, IterableValidationError) as faults:
            raise Faults(list(_flat(faults))) from None

    return read


def _is_ours(kind: Any) -> bool:
    return attrs.has(kind) or get_origin(kind) is list


def _flat(faults: ClassValidationError | IterableValidationError) -> Iterator[ReadingFault]:
    """Yield every fault inside a group of cattrs."""
    with_notes, without = faults.group_exceptions()
    for fault, note in [*with_notes, *((fault, None) for fault in without)]:
        key = () if note is None else (note.name if isinstance(note, AttributeValidationNote) else note.index,)
        if isinstance(fault, ClassValidationError | IterableValidationError):
            yield from faults_of(Faults(list(_flat(fault))), *key)
        else:
            yield from faults_of(fault, *key)
