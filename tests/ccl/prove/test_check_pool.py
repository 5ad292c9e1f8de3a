"""Algorithms are proved in several processes or in one, on all networks by one run where that is enough, and told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kernbench_ccl.catalogue import Catalogue, read_file
from kernbench_ccl.prove import Wanted, check, check_all, check_pool
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from tests.ccl.prove.proofs import run_command
from tests.ccl.ring_source import SOURCE, ring

EVERYWHERE = ('{"ring": 0}', '{"ring": 0, "mesh_2d": 1, "switch": 2}')
STARVED = ("tiles(rank - step), tiles(rank - step - 1)", "tiles(rank - step), tiles(rank - step)")


def test_one_run_proves_every_network_that_it_does_not_ask_for(tmp_path: Path) -> None:
    """What is told of the others is the same, and whose run it was."""
    algorithm, _ = ring(tmp_path, EVERYWHERE)
    first, *others = check(algorithm, Wanted([2, 3]))
    assert [ranks.runs for ranks in first.ranks] == [ranks.cases for ranks in first.ranks]
    assert [ranks.alike for ranks in first.ranks] == [None, None]
    for other in others:
        assert [(r.alike, r.runs, r.proved) for r in other.ranks] == [("ring", 0, True)] * 2
        for a, b in zip(first.ranks, other.ranks, strict=True):
            assert (a.cases, a.messages, a.steps, a.slots) == (b.cases, b.messages, b.steps, b.slots)


def test_a_kernel_that_asks_is_run_on_every_network(tmp_path: Path) -> None:
    """And is wrong where it is wrong only."""
    wrong = ("left = (rank + 1) % world,", "left = (rank + 1 + (topo_kind == 2)) % world,")
    algorithm, _ = ring(tmp_path, EVERYWHERE, wrong)
    found = list(check(algorithm, Wanted([3], counts=[3], pes=1)))
    assert [[(r.alike, r.proved) for r in each.ranks] for each in found] == [
        [(None, True)], [(None, True)], [(None, False)],
    ]  # fmt: skip
    assert [each.ranks[0].runs for each in found[:2]] == [found[0].ranks[0].cases] * 2


def test_a_fault_is_told_of_every_network_on_which_it_is(tmp_path: Path) -> None:
    """Each with its own case."""
    algorithm, _ = ring(tmp_path, EVERYWHERE, STARVED)
    found = list(check(algorithm, Wanted([3], counts=[1], pes=1)))
    assert [[fault.case.network.name for fault in each.faults] for each in found] == [["ring"], ["mesh_2d"], ["switch"]]
    assert len({fault.sentence for each in found for fault in each.faults}) == 1


def proved(plugins: Plugins, jobs: int, told: list[str]) -> list[tuple[str, Any]]:
    """Check two algorithms, and return all but the times."""
    names = ("direct_gather", "mesh_all_gather")
    algorithms = [each for name in names for each in Catalogue.of(plugins).open_all(name)]
    wanted = Wanted(range(2, 5), ["mesh_2d", "ring"], counts=[2])
    return [
        (algorithm.name, [(row.network, [(r.world, r.cases, r.messages, r.alike) for r in row.ranks]) for row in rows])
        for algorithm, rows in check_all(algorithms, wanted, jobs, told.append)
    ]


def test_processes_find_the_same_in_the_same_order(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are."""
    one = proved(plugins, 1, [])
    assert [name for name, _ in one] == ["ccl.direct_gather", "ccl.mesh_all_gather"]
    assert [[network for network, _ in rows] for _, rows in one] == [["mesh_2d", "ring"], ["mesh_2d"]]
    assert [world for world, *_ in one[0][1][0][1]] == [2, 3, 4]
    monkeypatch.setattr(check_pool, "_MUCH", 0)
    told: list[str] = []
    assert proved(plugins, 2, told) == one
    line = r"case \d+ of \d+: ccl\.\w+, \d ranks on (\d networks|mesh_2d)"
    assert told and all(re.fullmatch(line, each) for each in told)


def test_progress_says_what_is_proved_of_how_much(plugins: Plugins) -> None:
    """Which algorithm, how many ranks, which network, and which case of how many."""
    told: list[str] = []
    found = proved(plugins, 1, told)
    every = sum(ranks[1] for _, rows in found for _, row in rows for ranks in row)
    assert told[0] == f"case 1 of {every}: ccl.direct_gather, 4 ranks on mesh_2d"
    assert told[-1] == f"case {every} of {every}: ccl.mesh_all_gather, 2 ranks on mesh_2d"
    assert [re.findall(r"case (\d+)", each) for each in told] == [[str(n)] for n in range(1, every + 1)]


def test_what_a_file_does_goes_to_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its path."""
    monkeypatch.setattr(check_pool, "_MUCH", 0)
    path = tmp_path / "ring.py"
    path.write_text(SOURCE)
    ((algorithm, rows),) = check_all([read_file(path)], Wanted([2, 3], counts=[3]), 2)
    assert (algorithm.name, [row.faults for row in rows]) == (str(path), [()])


def test_faults_come_out_of_processes_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With case, place and sentence."""
    algorithm, _ = ring(tmp_path, EVERYWHERE, STARVED)
    here = list(check(algorithm, Wanted([2, 3], counts=[1], pes=1)))
    monkeypatch.setattr(check_pool, "_MUCH", 0)
    ((_, there),) = check_all([algorithm], Wanted([2, 3], counts=[1], pes=1), 2)
    assert here[0].faults and [row.faults for row in there] == [row.faults for row in here]


def test_networks_with_one_outcome_share_a_row(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has them all, with whose run it was."""
    ring(tmp_path, EVERYWHERE)
    path = str(tmp_path / "ring.py")
    assert run_command(plugins, path, "--ranks", "2-3", "--count", "3") == 0
    _, row, alike, _, _ = capsys.readouterr().out.splitlines()
    assert row.startswith("  ring            proved 2-3 ")
    assert alike == "    alike on mesh_2d, switch: it never asks which"
    assert run_command(plugins, path, "--ranks", "2", "--count", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out)["topologies"]
    assert [(each["topology"], each["ranks"][0]["alike"]) for each in found] == [
        ("ring", None), ("mesh_2d", "ring"), ("switch", "ring"),
    ]  # fmt: skip


def test_networks_with_refusals_of_their_own_have_rows_of_their_own(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that nobody takes what is refused for proved."""
    sentence = '"not odd." if world % 2 and network.name == "switch" else None'
    refuses = f"def refuses(world, network):\n    return {sentence}\n\n\n"
    ring(tmp_path, EVERYWHERE, ("def kernel(", f"{refuses}def kernel("))
    assert run_command(plugins, str(tmp_path / "ring.py"), "--ranks", "2-3", "--count", "3") == 0
    _, row, alike, other, refused, _, _ = capsys.readouterr().out.splitlines()
    assert (row[:29], alike) == ("  ring            proved 2-3 ", "    alike on mesh_2d: it never asks which")
    assert (other[:27], refused) == ("  switch          proved 2 ", "    refused 3: not odd.")


def test_several_algorithms_are_summed_up(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """How many cases, by how many runs."""
    assert run_command(plugins, "direct", "--ranks", "3", "--count", "1", "--topology", "ring") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"9 algorithms: \d+ cases by \d+ runs in [\d.]+ m?s", last), last


@pytest.mark.parametrize("jobs", ["0", "-1", "two"])
def test_jobs_must_be_a_number(plugins: Plugins, jobs: str) -> None:
    """Of at least one."""
    with pytest.raises(UsageError) as refused:
        run_command(plugins, "ring", "-j", jobs)
    assert str(refused.value) == f"option -j must be an integer of at least 1, not {jobs!r}."
