"""What one entry of the cache is as bytes: a line with its version and digest, a line that lists it, and its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

#: The form of an entry; others are those of another version of kernbench.
FORM: Final = "kernbench.cache/1"
_DIGITS: Final = 64
_HEAD: Final = len(FORM) + 1 + _DIGITS + 1


class DamagedEntry(ValueError):
    """Bytes that are no whole entry of this form."""


class OtherForm(DamagedEntry):
    """An entry that another version wrote."""


@attrs.frozen
class EntryHead:
    """What the second line of an entry says: its key, when it was made (ns since 1970), what it is, and its files."""

    key: str
    made_ns: int
    about: Mapping[str, Any]
    sizes: Mapping[str, int]


def pack(key: str, files: Mapping[str, bytes], about: Mapping[str, Any], made_ns: int) -> list[bytes]:
    """Return the pieces of an entry; `about` must be JSON."""
    sizes = {name: len(data) for name, data in files.items()}
    head = {"key": key, "made_ns": made_ns, "about": dict(about), "sizes": sizes}
    line = json.dumps(head, separators=(",", ":")).encode() + b"\n"
    digest = hashlib.sha256(line)
    for data in files.values():
        digest.update(data)
    return [f"{FORM} {digest.hexdigest()}\n".encode(), line, *files.values()]


def unpack(key: str, data: bytes) -> dict[str, bytes]:
    """Return the files of an entry; raise DamagedEntry where a byte of it, or its key, is another one."""
    _check_form(data)
    if hashlib.sha256(memoryview(data)[_HEAD:]).hexdigest().encode() != data[_HEAD - _DIGITS - 1 : _HEAD - 1]:
        raise DamagedEntry("its content must have the digest that it says")
    at = data.index(b"\n", _HEAD) + 1
    head = _read(data[_HEAD:at])
    if head.key != key:
        raise DamagedEntry("it must be the entry of its name")
    files = {}
    for name, size in head.sizes.items():
        files[name], at = data[at : at + size], at + size
    return files


def read_head(start: bytes) -> EntryHead:
    """Read the second line off the first bytes of an entry; raise DamagedEntry where it is none, or not whole."""
    _check_form(start)
    end = start.find(b"\n", _HEAD)
    if end < 0:
        raise DamagedEntry("its second line must end")
    return _read(start[_HEAD:end])


def _check_form(data: bytes) -> None:
    mark = data[: len(FORM) + 1].decode("ascii", "replace")
    if mark != f"{FORM} ":
        other = mark.startswith(FORM.partition("/")[0] + "/")
        raise (OtherForm if other else DamagedEntry)(f"it must begin with {FORM}")
    if len(data) < _HEAD or data[_HEAD - 1] != ord("\n"):
        raise DamagedEntry("its first line must be whole")


def _read(line: bytes) -> EntryHead:
    try:
        found = json.loads(line)
        head = EntryHead(found["key"], found["made_ns"], found["about"], found["sizes"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedEntry("its second line must be what was written") from error
    whole = isinstance(head.key, str) and isinstance(head.made_ns, int) and isinstance(head.about, dict)
    if not (whole and isinstance(head.sizes, dict) and all(isinstance(size, int) for size in head.sizes.values())):
        raise DamagedEntry("its second line must be what was written")
    return head
