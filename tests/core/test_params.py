"""Parameters: declared once, completed and converted, every fault a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core import params
from kernbench_core.params import Param, closest, did_you_mean, resolve_params

DECLARED = (
    Param("overhead", "time", "8 ns", "Latency."),
    Param("servers", "int", 1, "Workers.", minimum=1),
    Param("policy", "str", "fifo", "Order of service.", choices=("fifo", "lifo")),
    Param("rows", "int", None, "Rows of the array.", positive=True),
)


def where(*names: str) -> str:
    return f"f.yaml:1:1: {'.'.join(('x', *names))}"


def test_defaults_are_filled_in_and_units_converted() -> None:
    values, problems = resolve_params(DECLARED, {"overhead": "0.5 us", "rows": 4}, where)
    assert values == {"overhead": 500.0, "servers": 1, "policy": "fifo", "rows": 4}
    assert problems == []


def test_every_fault_is_reported_with_its_place() -> None:
    _, problems = resolve_params(DECLARED, {"overhed": "1 ns", "servers": 0, "policy": "random"}, where)
    assert problems == [
        "f.yaml:1:1: x.overhed must be a declared parameter. Did you mean 'overhead'?",
        "f.yaml:1:1: x.servers must be an integer of at least 1, not 0.",
        "f.yaml:1:1: x.policy must be one of 'fifo', 'lifo', not 'random'.",
        "f.yaml:1:1: x.rows must be given: Rows of the array.",
    ]


def test_of_a_flood_of_slips_only_those_that_are_told_get_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is told of twenty mends these first; a search for each of them all would take minutes."""
    asked: list[str] = []

    def hint(name: str, known: object) -> str:
        asked.append(name)
        return " Perhaps."

    monkeypatch.setattr(params, "did_you_mean", hint)
    _, problems = resolve_params(DECLARED, {"rows": 4, **{f"overhed{at}": 1 for at in range(300)}}, where)
    assert len(problems) == 300 and len(asked) == 21
    assert [problem.endswith(" Perhaps.") for problem in problems] == [True] * 21 + [False] * 279


RATES = Param("rates", "table", {"f32": 0.25, "f16": 1}, "Rate by dtype.", positive=True)


def test_a_table_changes_the_entries_that_are_given() -> None:
    values, problems = resolve_params([RATES], {"rates": {"f32": 0.5}}, where)
    assert (values, problems) == ({"rates": {"f32": 0.5, "f16": 1}}, [])
    assert resolve_params([RATES], {}, where)[0] == {"rates": {"f32": 0.25, "f16": 1}}
    assert RATES.default_value == {"f32": 0.25, "f16": 1}, "a change stays with the node that asked for it"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (4, "x.rates must be a table of numbers, not 4; write {name: number, …}."),
        ({"f33": 1}, "x.rates.f33 must be an entry of the table. Did you mean 'f32'?"),
        ({"f32": 0}, "x.rates.f32 must be a positive number, not 0."),
        ({"f32": "2 ns"}, "x.rates.f32 must be a positive number, not '2 ns'."),
    ],
)
def test_a_table_refuses_other_names_and_what_is_no_number(given: object, fault: str) -> None:
    assert resolve_params([RATES], {"rates": given}, where)[1] == [f"f.yaml:1:1: {fault}"]


@pytest.mark.parametrize(
    ("dimension", "default", "limits", "fault"),
    [
        ("time", "4 B", {}, "must be a time, not '4 B'. Did you mean '4 ns'?"),
        ("int", 0, {"minimum": 1}, "must be an integer of at least 1, not 0."),
        ("str", "lilo", {"choices": ("fifo", "lifo")}, "must be one of 'fifo', 'lifo', not 'lilo'."),
        ("table", None, {}, "must be a table of numbers, not None."),
        ("table", {"f32": -1}, {"positive": True}, "must be a positive number, not -1."),
    ],
)
def test_a_default_that_a_configuration_could_not_give_is_refused(
    dimension: str, default: object, limits: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ValueError) as caught:
        Param("x", dimension, default, "A thing.", **limits)
    assert str(caught.value) == f"default of parameter 'x' {fault}"


def test_a_parameter_knows_its_unit_and_default() -> None:
    overhead, _, policy, rows = DECLARED
    assert (overhead.unit, overhead.default_value, overhead.required) == ("ns", 8.0, False)
    assert (policy.unit, policy.default_value) == ("", "fifo")
    assert (rows.default_value, rows.required) == (None, True)


def test_an_unknown_dimension_is_refused_at_declaration() -> None:
    with pytest.raises(ValueError, match="dimension of parameter 'x' must be one of"):
        Param("x", "speed", 1, "Nonsense.")


def test_a_suggestion_is_the_closest_name_or_the_short_list() -> None:
    assert did_you_mean("bandwith", ["bandwidth", "latency"]) == " Did you mean 'bandwidth'?"
    assert did_you_mean("zzz", ["b", "a"]) == " Known: a, b."
    assert did_you_mean("zzz", [str(i) for i in range(30)]) == ""


@pytest.mark.parametrize(
    ("given", "known", "meant"),
    [
        ("nope", ("pe", "cube"), ""),
        ("pse", ("pe_count", "pes"), "pes"),
        ("overhed", ("overhead", "servers"), "overhead"),
        ("chanels", ("channel", "channels"), "channels"),
        ("neighbor", ("neighbour_exchange",), "neighbour_exchange"),
        ("hbm_bandwidth", ("bandwidth", "width"), "bandwidth"),
        ("sip.count", ("noc", "system"), ""),
        ("x" * 10**6, ("x",), ""),
    ],
)
def test_only_a_slip_of_the_pen_is_taken_for_another_name(given: str, known: tuple[str, ...], meant: str) -> None:
    """Of a short word more than half may be the same by chance."""
    assert closest(given, known) == meant
    told = f" Did you mean {meant!r}?" if meant else f" Known: {', '.join(sorted(known))}."
    assert did_you_mean(given, known) == told
