"""A collective that the example plug-in brings, called by ranks in a bench."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins
from tests.conftest import SOURCE_TREE

REPO = Path(__file__).parents[1]
BENCH = '''
import numpy as np

import kernbench_ccl.distributed as dist


def train(rank, rt, dtype, wrong):
    dist.init_process_group()
    n, world = 40, dist.get_world_size()
    vectors = (np.arange(world * n).reshape(world, n) % 61).astype(dtype)
    mine = rt.tensor(vectors[rank], name="mine")
    halo = rt.empty((2, n), mine.dtype, name="halo")
    if wrong and rank == 0:
        exec(wrong)
    before = rt.now
    work = dist.collective("neighbour_exchange", n, halo, mine, async_op=True)
    work.wait()
    right = np.stack([np.roll(vectors, 1, axis=0)[rank], np.roll(vectors, -1, axis=0)[rank]])
    rt.check(halo, right, rtol=0, atol=0)
    rt.report(rank=rank, took=rt.now - before)


def bench(rt, dtype: str = "float32", wrong: str = ""):
    dist.spawn(train, args=(dtype, wrong))
'''


@pytest.fixture(scope="module")
def plugins() -> Iterator[Plugins]:
    """Load the plug-ins of this tree, the example among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPO / "plugins_example")
        yield load_plugins([*SOURCE_TREE, "example = kernbench_example.plugin"], installed=False)


def run(plugins: Plugins, folder: Path, *args: str, sips: int = 4) -> int:
    (folder / "halo.py").write_text(BENCH)
    machine = ("--topology", "tiny", "--set", f"system.sips={sips}", "--set", "cube.pes=2")
    return main(["run", str(folder / "halo.py"), *machine, "--verify-data", *args], plugins)


@pytest.mark.parametrize(("sips", "dtype"), [(2, "float16"), (3, "int32"), (4, "float32")])
def test_every_rank_gets_what_numpy_rolls_to_it(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str], sips: int, dtype: str
) -> None:
    """In simulated time, of at least the latency of a link."""
    assert run(plugins, tmp_path, "-p", f"dtype={dtype}", "--json", sips=sips) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verified"] is True
    assert [row["rank"] for row in found["rows"]] == list(range(sips))
    assert all(row["took"] >= 500 for row in found["rows"])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("dist.collective('neighbor', n, halo, mine)",
         "dist.collective: name must be a registered collective of a plug-in, not 'neighbor'. Did you mean "
         "'neighbour_exchange'?"),
        ("dist.collective('all_reduce', n, halo, mine)",
         "dist.collective: name must be a collective of a plug-in, not 'all_reduce'; call its own function of dist."),
        ("dist.collective('neighbour_exchange', 0, halo, mine)",
         "dist.collective('neighbour_exchange'): count must be a number of elements from 1, not 0."),
        ("dist.collective('neighbour_exchange', n, halo, mine, root=0)",
         "dist.collective('neighbour_exchange'): root must be left out, as neighbour_exchange has none, not 0."),
        ("dist.collective('neighbour_exchange', n, halo, mine, op='sum')",
         "dist.collective('neighbour_exchange'): op must be left out, as it reduces nothing, not 'sum'."),
        ("dist.collective('neighbour_exchange', n, mine, halo)",
         "dist.collective('neighbour_exchange'): output 'mine' must have 80 elements, for a count of 40 on rank 0, not "
         "40; correct its shape."),
        ("dist.collective('neighbour_exchange', n, halo, halo[1:2])",
         "dist.collective('neighbour_exchange'): output and input must not share memory; make one with rt.empty."),
        ("dist.collective('neighbour_exchange', n, halo)",
         "dist.collective('neighbour_exchange'): input must be a tensor that this rank's rt made, not None; rt.tensor "
         "makes one."),
        ("dist.collective('neighbour_exchange', n, halo, rt.empty((40,), 'int8', name='odd'))",
         "dist.collective('neighbour_exchange'): output 'halo' must have the dtype of input 'odd', int8, not f32; cast "
         "one in a kernel."),
    ],
)  # fmt: skip
def test_a_wrong_call_is_told_in_a_sentence(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str, sentence: str
) -> None:
    assert run(plugins, tmp_path, "-p", f"wrong={wrong}") == 2
    assert sentence in capsys.readouterr().err


SUM = '''
from kernbench_ccl.collectives import CollectiveKind, combined
from kernbench_core import AlgorithmEntry, CollectiveEntry


def ends(call, rank):
    return [combined(range(call.world), 0, call.count)] if rank == call.root else None


SUM = CollectiveKind("sum_to", lambda call, rank: call.count, ends, reduces=True, rooted=True)


kernbench_api = 1
def kernbench_collectives():
    return [CollectiveEntry("sum_to", "sum_plugin:SUM", "One rank gets the sum.")]


def kernbench_algorithms():
    return [AlgorithmEntry("acme.direct_sum_to", "direct_sum_to:kernel", "All send to the root.")]
'''
OF_THE_ROOT = '''
import numpy as np

import kernbench_ccl.distributed as dist


def train(rank, rt, given):
    dist.init_process_group()
    mine, out = rt.tensor(np.full(8, rank + 1, np.float32), name="mine"), rt.empty((8,), "f32", name="out")
    dist.collective("sum_to", 8, out if rank == given.get("root") else None, mine, **given)
    if rank == given["root"]:
        rt.check(out, np.full(8, 6 if given["op"] == "sum" else 3), rtol=0, atol=0)
        rt.report(rank=rank)


def bench(rt, root: int = 2, op: str = "sum"):
    dist.spawn(train, args=({"root": root, "op": op or None},))
'''


def test_a_collective_that_reduces_to_a_root_takes_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Core's reduce under another name: 1 + 2 + 3 at the root, or their greatest."""
    source = (REPO / "kernbench_ccl/algorithms/direct_reduce.py").read_text(encoding="utf-8")
    (tmp_path / "direct_sum_to.py").write_text(source.replace('COLLECTIVE = "reduce"', 'COLLECTIVE = "sum_to"'))
    (tmp_path / "sum_plugin.py").write_text(SUM)
    (tmp_path / "rooted.py").write_text(OF_THE_ROOT)
    monkeypatch.syspath_prepend(tmp_path)
    found = load_plugins([*SOURCE_TREE, "acme = sum_plugin"], installed=False)
    how = ["run", str(tmp_path / "rooted.py"), "--topology", "tiny", "--set", "system.sips=3", "--verify-data"]
    for given in (["-p", "root=2"], ["-p", "root=0", "-p", "op=max"]):
        assert main([*how, *given, "--json"], found) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["verified"], [row["rank"] for row in result["rows"]]) == (True, [int(given[1][-1])])
    assert main([*how, "-p", "op="], found) == 2
    assert "dist.collective('sum_to'): op must be given, as it reduces, not None." in capsys.readouterr().err
    assert main([*how, "-p", "root=5"], found) == 2
    told = "dist.collective('sum_to'): root must be a rank of the group 'world', one of [0, 1, 2], not 5."
    assert told in capsys.readouterr().err


def test_ranks_that_call_different_collectives_are_told(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(plugins, tmp_path, "-p", "wrong=dist.all_reduce(mine)") != 0
    told = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert "all_reduce" in told and "collective('neighbour_exchange')" in told
