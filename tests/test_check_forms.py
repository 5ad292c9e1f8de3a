"""tools/check_forms.py compares closed forms with the idealised machine; here a sample of it, to 64 ranks.

tests/ccl/algorithms/test_forms_by_links.py has the forms of all numbers of ranks without a simulation.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import loaded_tool

NETWORKS = ("ring", "mesh_2d", "torus_2d", "fully_connected", "switch")


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    """Give tools/check_forms.py."""
    with loaded_tool("check_forms") as found:
        yield found


@pytest.mark.parametrize(
    ("name", "network", "size"),
    [
        ("ccl.binomial_tree_broadcast", "switch", 4096),
        ("ccl.dissemination_barrier", "switch", 2),
        ("ccl.halving_doubling_all_gather", "switch", 16384),
        ("ccl.direct_gather", "switch", 65536),
        ("ccl.ring_broadcast", "ring", 4096),
    ],
)
def test_sixty_four_ranks_take_their_form(tool: ModuleType, name: str, network: str, size: int) -> None:
    """Those of few messages, step by step."""
    row = tool.check(tool.Case(name, network, 64, size, False))
    assert row.out is None, row


@pytest.mark.parametrize(("world", "size"), [(3, 16384), (7, 16384), (13, 65536)])
def test_what_others_send_early_holds_up_no_step(tool: ModuleType, world: int, size: int) -> None:
    """Of members that stand for one rank, in messages of a few chunks: no tile goes through the fabric between steps.

    A store or a load between two steps waits for a chunk of the link each, 41 ns of the 2.5 us that three ranks take.
    """
    row = tool.check(tool.Case("ccl.halving_doubling_all_reduce", "fully_connected", world, size, False))
    assert row.time_ns == pytest.approx(row.formula_ns, rel=2e-4)


@pytest.mark.parametrize("world", [14, 15])
def test_small_messages_behind_large_ones_leave_no_link_idle(tool: ModuleType, world: int) -> None:
    """A full message to each of the others, then one of a fifteenth or a seventh of that."""
    row = tool.check(tool.Case("ccl.direct_all_gather", "switch", world, 262144, False))
    assert row.time_ns == pytest.approx(row.formula_ns, rel=2e-4)


@pytest.mark.parametrize("world", [17, 24, 33, 64])
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("method", ["ring", "ring_bidirectional", "direct", "pairwise", "halving_doubling", "torus",
                                    "mesh", "double_binary_tree", "binomial_tree"])  # fmt: skip
def test_many_ranks_take_their_forms(tool: ModuleType, method: str, network: str, world: int) -> None:
    """One collective of each method, as many bytes for a link as keep its messages whole."""
    collective = {"pairwise": "all_to_all", "binomial_tree": "reduce", "double_binary_tree": "broadcast"}.get(
        method, "all_gather"
    )
    cases, _ = tool.cases([world], [128 << 10], [f"{method}:{collective}:{network}"])
    for case in cases:
        assert (row := tool.check(case)).out is None, row


def test_the_tool_tells_the_worst_and_where_there_is_none(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each network and way of running, then why others have no form; nothing is out, so the code is 0."""
    only = ["--ranks", "2,9", "--size", "4K", "-j", "1"]  # a ring goes along the links of all but odd meshes
    only += [f"--only=ring:all_gather:{network}" for network in ("ring", "mesh_2d", "torus_2d")]
    assert tool.main(only) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line.split()[:5] for line in lines[:2]] == [
        ["ccl.ring_all_gather", "ring", "steps", "2", "cases"],
        ["ccl.ring_all_gather", "ring", "pipelined", "2", "cases"],
    ]
    shared = "messages of a step share links of this network, and no form says how they take turns"
    assert [line for line in lines if line.startswith("no form")] == [
        f"no form: ccl.ring_all_gather on mesh_2d of 9 ranks: {shared}",
    ]
    assert err == "10 cases, 0 out of 1%\n"
    assert tool.main([*only[:-2], "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 4 and all(row["out"] is None and abs(row["error"]) < 0.01 for row in rows)


def test_rows_are_printed_as_they_come_and_a_terminal_is_told_of_each(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of an algorithm stands before a case of the next is run, and the largest begins."""
    told: list[str] = []

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            told.extend(part for part in text.replace("\r\x1b[K", "").splitlines() if part)
            return len(text)

    def check(case: Any) -> Any:
        told.append(f"run {case.world}")
        return tool.Row(case, 1000.0, 1000.0, 900.0)

    def case(method: str, world: int) -> Any:
        return tool.Case(f"ccl.{method}_all_gather", "ring", world, 4096, False)

    asked = [case("direct", 2), case("ring", 3), case("direct", 3), case("ring", 4)]
    monkeypatch.setattr(tool, "check", check)
    monkeypatch.setattr(tool, "cases", lambda *_: (asked, {}))
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr("sys.stdout", Terminal())
    assert tool.main(["-j", "1"]) == 0
    assert [each.split(" ring  ")[0].rstrip() for each in told] == [
        "0 of 4 cases",
        "run 4",
        "1 of 4 cases, ccl.ring_all_gather on ring",
        "run 3",
        "2 of 4 cases, ccl.ring_all_gather on ring",
        "ccl.ring_all_gather",
        "run 3",
        "3 of 4 cases, ccl.direct_all_gather on ring",
        "run 2",
        "4 of 4 cases, ccl.direct_all_gather on ring",
        "ccl.direct_all_gather",
        "4 cases, 0 out of 1%",
    ]


def test_few_ranks_have_more_sizes(tool: ModuleType) -> None:
    """Step by step and pipelined each; vectors of PEs are a sixteenth of it, and what is asked for is what is run."""
    kib = 1 << 10

    def sizes(world: int, name: str, *asked: int) -> list[int]:
        found, _ = tool.cases([world], asked, [f"{name}:all_reduce:ring"])
        assert [case.pipeline for case in found] == [False, True] * (len(found) // 2)
        return [case.size // kib for case in found[::2]]

    assert sizes(9, "ring") == sizes(16, "ring") == [16, 256, 1024]
    assert sizes(10, "ring") == sizes(32, "ring") == [256]
    assert sizes(3, "hierarchical") == [1, 16, 64] and sizes(10, "hierarchical") == [16]
    assert sizes(10, "ring", 4 * kib, 8 * kib) == [4, 8]


@pytest.mark.parametrize(
    ("time_ns", "formula_ns", "pipeline", "out"),
    [
        (1009.0, 1000.0, False, None),
        (1011.0, 1000.0, False, "above its form"),
        (1011.0, 1000.0, True, "above its form"),
        (991.0, 1000.0, False, None),
        (989.0, 1000.0, False, "below its form"),
        (989.0, 1000.0, True, None),
        (899.0, 1000.0, True, "below its bound"),
        (950.0, 890.0, False, "a form below the bound"),
    ],
)
def test_what_is_out(
    tool: ModuleType, time_ns: float, formula_ns: float, pipeline: bool, out: str | None, monkeypatch: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """One per cent either way, pipelined above only; and nothing is below the bound of 900 ns."""
    case = tool.Case("ccl.ring_all_gather", "ring", 3, 4096, pipeline)
    row = tool.Row(case, time_ns, formula_ns, 900.0)
    assert row.out == out
    monkeypatch.setattr(tool, "checked", lambda asked, workers: [row])
    assert tool.main(["--ranks", "3", "--only", "ring:all_gather:ring"]) == (out is not None)
    assert f"OUT: {out}" in capsys.readouterr().out or out is None


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--ranks", "1-3"], "argument --ranks: must be numbers of at least 2, as 2-9,16, not '1-3'"),
        (["--ranks", "few"], "argument --ranks: must be numbers of at least 2, as 2-9,16, not 'few'"),
        (["--ranks", "9-2"], "argument --ranks: must be numbers of at least 2, as 2-9,16, not '9-2'"),
        (["--size", "wide"], "argument --size: must be a size, as 64K, not 'wide'"),
        (
            ["--ranks", "3", "--only", "dirct"],
            "--only must name an algorithm of these ranks, as direct:all_reduce:ring, not ['dirct']",
        ),
    ],
)
def test_what_is_asked_for_is_checked(
    tool: ModuleType, capsys: pytest.CaptureFixture[str], asked: list[str], sentence: str
) -> None:
    """A usage error, in a sentence."""
    with pytest.raises(SystemExit) as caught:
        tool.main(asked)
    assert caught.value.code == 2 and capsys.readouterr().err.endswith(f"error: {sentence}\n")
