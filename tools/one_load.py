"""Count the files that one `tl.load` passes, and how often it comes back to one that it had left.

    python tools/one_load.py [--way]

A kernel on preset `tiny` loads a block twice, in the pure-Python form; the second load is traced, as what is kept
between loads is there by then. A file counts where a function of it is called, and each function once, where a load
comes to it first: so a reader meets them. Told are two stretches: until the command is issued (the PE's CPU sends it),
and until it is served (the kernel goes on). `--way` lists the functions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any

if __name__ == "__main__":
    os.environ["KERNBENCH_PURE"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from kernbench_builtin.door import launch

ROOT = Path(__file__).resolve().parent.parent
#: One chunk of memory holds the block.
ELEMENTS = 8
#: Where a command is issued: the first step that the load takes outside of its PE's CPU.
ISSUED = "PeCpu.send_command"
Step = tuple[str, str]


def passed() -> list[Step]:
    """Return the file and the name of each function of kernbench that one load calls, once, in order."""
    steps: dict[Step, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(ROOT) and (inside := str(file.relative_to(ROOT)))[:9] == "kernbench":
            steps.setdefault((inside, frame.f_code.co_qualname))

    def kernel(x: Any, y: Any, tl: Any) -> None:
        pointers = x + tl.arange(0, ELEMENTS)
        tl.load(pointers)
        sys.setprofile(note)
        tile = tl.load(pointers)
        sys.setprofile(None)
        tl.store(y + tl.arange(0, ELEMENTS), tile)

    data = np.arange(ELEMENTS, dtype="f4")
    found = launch(kernel, data, np.zeros_like(data), topology="tiny", grid=(1,))
    assert np.array_equal(found.outputs["y"], data)
    return list(steps)


def counts(steps: Iterable[Step]) -> tuple[int, int]:
    """Return how many files some steps are in, and how many of them go back to a file that was left."""
    files: list[str] = []
    back = 0
    for file, _ in steps:
        if not files or file != files[-1]:
            back += file in files
            files.append(file)
    return len(set(files)), back


if __name__ == "__main__":
    way = passed()
    if sys.argv[1:] == ["--way"]:
        print(*[f"{file}  {name}" for file, name in way], sep="\n")
    until = list(takewhile(lambda step: step[1] != ISSUED, way))
    for name, stretch in (("issued", until), ("served", way)):
        print("until it is {}: {} files, {} returns to a file that was left".format(name, *counts(stretch)))
