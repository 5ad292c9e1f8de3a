"""What pages read of a result, and where one that was changed by hand is otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from kernbench_builtin.explain.ledger import PARTS
from kernbench_core.wording import brief


@attrs.frozen
class Maybe:
    """What may be left out, or be null."""

    form: Any


#: A form is a type, a list of the form of its items, or an object of the forms of its fields.
NUMBER: Final = float
_NUMBERS: Final = {str: NUMBER}
_POINT: Final = {
    "flops": NUMBER, "hbm_bytes": NUMBER, "intensity": Maybe(NUMBER), "achieved": NUMBER, "bound": str, "share": NUMBER,
    "resources": [{"kind": str, "resources": int, "achieved": NUMBER, "peak": NUMBER, "unit": str, "busiest": str,
                   "share": NUMBER}],
}  # fmt: skip
_BUSY: Final = {"name": str, "kind": Maybe(str), "utilisation": NUMBER, "run_utilisation": Maybe(NUMBER),
                "alike": Maybe(int), "mean_utilisation": Maybe(NUMBER)}  # fmt: skip
_PARTS: Final = dict.fromkeys(PARTS, NUMBER)
_USE: Final = {"call": str, "line": str, "pe": str, "issued_ns": NUMBER}
_SEGMENT: Final = {
    "sort": str, "place": str, "from_ns": NUMBER, "to_ns": NUMBER, "parts": _NUMBERS, "op_id": Maybe([int]),
    "call": Maybe(str), "line": Maybe(str), "waited_at": Maybe(str),
}  # fmt: skip
_EXPLAIN: Final = {
    "where": [{"phase": str, "sort": str, "kind": str, "ns": NUMBER, "waited_at": Maybe(str), **_PARTS}],
    "ledger": [{"phase": str, "what": str, "messages": int, "total_ns": NUMBER, **_PARTS}],
    "queueing": [{"place": str, "waits": int, "kind": str, "total_ns": NUMBER, "mean_ns": NUMBER,
                  "longest_ns": NUMBER}],
    "launches": [{
        "kernel": str, "injected_ns": NUMBER, "completed_ns": NUMBER, "path": [_SEGMENT],
        "lines": [{"what": str, "line": Maybe(str), "ops": int, "ns": NUMBER, "share": NUMBER, "parts": [NUMBER]}],
        "balance": Maybe({"pes": int, "shortest_ns": NUMBER, "mean_ns": NUMBER, "longest_ns": NUMBER, "longest": str}),
        "roofline": Maybe(_POINT),
    }],
    "utilisation": {"bin_ns": NUMBER, "kinds": [{"kind": str, "resources": int, "utilisation": [NUMBER]}]},
    "filling": Maybe([{"kind": str, "units": int, "busy_ns": NUMBER, "share": NUMBER}]),
}  # fmt: skip
_MANIFEST: Final = {
    "bench": Maybe({"file": Maybe(str), "sha256": Maybe(str), "modules": Maybe({str: str}),
                    "inputs": Maybe({str: {"sha256": str}}), "kind": Maybe(str), "command": Maybe([str]),
                    "launches": Maybe([{"kernel": str, "grid": [int], "constexprs": dict, "arguments": dict,
                                        "hints": dict, "count": int}])}),
    "configuration": Maybe(dict), "plugins": Maybe([{"plugin": str, "distribution": str, "version": str}]),
    "versions": Maybe({str: str}),
}  # fmt: skip
FORM: Final[Mapping[str, Any]] = {
    "bench": str, "params": dict, "topology": str, "device": str, "total_ns": NUMBER, "phases": _NUMBERS, "ops": int,
    "events": int, "wall_s": NUMBER, "verified": Maybe(bool), "checked": int, "wrong": int, "failures": [str],
    "interrupted": bool,
    "hazards": [{"kind": str, "name": str, "index": Maybe([int]), "nbytes": int, "first": _USE, "second": _USE,
                 "count": int}],
    "outside": Maybe([{"call": str, "line": str, "pe": str, "name": str, "shape": [int], "index": [int],
                       "writes": bool, "elements": int, "count": int}]),
    "python_reads": Maybe({"elements": int, "loaded": int, "cost_ns": NUMBER, "free": [str],
                           "lines": [{"line": str, "elements": int}]}),
    "rows": [dict], "warnings": [str],
    "statistics": [{"name": str, "value": NUMBER, "unit": str, "combined": str, "of": int, "component": str,
                    "sentence": str}],
    "not_modelled": [{"sentence": str, "component": str, "count": int}], "manifest": _MANIFEST,
    "launches": Maybe([{
        "kernel": str, "started_ns": NUMBER, "ended_ns": NUMBER, "busiest": [{"name": str, "utilisation": NUMBER}],
        "sips": Maybe([int]), "roofline": Maybe(_POINT), "last": Maybe(str),
        "path": Maybe([{"call": str, "unit": str, "line": str, "ns": NUMBER, "commands": int}]),
    }]),
    "verdict": Maybe({
        "lines": [str], "limiter": Maybe({"sentence": str}),
        "advice": [{"rule": str, "sentence": str, "gain": NUMBER, "about": str}],
    }),
    "busiest": Maybe([_BUSY]), "kernels": Maybe({"roofline": Maybe(_POINT), "busiest": Maybe([_BUSY])}),
    "tcm_map": Maybe([{
        "pe": str, "size": NUMBER, "peak_bytes": NUMBER, "peak_ns": NUMBER, "steps": Maybe([[NUMBER]]),
        "at_peak": Maybe([{"op": str, "dtype": str, "shape": [int], "nbytes": int, "from_ns": NUMBER,
                           "to_ns": Maybe(NUMBER), "line": str}]),
    }]),
    "explain": Maybe(_EXPLAIN), "op_log_sha256": Maybe(str),
    "links": Maybe({
        "name": [str], "kind": [str], "gb_per_s": [NUMBER], "latency_ns": [NUMBER], "bytes": [int], "deliveries": [int],
        "busy_ns": [NUMBER], "waited_ns": [NUMBER],
    }),
    "components": Maybe([{"kind": str, "components": int, "served": int, "ops": int, "busy_ns": NUMBER, "waits": int,
                          "waited_ns": NUMBER}]),
    "op_kinds": Maybe([{"kind": str, "name": str, "ops": int, "ns": NUMBER, "bytes": int}]),
    "lines": Maybe([{"file": str, "line": int, "text": str, "ops": int, "ns": NUMBER}]),
    "functions": Maybe([{"file": str, "name": str, "line": int, "source": str}]), "models": Maybe({str: str}),
}  # fmt: skip
_WORDS: Final[Mapping[Any, str]] = {str: "a text", int: "an integer", float: "a number", bool: "true or false",
                                    dict: "an object", list: "a list"}  # fmt: skip


def faults(value: Any, form: Any = FORM, place: str = "") -> Iterator[str]:
    """Say of each place that is otherwise than a run writes it what it must be: `launches[0].kernel … , not …`."""
    if isinstance(form, Maybe):
        if value is not None:
            yield from faults(value, form.form, place)
    elif isinstance(form, type):
        if not _is_a(value, form):
            yield _fault(place, _WORDS[form], value)
    elif isinstance(form, list):
        if not isinstance(value, list):
            yield _fault(place, _WORDS[list], value)
        else:
            for number, each in enumerate(value):
                yield from faults(each, form[0], f"{place}[{number}]")
    elif not isinstance(value, dict):
        yield _fault(place, _WORDS[dict], value)
    else:
        yield from _of_fields(value, form, place)


def _of_fields(value: Mapping[str, Any], form: Mapping[Any, Any], place: str) -> Iterator[str]:
    """Say what is otherwise in the fields that a form names, or in all of an object where it has `str` for them."""
    named = dict.fromkeys(value, form[str]) if str in form else form
    before = f"{place}." if place else ""
    for name, each in named.items():
        if name in value:
            yield from faults(value[name], each, f"{before}{name}")
        elif not isinstance(each, Maybe):
            yield f"{before}{name}, which is missing"


def _fault(place: str, what: str, value: Any) -> str:
    return f"{place} as {what}, not {brief(value, 40)}"


def _is_a(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, kind)
