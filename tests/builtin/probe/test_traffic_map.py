"""Permutations from a file: one line a router, and every fault of a file at once, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.probe.traffic_map import read_permutation
from kernbench_core.cli import main
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.plugins import Plugins
from tests.core.mesh_rig import make_mesh


def written(folder: Path, text: str) -> str:
    file = folder / "map.txt"
    file.write_text(text, encoding="utf-8")
    return str(file)


@given(order=st.permutations(range(6)), lines=st.permutations(range(6)))
def test_what_is_written_is_what_is_read(tmp_path_factory, order: list[int], lines: list[int]) -> None:
    name = [f"r{place // 3}c{place % 3}" for place in range(6)]
    text = "# who sends to whom\n\n" + "".join(f"  {name[s]} mesh.{name[order[s]]}  # line\n" for s in lines)
    found = read_permutation(written(tmp_path_factory.mktemp("map"), text), make_mesh(2, 3))
    assert found.table.tolist() == order


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    file = written(tmp_path, "r0c0 r0c1\nr0c1\nr0c1 r9c9\nr0c0 r1c0\nr1c0 r0c1\n")
    with pytest.raises(ConfigError) as caught:
        read_permutation(file, make_mesh(2, 2))
    assert list(caught.value.problems) == [
        f"{file}:2: must be a router and the one that it sends to, as 'r0c0 r1c1', not 'r0c1'.",
        f"{file}:3: must name routers from r0c0 to r1c1, not 'r9c9'.",
        f"{file}:4: must be the only line in which r0c0 sends, but line 1 is one, too.",
        f"{file}:5: must be the only line in which r0c1 is sent to, but line 1 is one, too.",
    ]


def test_every_router_must_send(tmp_path: Path) -> None:
    file = written(tmp_path, "r0c0 r0c0\n")
    with pytest.raises(ConfigError) as caught:
        read_permutation(file, make_mesh(3, 3))
    assert list(caught.value.problems) == [
        f"{file}: must have a line for each of the 9 routers, but 8 have none: r0c1, r0c2, r1c0, r1c1, r1c2, …."
    ]


def test_few_routers_that_do_not_send_are_named(tmp_path: Path) -> None:
    """All of them; a byte order mark before the first line is none of its words."""
    file = written(tmp_path, "\ufeffr0c0 r0c1\n")
    with pytest.raises(ConfigError) as caught:
        read_permutation(file, make_mesh(2, 2))
    assert list(caught.value.problems) == [
        f"{file}: must have a line for each of the 4 routers, but 3 have none: r0c1, r1c0, r1c1."
    ]


@pytest.mark.parametrize(("data", "reason"), [(None, "no such file or directory"), (b"\xff\xfe\x00", "it is no text")])
def test_what_cannot_be_read_is_refused(tmp_path: Path, data: bytes | None, reason: str) -> None:
    file = tmp_path / "map.txt"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_permutation(str(file), make_mesh(2, 2))
    assert str(caught.value) == f"--permutation must name a file of text, not {str(file)!r}: {reason}."


def test_a_file_goes_with_its_pattern_only(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "r0c0 r0c1\nr0c1 r0c0\n")
    small = ["--set", "mesh.rows=1", "--set", "mesh.columns=2", "--measure", "50", "--load", "0.3"]
    assert main(["probe", "--traffic", "permutation", "--permutation", file, *small], plugins) == 0
    assert f"permutation ({file}) traffic, packets of 1 flit (32 B), seed 0" in capsys.readouterr().out
    assert main(["probe", "--traffic", "uniform", "--permutation", file, *small], plugins) == 2
    told = "error: option --permutation must be given together with --traffic permutation, not with uniform.\n"
    assert capsys.readouterr().err == told
