"""Two runs side by side: every difference and no other, ranked, and the same ones when the runs are exchanged."""

from __future__ import annotations

import json
from typing import Any

import attrs
from hypothesis import given

import kernbench as kb
from kernbench_builtin.compare import MovedRow, RunFigures, compare
from kernbench_builtin.compare.figures import COLUMNS, LINES
from kernbench_builtin.compare.line_pairs import unlike_files
from kernbench_builtin.compare.run_figures import figures_of_json
from kernbench_core.spread import NOT_KNOWN, TimeSpread
from tests.builtin.compare.runs_by_hand import links, run, runs, table


def turned(name: str) -> str:
    """Return the name of a line that moved with before and after exchanged."""
    before, arrow, after = name.partition("→")
    file, _, number = before.rpartition(":")
    if not arrow:
        return name
    return f"{file}:{after}→{number}" if ":" not in after else f"{after}→{before}"


def seen(row: MovedRow, exchanged: bool = False) -> Any:
    """Return all that a row says; `exchanged` as the row of the exchanged runs should say it."""
    figures = [(each.figure, each.before, each.after) for each in row.moved]
    if not exchanged:
        return row.sort, row.name, figures
    return row.sort, turned(row.name), [(figure, after, before) for figure, before, after in figures]


@given(runs(), runs())
def test_any_two_runs(first: RunFigures, second: RunFigures) -> None:
    """Exchanged they give the same rows, exchanged; rows add up to what moved, and are ranked; alone nothing moved."""
    alone = compare(first, first)
    assert (alone.same, alone.rows, alone.causes, alone.sources) == (True, (), (), ())
    there, back = compare(first, second), compare(second, first)
    assert [seen(row) for row in there.rows] == [seen(row, exchanged=True) for row in back.rows]
    assert [(c.sort, c.name, c.before, c.after) for c in there.causes] == [
        (c.sort, c.name, c.after, c.before) for c in back.causes
    ]
    assert there.change_ns == -back.change_ns
    assert there.unknown.keys() == back.unknown.keys()
    assert there.same == back.same
    for sort in COLUMNS:
        rows = there.of_sort(sort)
        assert [rank(row) for row in rows] == sorted(map(rank, rows), reverse=True)
        if sort in first.tables and sort in second.tables:
            if sort in LINES and unlike_files(first.tables[sort], second.tables[sort]):
                assert any("differ in most lines" in note for note in there.notes)
                continue
            for at, figure in enumerate(COLUMNS[sort]):
                moved = sum(m.change for row in rows for m in row.moved if m.figure == figure)
                sums = [sum(float(row[at]) for row in each.tables[sort].rows.values()) for each in (first, second)]
                assert abs(moved - (sums[1] - sums[0])) <= 1e-6 * (1 + sum(sums))


def rank(row: MovedRow) -> tuple[bool, float]:
    """Say whether a link is another one than it was, and by how many ns a thing moved."""
    rates = [m for m in row.moved if m.figure in ("gb_per_s", "latency_ns")]
    other = any(m.before is not None and m.after is not None for m in rates)
    return other, sum(abs(m.change) for m in row.moved if "ns" in m.figure and m not in rates)


def test_a_link_of_another_latency_is_told_first() -> None:
    """Though others were busy for longer, and it did nothing itself."""
    before = links(a_b=(10.0, 5.0, 0, 0, 0.0, 0.0), c_d=(10.0, 5.0, 64, 1, 6.4, 0.0))
    after = links(a_b=(10.0, 6.0, 0, 0, 0.0, 0.0), c_d=(10.0, 5.0, 128, 2, 12.8, 900.0))
    found = compare(run(tables={"link": before}), run(tables={"link": after}))
    assert [row.name for row in found.rows] == ["a->b", "c->d"]
    first, second = found.rows
    assert (first.figure, first.before, first.after, first.change) == ("latency_ns", 5.0, 6.0, 1.0)
    assert [each.figure for each in second.moved] == ["waited_ns", "busy_ns", "bytes", "deliveries"]
    assert found.lines()[:10] == [
        "Nothing that both runs name is otherwise: the bench reads something else, "
        "or code of kernbench itself changed.",
        "total time 100 ns, the same",
        "",
        "links, 2 moved",
        "  a->b",
        "    latency 5 ns → 6 ns, +1 ns (+20.00 %)",
        "  c->d",
        "    waited 0 ns → 900 ns, +900 ns;",
        "    busy 6.4 ns → 12.8 ns, +6.4 ns (+100.00 %);",
        "    bytes 64 B → 128 B, +64 B (+100.00 %); deliveries 1 → 2, +1 (+100.00 %)",
    ]


def test_sources_are_paired_by_name_or_as_the_only_others() -> None:
    """A kernel of another name is the same one where only one of each is left; of several nobody knows."""
    old, new = "def f():\n    load\n", "def g():\n    load\n"
    (found,) = compare(run(texts={"k:f": old, "k:h": old}), run(texts={"k:g": new, "k:h": old})).sources
    assert (found.name, found.lines[:2]) == ("k:f → k:g", ("--- k:f", "+++ k:g"))
    assert found.lines[2:] == ("@@ -1,2 +1,2 @@", "-def f():", "+def g():", "     load")
    assert compare(run(texts={"k:f": old, "k:h": old}), run(texts={"k:g": new})).sources == ()
    assert compare(run(texts={"k:f": old}), run(texts={})).sources == ()


def test_the_diff_of_a_file_is_told_once() -> None:
    """And not again for the kernels in it; of a file that only one run kept, its kernels are told."""
    files = [
        {"k.py": f"N = {n}\ndef f(): {n}\n", "k.py:f": f"def f(): {n}\n", "lib.py:g": f"def g(): {n}\n"}
        for n in (1, 2)
    ]
    assert [each.name for each in compare(run(texts=files[0]), run(texts=files[1])).sources] == ["k.py", "lib.py:g"]
    moved = {name.replace("k.py", "l.py"): text for name, text in files[1].items()}
    assert [each.name for each in compare(run(texts=files[0]), run(texts=moved)).sources] == [
        "k.py → l.py", "lib.py:g",
    ]  # fmt: skip
    del files[1]["k.py"]
    assert [each.name for each in compare(run(texts=files[0]), run(texts=files[1])).sources] == ["k.py:f", "lib.py:g"]


def test_a_notebook_shows_the_lines() -> None:
    """As text, whatever names hold."""
    found = compare(run(causes={"params": {"<b>": 1}}), run(causes={"params": {"<b>": 2}}))
    assert found._repr_html_() == f"<pre>{found}</pre>".replace("<b>", "&lt;b&gt;")
    assert "&lt;b&gt;: 1 → 2" in found._repr_html_() and repr(found) == "<RunComparison of r and r: 0 rows moved>"


def test_other_op_logs_are_not_the_same() -> None:
    """Where no figure moved, that is said."""
    found = compare(run(), run(op_log_sha256="1" * 64))
    assert not found.same and not found.to_json()["same"]
    assert found.lines()[:2] == [
        "total time 100 ns, the same", "the op logs differ, though no figure does and the same was run",
    ]  # fmt: skip


def test_json_has_both_critical_paths_whole() -> None:
    """What did not move on them, too."""
    before = {sort: table(sort, {"x": (1.0,), "y": (2.0,)}) for sort in ("path", "place")}
    after = {**before, "place": table("place", {"x": (1.0,), "y": (3.0,)})}
    found = compare(run(tables=before), run(tables=after)).to_json()
    same = {"x": 1.0, "y": 2.0}
    assert found["critical_path"] == {
        "before": {"path": same, "place": same}, "after": {"path": same, "place": {"x": 1.0, "y": 3.0}},
    }  # fmt: skip
    assert [row["name"] for row in found["rows"]] == ["y"]


def test_a_line_that_is_another_one_now_is_two() -> None:
    """One that is gone and one that came, at the same place, ordered alike when the runs are exchanged."""
    tables = [{"line": table("line", {"f.py:6": (4, 5.0)}, {"f.py:6": said})} for said in ("store", "dot")]
    there, back = (compare(run(tables=a), run(tables=b)) for a, b in (tables, tables[::-1]))
    assert [(row.name, row.about, row.before, row.after) for row in there.rows] == [
        ("f.py:6", "dot", None, 5.0), ("f.py:6", "store", 5.0, None),
    ]  # fmt: skip
    assert [row.about for row in back.rows] == ["dot", "store"]


def test_values_of_other_types_are_others() -> None:
    """True is no 1, and 64 no text; 64 and 64.0 are one number."""
    before, after = ({"options": {"data": each, "seed": seed}} for each, seed in ((True, 64), (1, 64.0)))
    found = compare(run(causes=before), run(causes=after))
    assert [(c.name, c.before, c.after) for c in found.causes] == [("data", True, 1)] and not found.same
    assert "changed: option data: True → 1" in found.lines()


def test_a_script_that_failed_is_told_first() -> None:
    """Of either side."""
    found = compare(run(failure="THE SCRIPT FAILED, AssertionError at s.py:8"), run())
    assert found.lines()[0] == "A: THE SCRIPT FAILED, AssertionError at s.py:8."
    assert not compare(run(), run()).lines()[0].startswith("A")


def test_lines_of_all_sorts() -> None:
    """The total, what was run otherwise, phases, what only one has, and what cannot be compared."""
    phases = [table("phase", {"kernel": (kernel,), "launch": (40.0,)}) for kernel in (60.0, 85.5)]
    empty = {sort: table(sort, {}) for sort in COLUMNS}
    before = run(
        tables={**empty, "phase": phases[0], "op": table("op", {"math add": (1, 2.0, 0)})},
        causes={"params": {"tile": 64, "n": 8}, "models": {"builtin.host": "0" * 64}, "configuration": {"a.b": "8 ns"}},
        missing={"link": "run it with --links all"},
    )
    del before.tables["link"]  # type: ignore[attr-defined]  # a dict, by hand
    after = run(
        totals={"time_ns": 125.5, "ops": 4, "hazards": 1},
        tables={**empty, "phase": phases[1], "op": table("op", {"math mul": (2, 3.0, 0)})},
        causes={"params": {"tile": "64", "n": 8}, "models": {"builtin.host": "1" * 64}, "configuration": {"a.c": None}},
        verified=False,
    )
    assert compare(before, after).lines() == [
        "B gave wrong data.",
        "B has 1 hazard: uses of memory that nothing orders.",
        "total time 100 ns → 125.5 ns, +25.5 ns (+25.50 %)",
        "changed: parameter tile: 64 → '64'; configuration a.b: 8 ns → absent;",
        "  configuration a.c: absent → none; 1 more",
        "moved: kernel 60 ns → 85.5 ns (+42.50 %)",
        "",
        "what was run otherwise",
        "  parameter tile: 64 → '64'",
        "  configuration a.b: 8 ns → absent",
        "  configuration a.c: absent → none",
        "  model builtin.host: 000000000000 → 111111111111",
        "",
        "totals",
        "  none → 1  +1    hazards",
        "",
        "phases, 1 moved",
        "  60 ns → 85.5 ns  +25.5 ns  +42.50 %  kernel",
        "",
        "ops, 2 moved",
        "  math mul",
        "    only in B: time 3 ns; ops 2; bytes 0 B",
        "  math add",
        "    only in A: time 2 ns; ops 1; bytes 0 B",
        "",
        "not compared: links (not known of A: run it with --links all)",
    ]


def test_the_same_says_so_and_what_was_not_compared() -> None:
    """A run that is equal as far as both are known."""
    sorts = (
        "kernels, kinds of components, kinds of links, links, ops, kernel lines of the slowest PE, kernel lines of "
        "all PEs, critical path, places on the "
    )
    same, blank, *told = compare(run(), run()).lines()
    assert (same, blank) == ("the same: 100 ns, and no figure moved", "")
    told_as = f"not compared: {sorts}critical paths of launches (not known of A and B: it was not kept)"
    assert " ".join(map(str.strip, told)) == told_as and max(map(len, told)) <= 78


def test_a_difference_counts_beyond_the_mean_of_both_spreads_alone() -> None:
    """Medians are compared, and not the runs themselves, which may be beyond all others; it goes through JSON, too."""
    slow = TimeSpread(110.0, 105.0, 117.0, 8)
    before = run(spread=TimeSpread(101.0, 100.0, 106.0, 8))
    spreads = slow, attrs.evolve(slow, high_ns=116.0)
    within, beyond = (run(totals={"time_ns": 150.0}, spread=each) for each in spreads)
    assert compare(before, within).differs is False
    assert compare(before, within).lines()[2] == (
        "median 101 ns → 110 ns, within the spread of 9 ns: no difference shown"
    )
    found = compare(RunFigures.from_json(json.loads(json.dumps(before.to_json()))), beyond)
    assert found.lines()[2] == "median 101 ns → 110 ns, beyond the spread of 8.5 ns"
    assert (found.differs, found.totals_ns, found.to_json()["differs"]) == (True, (101.0, 110.0), True)
    assert found.to_json()["after"]["spread"] == beyond.spread.to_json()  # type: ignore[union-attr]


def test_the_spread_of_one_run_alone_is_that_of_single_runs() -> None:
    """Both totals are of single runs then, which chance brings as far apart as from the least to the most."""
    plain, shaken = run(), run(totals={"time_ns": 101.0}, spread=TimeSpread(90.0, 89.5, 90.5, 8))
    one, other = compare(plain, shaken), compare(shaken, run(totals={"time_ns": 99.0}))
    assert (one.differs, one.totals_ns) == (False, (100.0, 101.0))
    assert one.spread == "no difference shown within the spread of B, 1 ns; A has no spread: run it with --shake"
    assert (other.differs, other.totals_ns) == (True, (101.0, 99.0))
    assert other.lines()[2] == "beyond the spread of A, 1 ns; B has no spread: run it with --shake"
    none = compare(plain, run(totals={"time_ns": 101.0}))
    assert (none.differs, none.spread, compare(plain, plain).spread) == (None, NOT_KNOWN, "")


def test_what_hardly_moved_is_told_only_where_nothing_else_did() -> None:
    """Less than 0.1 % or 1 ns; what a link is, and what only one run has, always. JSON has all."""
    rows = {"kernel": (60.0,), "launch": (4000.0,), "host": (10.0,)}
    before = run(tables={"phase": table("phase", rows)})
    hardly = {"kernel": (60.9,), "launch": (4003.9,), "host": (10.0,)}
    found = compare(before, run(tables={"phase": table("phase", hardly)}))
    assert [row.name for row in found.rows] == [row.name for row in found.told] == ["launch", "kernel"]
    more = {**hardly, "host": (11.0,)}
    found = compare(before, run(totals={"time_ns": 100.5, "ops": 4}, tables={"phase": table("phase", more)}))
    assert [row.name for row in found.told] == ["host"]
    lines = found.lines()
    at = lines.index("phases, 1 moved")
    assert lines[at + 1 :][:2] == ["  10 ns → 11 ns  +1 ns  +10.00 %  host", "  … and 2 by less than 0.1 % or 1 ns"]
    assert lines[2:4] == [NOT_KNOWN, "moved: host 10 ns → 11 ns (+10.00 %)"]
    assert {row["name"] for row in found.to_json()["rows"]} == {"time_ns", "kernel", "launch", "host"}


def test_links_that_moved_alike_are_told_together() -> None:
    """Of one kind and by one share, or with another rate; their names folded, their figures added up."""
    kinds = {f"pe{number}->hbm": "channel" for number in range(4)} | {"a->b": "wire"}
    tables = []
    for rate, share in ((10.0, 1), (20.0, 2)):
        rows = {f"pe{n}->hbm": (10.0, 5.0, 64 * n // share, 0, 100.0 * n / share, 0.0) for n in range(1, 4)}
        rows["pe0->hbm"] = (10.0, 5.0, 0, 0, 80.0 / share**2, 0.0)
        rows["a->b"], rows["c->d"] = (rate, 5.0, 8, 0, 0.0, 0.0), (rate, 5.0, 8 * share, 0, 0.0, 0.0)
        tables.append({"link": table("link", rows, kinds | {"c->d": "wire"})})
    found = compare(run(tables=tables[0]), run(tables=tables[1]))
    lines = found.lines()
    assert lines[lines.index("links, 6 moved") :][:9] == [
        "links, 6 moved",
        "  2 wires, each bandwidth 10 GB/s → 20 GB/s, +10 GB/s (+100.00 %)",
        "    a->b, c->d",
        "    together bytes 8 B → 16 B, +8 B (+100.00 %)",
        "  3 channels, each -50 %",
        "    pe[1-3]->hbm",
        "    together busy 600 ns → 300 ns, -300 ns (-50.00 %);",
        "    bytes 384 B → 192 B, -192 B (-50.00 %)",
        "  pe0->hbm (channel)",
    ]


def test_the_verdict_names_lines_of_the_slowest_pe() -> None:
    """By how long the slowest PE waited for them, paired by what they say, whatever their numbers are now."""
    result = json.loads(json.dumps(kb.run("vector-add", "tiny", {"n": 64}).to_json()))
    before = figures_of_json(result)
    for each in (*result["lines"], *result["functions"]):
        each["line"] += 2
    longest = result["launches"][0]["path"][0]
    for call in result["launches"][0]["path"]:
        file, _, number = call["line"].rpartition(":")
        call["line"] = f"{file}:{int(number) + 2}" if file else ""
    longest["ns"] += 500.0
    found = compare(before, figures_of_json(result))
    file, _, number = longest["line"].rpartition(":")
    row, = found.of_sort("slowest PE")
    assert (row.name, row.change) == (f"{file}:{int(number) - 2}→{number}", 500.0)
    assert any(line.startswith(f"lines: {row.name} ") for line in found.lines())


def test_the_verdict_on_two_benches_names_them_once() -> None:
    """And not their sources, which are others."""
    sides = [run(causes={"bench": {"bench": name}, "sources": {f"{name}.py": "0" * 64}}) for name in ("one", "two")]
    lines = compare(sides[0], attrs.evolve(sides[1], totals={"time_ns": 100.0, "ops": 5})).lines()
    assert lines[2] == "changed: bench: one → two"


def test_a_function_that_one_run_alone_called_is_no_change_beside_another() -> None:
    """A smaller size may leave a helper out; alone it is what there is to tell."""
    called, fewer = {"k.py:f": "0" * 64, "k.py:g": "1" * 64}, {"k.py:f": "0" * 64}

    def side(ns: float, size: int, sources: dict[str, str]) -> RunFigures:
        causes = {"bench": {"bench": "gemm"}, "params": {"M": size}, "sources": sources}
        return run(totals={"time_ns": ns, "ops": 4}, causes=causes)

    others = side(90.0, 256, fewer), side(90.0, 512, fewer)
    assert [compare(side(100.0, 512, called), other).lines()[1] for other in others] == [
        "changed: parameter M: 512 → 256",
        "changed: source k.py:g: 111111111111 → absent",
    ]
