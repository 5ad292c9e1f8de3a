"""Cyclic garbage: not looked for while something is built that is kept."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from kernbench_core.process.collection import no_automatic_collection


@pytest.mark.parametrize("was_on", [True, False])
def test_collection_is_as_before_whatever_happens_in_between(was_on: bool) -> None:
    before = gc.isenabled()
    (gc.enable if was_on else gc.disable)()
    try:
        with pytest.raises(KeyError), no_automatic_collection(), no_automatic_collection():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is was_on
    finally:
        (gc.enable if before else gc.disable)()


_PASSED_OVER = """
import gc, weakref
from kernbench_core.process.collection import no_automatic_collection
class Node: pass
looks = []
gc.callbacks.append(lambda phase, info: looks.append(info["generation"]) if phase == "start" else None)
def block(cycles):
    with no_automatic_collection():
        first = Node()
        first.nodes = []
        for _ in range(cycles):
            node = Node()
            node.itself = node
            first.nodes.append(node)
        first.itself = first
        return weakref.ref(first)
gc.collect()
if FREEZE:
    gc.freeze()
before = gc.get_freeze_count()
looks.clear()
garbage = block(100_000)
kept = [[] for _ in range(10)]
seen = len(looks)
rounds = 0
while garbage() is not None and rounds < 30:
    rounds += 1
    block(100_000)
print(seen, 0 < rounds < 30, gc.get_freeze_count() == before)
"""


@pytest.mark.parametrize("freeze", [False, True])
def test_what_was_made_without_looks_is_old_and_gone_through_when_there_is_much(freeze: bool) -> None:
    """Nothing is looked at just behind a block, garbage goes all the same in the end, and what is frozen stays so."""
    program = _PASSED_OVER.replace("FREEZE", str(freeze))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found, *rest = done.stdout.split()
    assert rest == ["True", "True"]
    assert (int(found) > 0) is freeze


_LEFT = """
import gc, weakref
from kernbench_core.process.collection import garbage_left
class Node: pass
def circle():
    node = Node()
    node.itself = node
    return weakref.ref(node)
gc.collect()
gc.disable()
before = circle()
with garbage_left():
    inside = circle()
    with garbage_left():
        nested = circle()
    there = nested() is not None
print(before() is not None, inside() is None, nested() is None, there, gc.isenabled(), gc.get_freeze_count())
gc.enable()
with garbage_left():
    print(gc.isenabled())
print(gc.isenabled())
"""


def test_garbage_of_a_block_is_collected_alone() -> None:
    """What lay around stays, a block in a block leaves it to the outer one, and all is as it was."""
    done = subprocess.run([sys.executable, "-c", _LEFT], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True True True True False 0\nFalse\nTrue\n", "")
