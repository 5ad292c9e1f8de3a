"""A plug-in's collective whose record names a function has it in dist, in runs of that plug-in alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_ccl.distributed as dist
from kernbench_core.errors import PluginError
from kernbench_core.plugins import Plugins, load_plugins
from tests.ccl.ranks import run
from tests.conftest import SOURCE_TREE

MODULE = """
from kernbench_ccl.collectives import CollectiveKind, moved
from kernbench_ccl.contract import kernel_args
from kernbench_core import AlgorithmEntry, CollectiveEntry
kernbench_api = 1
COLLECTIVE = "{name}"
TOPO_NAME_TO_KIND = {{"*": 0}}
def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    if pe == 0:
        tl.send(tl.load(in_ptr, shape=(count,)), (rank + 1) % world)
        tl.store(out_ptr, tl.recv((count,), tl.collective.dtype, (rank - 1) % world))
KIND = CollectiveKind(
    "{name}", lambda call, rank: call.count, lambda call, rank: [moved((rank - 1) % call.world, 0, call.count)],
    function={function!r},
)
def kernbench_collectives():
    return [CollectiveEntry("{name}", f"{{__name__}}:KIND", "To the next.")]
def kernbench_algorithms():
    return [AlgorithmEntry("{name}.plain_{name}", f"{{__name__}}:kernel", "To the next.")]
"""


def loaded(folder: Path, patch: pytest.MonkeyPatch, *functions: object) -> Plugins:
    """Load a plug-in for each function, with a collective turn0, turn1, … that names it."""
    patch.syspath_prepend(folder)
    points = []
    for number, function in enumerate(functions):
        module = f"{folder.name.replace('-', '_')}_{number}"
        (folder / f"{module}.py").write_text(MODULE.format(name=f"turn{number}", function=function))
        points.append(f"turn{number} = {module}")
    return load_plugins([*SOURCE_TREE, *points], installed=False)


def test_ranks_call_it_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the arguments of dist.collective; where it is not registered it is not there."""

    def program(rank: int, rt: Any) -> str:
        dist.init_process_group()
        x = rt.tensor(np.full(8, rank, np.float32), name="x")
        out = rt.empty((8,), "f32", name="out")
        assert hasattr(dist, "turn_around") and not hasattr(dist, "turn_back")
        work = dist.turn_around(8, out, x, async_op=True)
        work.wait()
        rt.check(out, np.full(8, (rank - 1) % 3), rtol=0, atol=0)
        return str(dist.turn_around.__name__)

    assert run(program, 3, plugins=loaded(tmp_path, monkeypatch, "turn_around"))[1] == ["turn_around"] * 3
    assert not hasattr(dist, "turn_around")


def test_one_that_two_name_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are told, and asking whether it is there is no error."""

    def program(rank: int, rt: Any) -> str:
        rt.zeros((1,), "f32")
        assert not hasattr(dist, "turn_around")
        with pytest.raises(AttributeError) as caught:
            dist.turn_around  # noqa: B018 - looking is what is tested
        return str(caught.value)

    plugins = loaded(tmp_path, monkeypatch, "turn_around", "turn_around")
    assert set(run(program, 2, plugins=plugins, verify=False)[1]) == {
        "dist.turn_around must be the function of one collective, not of 'turn0' and 'turn1'; use dist.collective."
    }


@pytest.mark.parametrize("function", ["turn-around", "_turn", 7])
def test_a_name_that_no_function_has_is_a_fault_of_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: object
) -> None:
    """Told when the record is used."""
    from kernbench_ccl.catalogue import Catalogue

    with pytest.raises(PluginError) as caught:
        Catalogue.of(loaded(tmp_path, monkeypatch, function)).collectives["turn0"]
    must = f'must have the name of a function as function, or "" for none, not {function!r}'
    whose = f"{tmp_path.name.replace('-', '_')}_0 (source tree)"
    assert str(caught.value) == f"collective 'turn0' of {whose} {must}; repair or reinstall {whose}."


def test_asking_never_raises_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the plug-ins that are wanted cannot be loaded."""
    monkeypatch.setenv("KERNBENCH_NO_PLUGIN", "nobody")
    assert not hasattr(dist, "all_redcue")
