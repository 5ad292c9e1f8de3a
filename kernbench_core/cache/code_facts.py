"""What a code object is, and what it names: globals, attributes and modules, with those of the code inside it."""

from __future__ import annotations

import dis
import hashlib
from types import CodeType
from typing import Any, Final

import attrs

_EXTENDED: Final = dis.EXTENDED_ARG
_GLOBAL: Final = dis.opmap["LOAD_GLOBAL"]
_NAMES: Final = {dis.opmap[name] for name in ("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS") if name in dis.opmap}
_IMPORT: Final = dis.opmap["IMPORT_NAME"]
_TEXTS: Final = ("co_name", "co_qualname", "co_filename")
_NUMBERS: Final = (
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_nlocals", "co_stacksize", "co_flags",
    "co_firstlineno",
)  # fmt: skip
_TUPLES: Final = ("co_names", "co_varnames", "co_freevars", "co_cellvars")
_BYTES: Final = ("co_code", "co_linetable", "co_exceptiontable")
#: So many code objects are remembered.
_MOST: Final = 20_000


@attrs.frozen
class CodeFacts:
    """The SHA-256 of a code object, in hex, its lines included; the globals, attributes and imports that it names."""

    sha256: str
    globals: tuple[str, ...]
    names: tuple[str, ...]
    imports: tuple[str, ...]


_KNOWN: dict[int, tuple[CodeType, CodeFacts]] = {}


def code_facts(code: CodeType) -> CodeFacts:
    """Return the facts of a code object, which never change."""
    known = _KNOWN.get(id(code))
    if known is not None and known[0] is code:
        return known[1]
    if len(_KNOWN) >= _MOST:
        _KNOWN.clear()
    found = _facts(code)
    _KNOWN[id(code)] = code, found
    return found


def _facts(code: CodeType) -> CodeFacts:
    inside = [code_facts(each) for each in code.co_consts if isinstance(each, CodeType)]
    own, imports = _named(code)
    text = [repr([getattr(code, name) for name in (*_TEXTS, *_NUMBERS, *_TUPLES)])]
    text += [repr(getattr(code, name)) for name in _BYTES]
    text += [_constant(each) for each in code.co_consts]
    return CodeFacts(
        hashlib.sha256("\n".join(text).encode("utf-8", "surrogatepass")).hexdigest(),
        _merged(own, *(each.globals for each in inside)),
        _merged(code.co_names, *(each.names for each in inside)),
        _merged(imports, *(each.imports for each in inside)),
    )


def _named(code: CodeType) -> tuple[list[str], list[str]]:
    """Return the globals that the instructions of a code object load, and the modules that they import."""
    loaded, imported, extended = [], [], 0
    units = code.co_code
    for at in range(0, len(units), 2):
        instruction, number = units[at], units[at + 1] | extended
        extended = number << 8 if instruction == _EXTENDED else 0
        if instruction == _GLOBAL:
            loaded.append(code.co_names[number >> 1])  # its lowest bit says something else
        elif instruction in _NAMES:
            loaded.append(code.co_names[number])
        elif instruction == _IMPORT:
            imported.append(code.co_names[number])
    return loaded, imported


def _constant(value: Any) -> str:
    """Write a constant so that no other one is written alike, a set in the order of its members' texts."""
    if isinstance(value, CodeType):
        return f"code {code_facts(value).sha256}"
    if isinstance(value, frozenset):
        return f"frozenset {sorted(map(_constant, value))}"
    if isinstance(value, tuple):
        return f"tuple {[_constant(each) for each in value]}"
    return f"{type(value).__name__} {value!r}"


def _merged(*names: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in names for name in each))
