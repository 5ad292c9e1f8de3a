"""Expressions: what they compute against Python's own evaluation, and what they say of faults."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.sweeps.constraints import with_short_names
from kernbench_builtin.sweeps.expressions import Expression
from kernbench_builtin.sweeps.expressions.quantities import UnitNumber
from kernbench_core.errors import UsageError
from kernbench_core.units import DIMENSIONS

VALUES: dict[str, Any] = {"rows": 32, "columns": 8, "share": 0.25, "link": "100 GB/s", "dtype": "f16", "wide": True}
KEY = "components.pe_gemm.params.rows"


def told(text: str, values: dict[str, Any] | None = None) -> str:
    """Return what is said of a faulty expression."""
    with pytest.raises(UsageError) as caught:
        Expression(text, "--where").value({**VALUES, KEY: 16} if values is None else values)
    return str(caught.value).removeprefix(f"--where {text!r}")


NAMES = st.sampled_from(["rows", "columns", "share"])
LEAVES = NAMES | st.integers(0, 50).map(str) | st.sampled_from(["0.5", "2.", "1e3"])


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return larger numbers made of smaller ones, as Python and expressions both write them."""
    pairs = st.tuples(parts, st.sampled_from(["+", "-", "*", "/", "//", "%"]), parts).map(" ".join)
    calls = st.tuples(st.sampled_from(["min", "max"]), parts, parts).map(
        lambda each: f"{each[0]}({each[1]}, {each[2]})"
    )
    single = st.tuples(st.sampled_from(["abs", "sqrt", "log2", "ceil", "floor", "-", "+"]), parts).map(
        lambda each: f"{each[0]}({each[1]})"
    )
    tests = st.tuples(parts, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), parts, parts, parts).map(
        lambda each: f"({each[3]} if {each[0]} {each[1]} {each[2]} else {each[4]})"
    )
    return pairs | calls | single | tests | pairs.map(lambda text: f"({text})")


SCOPE = {
    "min": min,
    "max": max,
    "abs": abs,
    **{name: getattr(math, name) for name in ("sqrt", "log2", "ceil", "floor")},
}


def by_python(text: str) -> Any:
    """Return what Python itself computes, None for what raises or is not finite."""
    try:
        found = eval(text, {"__builtins__": {}}, {**VALUES, **SCOPE})
    except (ArithmeticError, ValueError):
        return None
    return found if not isinstance(found, complex) and math.isfinite(found) else None


@given(st.recursive(LEAVES, joined, max_leaves=12))
def test_a_number_is_that_of_python(text: str) -> None:
    """Any arithmetic: the same number of the same type, and a sentence where Python raises."""
    wanted = by_python(text)
    try:
        found = Expression(text).value(VALUES)
    except UsageError as error:
        assert str(error).endswith(" is not a finite number.")
        assert wanted is None or math.isinf(wanted)
    else:
        assert (type(found), found) == (type(wanted), wanted)


@given(st.lists(st.tuples(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), NAMES), min_size=1, max_size=4), NAMES)
def test_a_chain_holds_where_each_pair_does(pairs: list[tuple[str, str]], first: str) -> None:
    """As Python reads it, and `and`, `or` and `not` around it, too."""
    chain = " ".join([first, *(f"{op} {name}" for op, name in pairs)])
    for text in (chain, f"not ({chain})", f"rows > columns and {chain}", f"{chain} or rows < columns or not wide"):
        assert Expression(text).truth(VALUES) is eval(text, {}, VALUES)


@given(
    st.sampled_from([(unit, kind) for kind in DIMENSIONS.values() for unit in kind.units]),
    st.sampled_from(["3", "0.5", "12.25", "1e2", "7."]),
    st.sampled_from(["", " "]),
    st.booleans(),
)
def test_a_quantity_is_in_the_unit_of_its_kind(unit: Any, number: str, gap: str, quoted: bool) -> None:
    """With and without quotes, with and without a space, of every unit that there is."""
    text = f"{number}{gap}{unit[0]}"
    found = Expression(f"'{text}'" if quoted else text).number({})
    assert found == pytest.approx(float(Fraction(number) * unit[1].units[unit[0]]), rel=1e-15)
    assert Expression(f"x == {text}").truth({"x": text})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("link < 400 GB/s", True),
        ("100GB/s <= link <= 1 TB/s", True),
        ("'400 GB/s' > link", True),
        ("-link < 0 and link > 0", True),
        ("2 * link == 200 GB/s", True),
        ("link / 2 == link * 0.5", True),
        ("4 MiB / link < 50 us", True),
        ("link * 1 us == 100000 B", True),
        ("link * 1 us / link == 1000 ns", True),
        ("link / 50 GB/s == 2", True),
        ("link // 30 GB/s == 3", True),
        ("max(link, 300 GB/s) == 300 GB/s", True),
        ("abs(-link) == link", True),
        ("log2(64 KiB / 1 KiB) == 6", True),
        ("(link if wide else 1 GB/s) == 100 GB/s", True),
        ("dtype == 'f16' and dtype != 'f32'", True),
        ("wide == true", None),
        ("wide == True and not False", True),
        ("64 KiB == 65536 B and 3 µs > 2us", True),
        ("sqrt(link) == 10 and link ** 2 == 10000", True),
        (f"{KEY} * 2 == rows", True),
        ("columns > 0 or rows / 0 > 1", True),
        ("400 GB/rows == 12.5 GB", True),
    ],
)
def test_what_holds(text: str, wanted: bool | None) -> None:
    """Units, texts, truth values and dotted names; what is not needed is not computed."""
    if wanted is None:
        assert told(text) == ", column 9: 'true' is not known here." + HINT
    else:
        assert Expression(text).truth({**VALUES, KEY: 16}) is wanted


HINT = " Known: columns, components.pe_gemm.params.rows, dtype, link, rows, share, wide."
KNOWN = " Known: abs, ceil, floor, log2, max, min, sqrt."
ONLY = "write arithmetic, comparisons, and, or, not."


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rows / 0", ", column 1: 32 / 0 is not a finite number."),
        ("1 + rows % 0", ", column 5: 32 % 0 is not a finite number."),
        ("(0 - rows) ** 0.5", ", column 1: (-32) ** 0.5 is not a finite number."),
        ("log2(0)", ", column 1: log2(0) is not a finite number."),
        ("1e308 * 10", ", column 1: 1e+308 * 10 is not a finite number."),
        ("9 ** 9 ** 9 ** 9", ", column 6: 9 ** 387420489 is not a finite number."),
        ("2 ** 1000 * 2 ** 1000", f", column 1: {str(2**1000)[:59]}… * {str(2**1000)[:59]}… is not a finite number."),
        ("link < 400", ", column 1: 400 has no unit beside 100 GB/s; write it with one, as '100 GB/s'."),
        ("link + rows > 0", ", column 1: 32 has no unit beside 100 GB/s; write it with one, as '100 GB/s'."),
        ("link < 5 us",
         ", column 1: 100 GB/s and 5000 ns are of different kinds, which '<' cannot have; correct the units."),
        ("min(1 GB, 1 s) > 0",
         ", column 1: 1000000000 B and 1000000000 ns are of different kinds, which 'min' cannot have; "
         "correct the units."),
        ("link < 400 GBps",
         ": 'GBps' behind 400 must be a unit, and there is none of this name. Did you mean '400 GB/s'?"),
        ("link < 4 gb/S", ": 'gb/S' behind 4 must be a unit, and there is none of this name. Did you mean '4 Gb/s'?"),
        ("3 foo",
         ": 'foo' behind 3 must be a unit, and there is none of this name. Units are as those of a configuration."),
        ("rows = 3",
         ", column 6: must be an expression, as 'rows * columns < 4096', but invalid syntax. "
         "Equality is written '=='."),
        ("", ": must be an expression, as 'rows * columns < 4096', but invalid syntax."),
        ("rows & 3", ", column 1: 'rows & 3' must not be in an expression; write 'and' between conditions."),
        ("rows ^ 2", ", column 1: 'rows ^ 2' must not be in an expression; a power is written '**'."),
        ("rows in (1, 2)", f", column 1: 'rows in (1, 2)' must not be in an expression; {ONLY}"),
        ("[rows][0]", f", column 1: '[rows][0]' must not be in an expression; {ONLY}"),
        ("lambda: rows", f", column 1: 'lambda: rows' must not be in an expression; {ONLY}"),
        ("f'{rows}'", f", column 1: \"f'{{rows}}'\" must not be in an expression; {ONLY}"),
        ("~rows", f", column 1: '~rows' must not be in an expression; {ONLY}"),
        ("1j", ", column 1: 1j must be a finite number, true, false or a quoted text."),
        ("None", ", column 1: None must be a finite number, true, false or a quoted text."),
        ("1e999", ", column 1: inf must be a finite number, true, false or a quoted text."),
        ("bandwith", ", column 1: 'bandwith' is not known here." + HINT),
        ("1 + colums", ", column 5: 'colums' is not known here. Did you mean 'columns'?"),
        ("rows.__class__", ", column 1: 'rows.__class__' is not known here." + HINT),
        ("min(rows, 2).real", ", column 1: a name must be words with dots between them; correct it."),
        ("open('f')",
         ", column 1: 'open' must be a function that expressions have." + KNOWN),
        ("rows.bit_length()",
         ", column 1: 'rows.bit_length' must be a function that expressions have." + KNOWN),
        ("max(1)", ", column 1: max must be given 2 to 20 arguments, without names; correct it."),
        ("sqrt(*rows)", ", column 1: sqrt must be given one argument, without names; correct it."),
        ("not rows", ", column 5: must be true or false, as 'rows < 64', not 32; compare it."),
        ("dtype + 1", ", column 1: '+' must be given numbers, not 'f16'."),
        ("wide * 2", ", column 1: '*' must be given numbers, not True."),
        ("dtype < 'f32'", ", column 1: 'f16' and 'f32' cannot be compared by '<'; correct it."),
        ("dtype == 16", ", column 1: 'f16' and 16 cannot be compared by '=='; correct it."),
        ("µs > 3", ", column 1: 'μs' is not known here." + HINT),
        ("'é' == colums", ", column 8: 'colums' is not known here. Did you mean 'columns'?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(text: str, wanted: str) -> None:
    """One sentence with the place in the text."""
    assert told(text) == wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a" * 2001, ": must be one line of at most 2,000 characters; shorten it."),
        ("rows <\n3", ": must be one line of at most 2,000 characters; shorten it."),
        ("+".join("1" * 200), ": must have at most 300 parts, not 598; shorten it."),
    ],
)
def test_its_cost_is_bounded(text: str, why: str) -> None:
    """Long ones are refused before anything is computed."""
    with pytest.raises(UsageError) as caught:
        Expression(text)
    assert str(caught.value).endswith(why)


@pytest.mark.parametrize("text", ["(" * 500 + "1" + ")" * 500, "-" * 1500 + "1", "not " * 400 + "wide"])
def test_a_deep_one_is_refused(text: str) -> None:
    """Whatever the parser can take of it."""
    with pytest.raises(UsageError, match=r"^--where .*(: must have at most 300 parts|must be an expression, as)"):
        Expression(text, "--where")


def test_its_names_are_those_of_the_text() -> None:
    """Dotted ones are one name; functions and quantities are none; each once, from left to right."""
    found = Expression(f"max({KEY}, b) < 5 GB/s and b + a > 3 s or min(_, c) == 'd'")
    assert found.names == (KEY, "b", "a", "_", "c")


def test_names_are_looked_for_before_anything_runs() -> None:
    """A slip, and the end of a longer name, are told with the name that was meant."""
    found = Expression("16 < rows", "--where")
    found.require(["rows"], "a parameter")
    for known, hint in (([KEY], f" Did you mean '{KEY}'?"), (["row"], " Did you mean 'row'?"), ([], "")):
        with pytest.raises(UsageError) as caught:
            found.require(known, "a parameter")
        assert str(caught.value) == (
            f"--where '16 < rows', column 6: 'rows' must be a parameter, and there is none of this name.{hint}"
        )


def test_any_end_of_an_axis_that_is_unique_names_it_and_is_suggested_first() -> None:
    """Not only the shortest one; a key of the machine that is as near comes behind."""
    found = with_short_names({"cube.noc.bandwidth": 1, "system.network.bandwidth": 2, "n": 3})
    assert found == {"cube.noc.bandwidth": 1, "noc.bandwidth": 1, "system.network.bandwidth": 2,
                     "network.bandwidth": 2, "n": 3}  # fmt: skip
    known = [*found, "sip.noc.bandwidth", "noc.bandwidts"]
    with pytest.raises(UsageError) as caught:
        Expression("noc.bandwidt < 9", "--where").require(known, "a parameter", found)
    assert str(caught.value) == (
        "--where 'noc.bandwidt < 9', column 1: 'noc.bandwidt' must be a parameter, and there is none of this name. "
        "Did you mean 'noc.bandwidth'?"
    )


def test_a_number_and_a_truth_are_told_apart() -> None:
    """A comparison is no number, and a number no condition; a figure may be compared with a plain number."""
    for expression, of in (("rows < 3", "number"), ("dtype", "number"), ("rows", "truth")):
        with pytest.raises(UsageError):
            getattr(Expression(expression), of)(VALUES)
    time = {"time_ns": UnitNumber(5000.0, "time", lenient=True), "hbm_bytes": UnitNumber(10, "size", lenient=True)}
    assert Expression("time_ns").number(time) == 5000.0
    assert Expression("time_ns < 6000 and time_ns < 6 us and time_ns + hbm_bytes == 5010").truth(time)
    assert Expression("hbm_bytes / time_ns < 1 GB/s").truth(time)
    assert told("time_ns < 6 KiB", time) == (
        ", column 1: 5000 ns and 6144 B are of different kinds, which '<' cannot have; correct the units."
    )
    assert told("missing < 1", {"missing": None}) == ", column 1: 'missing' has no value here."
