"""tools/one_load.py counts files and returns as a reader of the way meets them."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.conftest import loaded_tool
from tests.tool_runs import TOOLS


def test_a_file_counts_once_and_each_return_to_it() -> None:
    """Functions of one file in a row are one visit."""
    with loaded_tool("one_load") as tool:
        assert tool.counts([]) == (0, 0)
        assert tool.counts([("a", "f"), ("a", "g"), ("b", "f"), ("a", "h"), ("c", "f"), ("b", "g")]) == (3, 2)


def test_the_way_until_a_load_is_issued_is_short() -> None:
    """At most 28 files and 20 returns; the way until it is served goes on from there."""
    printed = subprocess.run([sys.executable, str(TOOLS / "one_load.py")], capture_output=True, text=True, check=True)
    issued, served = (tuple(map(int, re.findall(r"\d+", line))) for line in printed.stdout.splitlines())
    assert 10 < issued[0] <= 28 and issued[1] <= 20, printed.stdout
    assert served > issued
