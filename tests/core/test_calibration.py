"""The contract of formats of measurements, and CSVs of them: every fault at its line, all faults at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.calibration import CsvForm, MachineChoice, SimulatedRow, Unknown
from kernbench_core.errors import ConfigError

FORM = CsvForm({"kind": CsvForm.one_of("up", "down"), "bytes": CsvForm.size, "n": CsvForm.whole})


def test_columns_stand_in_any_order_and_case_and_others_are_ignored() -> None:
    """Comments and empty lines are left out; lines are counted as in an editor."""
    text = "\ufeff# a comment\n\nN, Kind ,who,BYTES,Time\n# and another\n3,UP,me,4 KiB,1.5 us\n\n4,down,you,1e3,20 ns\n"
    assert FORM.recognises(text)
    first, second = FORM.read("a.csv", text)
    assert (first.line, dict(first.values), first.ns) == (5, {"kind": "up", "bytes": 4096, "n": 3}, 1500.0)
    assert (second.line, dict(second.values), second.ns) == (7, {"kind": "down", "bytes": 1000, "n": 4}, 20.0)


@given(st.floats(1e-3, 9e8), st.sampled_from([("time_ns", 1.0), ("time_us", 1e3), ("time_ms", 1e6), ("time_s", 1e9)]))
def test_a_column_of_plain_times_has_its_unit_in_its_name(number: float, unit: tuple[str, float]) -> None:
    (row,) = FORM.read("a.csv", f"kind,bytes,n,{unit[0]}\nup,1,1,{number!r}\n")
    assert row.ns == pytest.approx(number * unit[1], rel=1e-15)


@given(st.integers(1, 2**19), st.sampled_from([(" KiB", 10), ("K", 10), (" M", 20), ("G", 30), ("T", 40)]))
def test_sizes_are_written_as_nccl_tests_takes_them_too(number: int, unit: tuple[str, int]) -> None:
    """A letter alone is a power of 1024; half of one is a size as well, half a byte is none."""
    (row,) = FORM.read("a.csv", f"kind,bytes,n,time_ns\nup,{number}{unit[0]},1,1\n")
    assert row.values["bytes"] == number << unit[1]
    (row,) = FORM.read("a.csv", f"kind,bytes,n,time_ns\nup,{number}.5{unit[0]},1,1\n")
    assert row.values["bytes"] == (2 * number + 1) << (unit[1] - 1)
    assert faults("kind,bytes,n,time_ns\nup,0.0001K,1,1\nup,0M,1,1\nup,9999999T,1,1\n") == (
        "a.csv:2: bytes must be a positive integer of bytes, not '0.0001K'.",
        "a.csv:3: bytes must be a positive integer of bytes, not '0M'.",
        "a.csv:4: bytes must be a size below 10^18 B, not '9999999T'.",
    )


def faults(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        FORM.read("a.csv", text)
    return caught.value.problems


def test_all_cells_that_are_wrong_are_told_at_once() -> None:
    """Each at its line, in the words of what it must be."""
    text = "kind,bytes,n,time\nsideways,-1,0,3\nup,1 KiB,1,2 ns\nup,1\ndown,4,1.5,0 ns\n"
    assert faults(text) == (
        "a.csv:2: kind must be one of up, down, not 'sideways'.",
        "a.csv:2: bytes must be a positive integer, not '-1'.",
        "a.csv:2: n must be a positive integer, not '0'.",
        "a.csv:2: time must be a time with its unit, not '3'; add it, or call the column one of time_ns, time_us, "
        "time_ms, time_s.",
        "a.csv:4: a row must have 4 cells (kind, bytes, n, time), not 2; restore it.",
        "a.csv:5: n must be a positive integer, not '1.5'.",
        "a.csv:5: time must be a positive time, not '0 ns'.",
    )


def test_faults_of_the_header_and_of_its_rows_are_told_together() -> None:
    """A column that is missing, or there twice, hides nothing that is wrong in others."""
    assert faults("kind,kind,bytes,time\nup,up,-1,3\nup,up,1\n") == (
        "a.csv:1: column kind must stand once; drop one.",
        "a.csv:1: a column n must be there, not only kind, kind, bytes, time; add it.",
        "a.csv:2: bytes must be a positive integer, not '-1'.",
        "a.csv:2: time must be a time with its unit, not '3'; add it, or call the column one of time_ns, time_us, "
        "time_ms, time_s.",
        "a.csv:3: a row must have 4 cells (kind, kind, bytes, time), not 3; restore it.",
    )


@pytest.mark.parametrize(("cells", "told"), [
    ('up,"1,048,576",1,1 ns', "bytes must be a positive size, not '1,048,576'. Did you mean '1048576 B'?"),
    ('up,"1,024 KiB",1,1 ns', "bytes must be a positive size, not '1,024 KiB'. Did you mean '1024 KiB'?"),
    ('up,1,"1,000",1 ns', "n must be a positive integer, not '1,000'. Did you mean '1000'?"),
    ('up,1,1,"1,234.5 us"', "time must be a positive time, not '1,234.5 us'. Did you mean '1234.5 us'?"),
    ("up,1e18,1,1 ns", "bytes must be a positive integer below 10^18, not '1e18'."),
    ("up,1000000 TB,1,1 ns", "bytes must be a positive size, not '1000000 TB'. That is too large to be meant."),
    ("up,1,1,0.9 ps", "time must be a time of at least 0.001 ns, not '0.9 ps'."),
    ("up,1,1,1e9 s", "time must be a positive time, not '1e9 s'. That is too large to be meant."),
    ("up,1,048,576,1,1 ns",
     "a row must have 4 cells (kind, bytes, n, time), not 6; write numbers without commas, and quote text that has "
     "some."),
])  # fmt: skip
def test_figures_that_are_too_large_or_have_commas_are_told_as_such(cells: str, told: str) -> None:
    """With the limit, or what is meant."""
    assert faults(f"kind,bytes,n,time\n{cells}\n") == (f"a.csv:2: {told}",)


def test_sizes_are_exact_and_a_column_keeps_its_own_spelling() -> None:
    """To the last of more digits than a float has; 1e17 is a number too."""
    form = CsvForm({"M": CsvForm.whole, "bytes": CsvForm.size})
    first, second = form.read("a.csv", "m,BYTES,time_us\n9007199254740993,900719925474099301,1\n1e17,1,2\n")
    assert dict(first.values) == {"M": 9007199254740993, "bytes": 900719925474099301}
    assert second.values["M"] == 10**17
    with pytest.raises(ConfigError) as caught:
        form.read("a.csv", "bytes\x1b[2J,m,time_us\n1,0,1\n")
    assert caught.value.problems == (
        "a.csv:1: a column bytes must be there, not only bytes\\x1b[2j, m, time_us; add it.",
        "a.csv:2: M must be a positive integer, not '0'.",
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a.csv:1: a column kind must be there, not only nothing; add it."),
        ("kind,kind,bytes,n,time_ns\n", "a.csv:1: column kind must stand once; drop one."),
        (
            "kind,bytes,n,when\n",
            "a.csv:1: one column of time, time_ns, time_us, time_ms, time_s must be there, not none.",
        ),
        (
            "\nkind,bytes,n,time,time_us\n",
            "a.csv:2: one column of time, time_ns, time_us, time_ms, time_s must be there, not time and time_us.",
        ),
        ("kind,bytes,n,time_ns\n", "a.csv:1: a row of measurements must follow the names of the columns; add one."),
        ("kind,bytes,n,time_ns\nup,1,1,inf\n", "a.csv:2: time_ns must be a positive number, not 'inf'."),
        ("kind,bytes,n,time_s\nup,1,1,1e300\n", "a.csv:2: time_s must be a positive number below 1e+09, not '1e300'."),
        ("kind,bytes,n,time_ns\nup,1,99999999999999999999,1\n",
         "a.csv:2: n must be a positive integer below 10^18, not '99999999999999999999'."),
    ],
)  # fmt: skip
def test_a_header_that_does_not_fit_is_told(text: str, told: str) -> None:
    assert faults(text)[0] == told


@pytest.mark.parametrize("text", ["", "kind,bytes,n\nup,1,1\n", "bytes,n,time\n1,1,1\n", "# kind,bytes,n,time\n"])
def test_a_text_without_all_columns_is_of_another_form(text: str) -> None:
    assert not FORM.recognises(text)


def test_a_parameter_says_how_a_machine_gets_it() -> None:
    """In the unit of its key, times its scale."""
    rate = Unknown("eff", "components.x.params.rate", "float", 0.1, 1.0, "", "", inverse=True, scale=2.0)
    assert rate.setting(0.25) == "components.x.params.rate=0.5"
    latency = Unknown("lat", "system.network.latency", "time", 1.0, 1e4, "", "")
    assert latency.setting(1234.5) == "system.network.latency=1234.5 ns"
    assert MachineChoice("tiny", ("a=1",)).having(["b=2"]) == MachineChoice("tiny", ("a=1", "b=2"))


@given(st.floats(0, 1e6), st.floats(1e-3, 1e3), st.integers(4, 1 << 30), st.integers(1, 1 << 40))
def test_what_is_linear_in_its_size_is_continued_exactly(start: float, slope: float, limit: int, size: int) -> None:
    """Whatever the limit; up to it the size itself is simulated."""
    asked: list[int] = []

    def time_ns(nbytes: int) -> float:
        asked.append(nbytes)
        return start + slope * nbytes

    found = SimulatedRow.along(size, limit, time_ns)
    assert found.ns == pytest.approx(start + slope * size, rel=1e-5)  # what is left of a difference of like numbers
    assert found.extended == (size > limit)
    assert asked == ([size] if size <= limit else [limit // 4, limit // 2, limit])
