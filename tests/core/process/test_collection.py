"""Cyclic garbage: not looked for while something is built, nor at the end of a command, which loses nothing by that."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from kernbench_core.process.collection import few_collections, no_automatic_collection

_LEFT_OPEN = """
import gc, sys
from kernbench_core.process.collection import end_without_collection
class Held: pass
held = Held()
held.itself, held.file = held, open(sys.argv[1], "w")
held.file.write("in a cycle")
del held
kept = open(sys.argv[2], "wb")
kept.write(b"in a global")
end_without_collection()
print(gc.get_freeze_count() > 1000)
"""


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


def test_files_that_are_left_open_at_the_end_are_whole(tmp_path: Path) -> None:
    files = [tmp_path / "cycle", tmp_path / "global"]
    done = subprocess.run(
        [sys.executable, "-c", _LEFT_OPEN, *map(str, files)], capture_output=True, text=True, check=True
    )
    assert [file.read_text() for file in files] == ["in a cycle", "in a global"]
    assert done.stdout == "True\n"


def test_fewer_collections_are_for_a_while_and_never_more() -> None:
    """The threshold of the youngest objects is raised, never lowered, and is back whatever happens in between."""
    before = gc.get_threshold()
    with pytest.raises(KeyError), few_collections(before[0] + 5):
        assert gc.get_threshold() == (before[0] + 5, *before[1:])
        with few_collections(1):
            assert gc.get_threshold()[0] == before[0] + 5
        raise KeyError
    assert gc.get_threshold() == before
