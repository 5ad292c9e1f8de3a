"""Algorithms side by side: all that do a collective, those that are named, and which of them auto takes."""

from __future__ import annotations

import json

from tests.ccl.cli.machines import SMALL, SMALLEST


def test_all_compares_side_by_side_and_lists_who_refuses(call):
    """A column for each algorithm, a star for the least time, the sentences of those that are left out."""
    args = ("all_reduce", *SMALLEST, "--ranks", "7", "--algo", "all", "-b", "1K", "-e", "1K")
    code, out, _ = call(*args)
    lines = out.splitlines()
    assert code == 0
    assert "# left out: acme.passing_all_reduce must have at most 6 ranks, not 7; give fewer." in lines
    heads = next(line for line in lines if line.startswith("#       size")).split()[2:]
    assert {"ring", "ring_bidirectional", "direct"} <= set(heads)
    cells = next(line for line in lines if not line.startswith("#")).split()
    times = dict(zip(heads, (float(cell.rstrip("*")) for cell in cells[1:]), strict=True))
    best = min(times, key=times.get)
    assert next(cell for cell in cells if cell.endswith("*")) == f"{times[best]:.2f}*"
    assert lines[-4] == f"# {best} is best at every size."
    assert lines[-2] == "# Out of bounds values : not checked"
    found = json.loads(call(*args, "--json")[1])
    assert found["best"][0]["algorithm"].endswith(f".{best}_all_reduce")
    assert found["refused"]["acme.passing_all_reduce"].startswith("acme.passing_all_reduce must have at most 6")
    assert found["rows"][0]["out_of_place"]["wrong"] is None


def test_all_compares_entries_too(call, tmp_path):
    """Entries that run an algorithm of this collective have columns of their own names; the algorithm its defaults."""
    (tmp_path / "ccl.yaml").write_text(
        "defaults: {pes: 1}\n"
        "algorithms:\n"
        "  a: {algorithm: ring, chunk: 1 KiB}\n"
        "  b: {algorithm: ccl.ring_all_reduce, pipeline: off, chunk: 2 KiB}\n"
        "  direct: {algorithm: direct, chunk: 3 KiB}\n"
        "  c: {algorithm: mesh}\n"
        "  d: {algorithm: ring_all_gather}\n"
        "  e: {algorithm: pairwise}\n"
    )
    words = ("all_reduce", *SMALLEST, "--ranks", "7", "--config", "ccl.yaml")
    code, out, _ = call(*words, "-b", "14K", "-e", "14K", "--algo", "all", folder=tmp_path)
    lines = out.splitlines()
    titles = next(line for line in lines if line.startswith("#       size")).split()[2:]
    assert code == 0
    assert titles == ["direct", "double_binary_tree", "halving_doubling", "ring", "ring_bidirectional", "a", "b"]
    assert "# direct: ccl.direct_all_reduce, pipelined, messages of 3 KiB, 1 PE a rank" in lines
    assert "# ccl.ring_all_reduce, pipelined, messages of 16 KiB, 1 PE a rank" in lines
    assert "# a: ccl.ring_all_reduce, pipelined, messages of 1 KiB, 1 PE a rank" in lines
    assert "# b: ccl.ring_all_reduce, step by step, messages of 2 KiB, 1 PE a rank" in lines
    mesh = "ccl.mesh_all_reduce must run on one of the networks mesh_2d, not 'ring'"
    assert f"# left out: {mesh}" in lines and f"# left out: c: {mesh}" in lines
    found = json.loads(call(*words, "-b", "14K", "-e", "14K", "--algo", "all", "--json", folder=tmp_path)[1])
    times = {title: row["out_of_place"]["time_ns"] for title, row in zip(titles, found["rows"], strict=True)}
    for name in ("a", "b", "ring"):
        (alone,) = json.loads(
            call(*words, "-b", "14K", "-e", "14K", "--algo", name if name != "ring" else "ccl.ring_all_reduce",
                 "--json", folder=tmp_path)[1]
        )["rows"]  # fmt: skip
        assert times[name] == alone["out_of_place"]["time_ns"]
    assert len({times["a"], times["b"], times["ring"]}) == 3
    best = min(times, key=times.get)
    assert [found["best"][0]["algorithm"], found["best"][0]["entry"]] == [
        next(row["algorithm"] for title, row in zip(titles, found["rows"], strict=True) if title == best),
        best if best in ("a", "b", "direct") else None,
    ]


def test_algorithms_that_are_named_are_compared(call):
    """--algo more than once compares those in that order, each once, and no others; one that refuses is an error."""
    words = ("all_reduce", *SMALL, "-b", "1K", "-e", "1K", "--no-check", "--algo", "ring", "--algo", "direct")
    code, out, _ = call(*words, "--algo", "ring")
    lines = out.splitlines()
    assert code == 0
    assert lines[3:6] == [
        "# ccl.ring_all_reduce, pipelined, messages of 16 KiB",
        "# ccl.direct_all_reduce, pipelined, messages of 16 KiB",
        "#",
    ]
    assert lines[7].split() == ["#", "size", "ring", "direct"]
    code, out, err = call(*words, "--algo", "mesh")
    assert (code, out) == (2, "")
    assert err == (
        "error: ccl.mesh_all_reduce must run on one of the networks mesh_2d, not 'ring'; choose another.\n"
    )


def test_others_that_are_named_stand_beside_all(call, tmp_path):
    """A file has a column behind those of all; what is among them already has no second one."""
    assert call("new", "mine", folder=tmp_path)[0] == 0
    words = ("all_reduce", *SMALLEST, "--ranks", "7", "-b", "1K", "-e", "1K", "--no-check")
    mine = ("--algo", "./mine.py", "--algo", "all", "--algo", "ccl.ring_all_reduce")

    def heads(*how):
        code, out, _ = call(*words, *how, folder=tmp_path)
        assert code == 0
        return next(line for line in out.splitlines() if line.startswith("#       size")).split()[2:]

    assert heads(*mine) == [*heads("--algo", "all"), "./mine.py"]


def test_all_shows_more_with_wide(call):
    """Bound, closed form, efficiency and what binds of each algorithm: what --json says of it."""
    words = ("all_reduce", *SMALLEST, "--ranks", "7", "-b", "1K", "-e", "1K", "--algo", "all")
    code, out, _ = call(*words, "--wide")
    found = json.loads(call(*words, "--json")[1])["rows"]
    lines = [line.split() for line in out.splitlines() if line.startswith(" ")]
    assert code == 0 and len(lines) == len(found) > 2
    for line, row in zip(([*lines[0][1:]], *lines[1:]), found, strict=True):
        formula = "-" if row["formula_ns"] is None else f"{row['formula_ns'] / 1000:.2f}"
        time = row["out_of_place"]["time_ns"]
        assert line[0] == row["algorithm"].partition(".")[2].removesuffix("_all_reduce")
        assert line[1].rstrip("*") == f"{time / 1000:.2f}"
        assert line[2:5] == [f"{row['bound_ns'] / 1000:.2f}", formula, f"{100 * row['bound_ns'] / time:.1f}"]
        assert line[5] == f"{row['out_of_place']['binds']['utilisation']:.0%}"


def test_auto_says_which_algorithm_each_size_gets(call):
    """By the rule or by measurement, with the sizes."""
    code, out, _ = call("all_reduce", *SMALL, "-b", "1K", "-e", "256K", "-f", "256", "--no-check")
    lines = out.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("# auto ("))
    assert code == 0
    assert lines[start + 1].startswith("#   up to 1 KiB: ") or lines[start + 1].startswith("#   all sizes: ")
