"""`VENDOR:name` is one of two collectives of one name; an algorithm does that of its own plug-in."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import load_plugins
from tests.conftest import SOURCE_TREE

REPO = Path(__file__).parents[1]
#: A sum at the root, which the second plug-in leaves at the rank after it.
SOURCE = """
from kernbench_ccl.collectives import CollectiveKind, combined
from kernbench_core import AlgorithmEntry, CollectiveEntry


def ends(call, rank):
    return [combined(range(call.world), 0, call.count)] if rank == (call.root + BEHIND) % call.world else None


SUM = CollectiveKind("sum_to", lambda call, rank: call.count, ends, reduces=True, rooted=True, spelling="sumto")


kernbench_api = 1
def kernbench_collectives():
    return [CollectiveEntry("sum_to", "NAME_sums:SUM", "A rank gets the sum, BEHIND behind the root.")]


def kernbench_algorithms():
    return [AlgorithmEntry("NAME.direct_sum_to", "NAME_direct:kernel", "All send to it.")]
"""
BENCH = """
import numpy as np

import kernbench_ccl.distributed as dist


def train(rank, rt, name, behind):
    dist.init_process_group()
    mine, out = rt.tensor(np.full(8, rank + 1, np.float32), name="mine"), rt.empty((8,), "f32", name="out")
    gets = rank == (2 + behind) % 3
    dist.collective(name, 8, out if gets else None, mine, op="sum", root=2)
    if gets:
        rt.check(out, np.full(8, 6), rtol=0, atol=0)
        rt.report(rank=rank)


def bench(rt, name: str, behind: int = 0):
    dist.spawn(train, args=(name, behind))
"""
LEFT_OUT = (
    "collective 'sum_to' is left out: it must be registered once, not by one_sums (source tree) and by two_sums "
    "(source tree); uninstall all but one, or write 'one:sum_to' or 'two:sum_to'."
)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run kernbench with two plug-ins that have a collective of one name; give code and what is on both streams."""
    folder = tmp_path_factory.mktemp("two")
    direct = (REPO / "kernbench_ccl/algorithms/direct_reduce.py").read_text(encoding="utf-8")
    direct = direct.replace('COLLECTIVE = "reduce"', 'COLLECTIVE = "sum_to"')
    (folder / "bench.py").write_text(BENCH)
    (folder / "plain.py").write_text(direct)
    (folder / "of_two.py").write_text(direct.replace('"sum_to"', '"two:sum_to"'))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.chdir(folder)
        for behind, name in enumerate(("one", "two")):
            text = SOURCE.replace("BEHIND", str(behind)).replace("NAME", name)
            (folder / f"{name}_sums.py").write_text(text)
            (folder / f"{name}_direct.py").write_text(direct)
        names = [f"{name} = {name}_sums" for name in ("one", "two")]
        plugins = load_plugins([*SOURCE_TREE, *names], installed=False)

        def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
            capsys.readouterr()
            return (main(list(arguments), plugins), *capsys.readouterr())

        yield call
    for name in ("one_sums", "two_sums", "one_direct", "two_direct"):
        sys.modules.pop(name, None)


def bench(run: Run, capsys: pytest.CaptureFixture[str], name: str, *more: str) -> tuple[int, str, str]:
    machine = ("--topology", "tiny", "--set", "system.sips=3", "--set", "cube.pes=1")
    return run(capsys, "run", "bench.py", "-p", f"name={name}", *machine, "--verify-data", "--json", *more)


def result(found: tuple[int, str, str]) -> Any:
    assert found[0] == 0, found
    return json.loads(found[1])


def test_ranks_call_either_by_its_vendor(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """That of the first ends where its own algorithm leaves it; that of the second would have another rank get it."""
    found = result(bench(run, capsys, "one:sum_to"))
    assert (found["verified"], found["rows"]) == (True, [{"rank": 2}])
    code, _, err = bench(run, capsys, "two:sum_to")
    assert code == 2
    assert "dist.collective('two:sum_to'): output must be a tensor that this rank's rt made, not None" in err
    code, _, err = bench(run, capsys, "sum_to")
    assert code == 6
    assert LEFT_OUT in err


def test_algorithms_do_that_of_their_own_plugin(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Which the first is right for, and the second wrong; a file says which it means."""
    asked = ("ccl", "check", "--ranks", "3", "-j", "1", "--json")
    proved = result(run(capsys, *asked, "one.direct_sum_to"))
    assert proved["proved"]
    code, out, _ = run(capsys, *asked, "two.direct_sum_to")
    assert (code, json.loads(out)["proved"]) == (6, False)
    code, _, err = run(capsys, *asked, "./plain.py")
    assert code == 6
    assert LEFT_OUT in err
    code, out, _ = run(capsys, *asked, "./of_two.py")
    assert (code, json.loads(out)["proved"]) == (6, False)


def test_each_is_checked_by_its_kit(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """With its vendor, whether somebody else has the name or not."""
    only = ("one:sum_to", "states_itself_completely", "has_its_command", "agrees_with_numpy")
    checked = result(run(capsys, "plugins", "check", "one", *only, "--json"))["results"]
    assert {each["entry"] for each in checked if each["sort"] == "collectives"} == {"one:sum_to"}
    assert len(checked) == 9


def test_each_has_a_command_with_its_vendor(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """By its name or by its spelling; the bare name is an error, and all others are there."""
    asked = ("--topology", "tiny", "--ranks", "3", "-b", "1K", "-e", "1K", "-j", "1", "--json")
    for name in ("one:sum_to", "one:sumto"):
        found = result(run(capsys, "ccl", name, *asked))
        assert (found["wrong"], {row["algorithm"] for row in found["rows"]}) == (0, {"one.direct_sum_to"})
    code, _, err = run(capsys, "ccl", "sum_to", *asked)
    assert code == 6
    assert LEFT_OUT in err
    found = result(run(capsys, "ccl", "ccl:all_reduce", *asked, "--algo", "direct"))
    assert {row["algorithm"] for row in found["rows"]} == {"ccl.direct_all_reduce"}
    listed = result(run(capsys, "ccl", "list", "two:sum_to", "--json"))["algorithms"]
    assert [(each["name"], each["collective"], each["method"]) for each in listed] == [
        ("two.direct_sum_to", "two:sum_to", "direct")
    ]
    (Path.cwd() / "ccl.yaml").write_text("collectives: {'one:sum_to': direct, 'ccl:all_reduce': direct}\n")
    found = result(run(capsys, "ccl", "one:sum_to", *asked, "--config", "ccl.yaml"))
    assert {row["algorithm"] for row in found["rows"]} == {"one.direct_sum_to"}
    (Path.cwd() / "ccl.yaml").write_text("collectives: {sum_to: direct}\n")
    code, _, err = run(capsys, "ccl", "one:sum_to", *asked, "--config", "ccl.yaml")
    assert code == 3
    assert f"collectives.sum_to {LEFT_OUT}" in err
