"""The table of an algorithm that is wrong: data, inputs that change, races and deadlocks, each with its exit code."""

from __future__ import annotations

import json

import pytest

from kernbench_ccl.collectives import exact_inputs
from tests.ccl.cli.machines import SMALL


def test_wrong_data_is_counted_explained_and_exits_with_1(call):
    """One rank leaves out one contribution: which rank, which elements, which step and line."""
    code, out, _ = call("all_reduce", *SMALL, "--algo", "skipping", "-b", "1K", "-e", "2K")
    rows = [line.split() for line in out.splitlines() if line.startswith("   ")]
    assert code == 1
    assert [(row[8], row[12]) for row in rows[:2]] == [("512", "512"), ("1024", "1024")]
    tail = out[out.index("# Out of bounds") :]
    assert tail.startswith("# Out of bounds values : 3072 FAILED\n")
    inputs = [exact_inputs("f16", "sum", 1024, 3, rank) for rank in range(3)]
    right, left = (f"{sum(each[0] for each in parts):.0f}" for parts in (inputs, inputs[1:]))
    assert (
        "1 KiB by acme.skipping_all_reduce, out of place:\n"
        "  wrong data: rank 2, integers: elements 0 to 511 of 512 are wrong; "
        f"element 0 must be {right}, not {left}.\n"
    ) in tail
    assert "rank 2's output must be the sum of elements 0-511 of ranks 0-2, and lack rank 0" in tail
    assert "stored them in step 1 at " in tail  # the message of step 2 is not in it
    assert "acme_skipping.py:21." in tail
    assert "and 3 more runs: 1 KiB by acme.skipping_all_reduce, in place; 2 KiB by" in tail


@pytest.mark.parametrize(
    ("collective", "redop", "before", "wrong"),
    [
        ("broadcast", (), "if place < world - 1:", "tile = tl.cast(tl.cast(tile, 'int16'), 'int32')"),
        ("all_reduce", ("-o", "max"), "tl.store(out_ptr + mine, total)",
         "total = c.combine(tl, total, tl.zeros((size,), c.dtype))"),
        ("all_reduce", ("-o", "min"), "tl.store(out_ptr + mine, total)",
         "total = c.combine(tl, total, tl.zeros((size,), c.dtype))"),
    ],
    ids=["sent as int16", "the greatest with 0", "the least with 0"],
)  # fmt: skip
def test_what_is_right_of_small_integers_alone_is_wrong_data(call, tmp_path, collective, redop, before, wrong):
    """Nearly all that is cut shows, and a third of the greatest and of the least elements."""
    assert call("new", "mine", "--collective", collective, folder=tmp_path)[0] == 0
    file = tmp_path / "mine.py"
    words = (collective, *SMALL, *redop, "-d", "int32", "-b", "4200", "-e", "4200", "--algo", str(file), "--json")
    assert json.loads(call(*words)[1])["wrong"] == 0
    (line,) = (each for each in file.read_text().splitlines(keepends=True) if each.strip() == before)
    file.write_text(file.read_text().replace(line, line.replace(before, wrong) + line))
    code, out, _ = call(*words)
    (row,) = json.loads(out)["rows"]
    assert code == 1 and row["out_of_place"]["wrong"] > (3000 if collective == "broadcast" else 900)


def test_output_that_nobody_writes_is_wrong_data(call, tmp_path):
    """The table goes on: the rank is named, out of place; in place its input is still there, which is wrong too."""
    assert call("new", "mine", folder=tmp_path)[0] == 0
    file = tmp_path / "mine.py"
    text = file.read_text()
    store = "tl.store(out_ptr + at, tl.recv((n,), c.dtype, other))"
    assert text.count(store) == 1
    file.write_text(text.replace(store, f"got = tl.recv((n,), c.dtype, other)\n                if rank != 1:\n"
                                        f"                    {store.replace('tl.recv((n,), c.dtype, other)', 'got')}"))
    code, out, err = call("all_reduce", *SMALL, "-b", "1K", "-e", "1K", "--algo", str(file))
    assert (code, err) == (1, "")
    assert (
        f"1 KiB by {file}, out of place:\n"
        "  wrong data: rank 1: its output of 512 elements was not written as a whole.\n"
        "  wrong data: kernbench ccl check says which elements nobody stores.\n"
        f"and 1 more run: 1 KiB by {file}, in place.\n"
    ) in out


def test_an_input_that_is_changed_is_wrong_data(call, tmp_path):
    """Out of place every rank must find its input as it was; which rank and elements changed is said."""
    assert call("new", "mine", folder=tmp_path)[0] == 0
    file = tmp_path / "mine.py"
    store = "tl.store(out_ptr + mine, total)\n"
    spoil = f"{store}            if rank == 1 and pe == 0:\n                tl.store(in_ptr + mine, total)\n"
    assert file.read_text().count(store) == 1
    file.write_text(file.read_text().replace(store, spoil))
    code, out, err = call("all_reduce", *SMALL, "-b", "1200", "-e", "1200", "--pes", "1", "--algo", str(file), "--json")
    (row,) = json.loads(out)["rows"]
    first, *more = row["out_of_place"]["failures"]
    assert (code, err) == (1, "")
    assert (row["out_of_place"]["wrong"], row["in_place"]["wrong"]) == (200, 0)
    assert first.partition(" must be ")[0] == (
        "rank 1, integers: elements 200 to 399 of its input of 600 were changed; element 200"
    )
    assert more == ["an input must be left as it is; kernbench ccl check says which line stores there."]


def test_in_place_what_is_not_output_must_be_left(call, tmp_path):
    """The output of a reduce_scatter is a part of its input: the other parts are to stay."""
    assert call("new", "mine", "--collective", "reduce_scatter", folder=tmp_path)[0] == 0
    file = tmp_path / "mine.py"
    last = "tl.store(out_ptr + at, c.finish(tl, total))"
    spoil = "if rank == 2:\n            tl.store(in_ptr + at, total)\n        "
    assert file.read_text().count(last) == 1
    file.write_text(file.read_text().replace(last, spoil + last))
    common = ("reduce_scatter", *SMALL, "-b", "600", "-e", "600", "--pes", "1", "--algo", str(file), "--json")
    (row,) = json.loads(call(*common)[1])["rows"]
    for half in ("out_of_place", "in_place"):
        assert row[half]["wrong"] == 100
        assert row[half]["failures"][0].startswith(
            "rank 2, integers: elements 0 to 99 of its input of 300 were changed; element 0 must be "
        )


def test_races_are_failures(call):
    """PEs that store to one place unordered: both lines are told, and the command exits with 1."""
    args = ("all_reduce", *SMALL, "--algo", "racing", "--pes", "2", "-b", "1K", "-e", "1K")
    code, out, _ = call(*args)
    assert code == 1
    assert "  hazard: unordered writes: out of rank 0[0], 2 B\n" in out
    assert "acme_racing.py:20 on sip0.cube0.pe1" in out
    races = json.loads(call(*args, "--json")[1])["hazards"]
    assert races > 0 and f"\n# Races                : {races} FAILED\n" in out
    assert "\n# Races                : " in call(*args, "--algo", "passing")[1]  # side by side, too


def test_a_deadlock_ends_the_table_with_4(call):
    """A receive that nobody sends to is reported, never waited for."""
    code, _, err = call("all_reduce", *SMALL, "--algo", "waiting", "-b", "1K", "-e", "1K")
    assert code == 4
    assert "acme_waiting.py:20" in err
    assert err.endswith("\nThis was 1 KiB by acme.waiting_all_reduce, out of place.\n")


def test_what_is_faulty_is_never_best(call):
    """Of algorithms side by side: '!' and what it means below the table; the best of --json is right."""
    words = ("all_reduce", *SMALL, "--algo", "skipping", "--algo", "racing", "--algo", "ring", "-b", "1K", "-e", "1K")
    code, out, _ = call(*words)
    assert code == 1
    lines = out.splitlines()
    cells = next(line for line in lines if not line.startswith("#")).split()[1:]
    assert [cell[-1] for cell in cells] == ["!", "!", "*"]
    at = lines.index("# ring is best at every size.")
    assert lines[at + 1] == "# ! is wrong data or a race, and never the best"
    found = json.loads(call(*words, "--json")[1])
    assert [row["out_of_place"]["faulty"] for row in found["rows"]] == [True, True, False]
    assert found["best"] == [{"size": 1024, "algorithm": "ccl.ring_all_reduce", "entry": None}]
