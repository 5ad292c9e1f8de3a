"""`kernbench ccl list`: every registered algorithm, with what it runs on."""

from __future__ import annotations

import json

import pytest

from kernbench_ccl.plugin import ALGORITHMS
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins


def listed(plugins: Plugins, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what the command prints."""
    assert main(["ccl", "list", *arguments], plugins) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_every_algorithm_is_listed_once(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """With its collective, networks, ranks, sentence, provider and file."""
    found = json.loads(listed(plugins, capsys, "--json"))
    assert found["schema"] == "kernbench.ccl.algorithms/1"
    algorithms = {each["name"]: each for each in found["algorithms"]}
    assert sorted(algorithms) == sorted(plugins.of(ALGORITHMS)) and len(found["algorithms"]) == len(algorithms)
    doubling = algorithms["ccl.halving_doubling_all_gather"]
    assert doubling["ranks"] == [2, 4, 8, 16]
    assert doubling["file"].endswith("kernbench_ccl/algorithms/halving_doubling_all_gather.py")
    mesh = algorithms["ccl.mesh_all_reduce"]
    assert (mesh["method"], mesh["collective"], mesh["networks"]) == ("mesh", "all_reduce", ["mesh_2d"])
    assert (mesh["ranks"], mesh["contributors"]) == ([*range(2, 18)], ["sip"])
    assert mesh["provider"] == str(plugins.of(ALGORITHMS).provider("ccl.mesh_all_reduce"))


def test_the_text_says_what_each_is_limited_to(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each where it fits; nothing is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = listed(plugins, capsys, "all_gather").splitlines()
    assert lines[0] == "all_gather"
    text = " ".join(" ".join(lines).split())
    assert "direct Every rank sends its part to every other. " in text
    assert "mesh Rows and columns of a 2-D mesh, both orders at the same time. [on mesh_2d]" in text
    assert "[for 2, 4, 8, 16, … ranks]" in text
    assert listed(plugins, capsys, "alltoall") == listed(plugins, capsys, "all_to_all")
    assert max(map(len, listed(plugins, capsys).splitlines())) <= 80


def test_a_collective_that_is_none_is_refused(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """With the closest one."""
    assert main(["ccl", "list", "al_redce"], plugins) == 2
    assert capsys.readouterr().err == (
        "error: collective must be one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, "
        "gather, scatter, send_recv, barrier, not 'al_redce'. Did you mean 'all_reduce'?\n"
    )
