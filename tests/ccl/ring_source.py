"""A ring all-reduce for the tests to break: each `broken(**changes)` replaces one line by another."""

from __future__ import annotations

from pathlib import Path

from kernbench_ccl.catalogue import Algorithm, read_file

SOURCE = '''
from kernbench_ccl.contract import kernel_args as kernel_args, share

COLLECTIVE = "all_reduce"
TOPO_NAME_TO_KIND = {"ring": 0}


def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    c = tl.collective
    start, end = share(count, n_pe, pe)
    right, left = (rank + 1) % world, (rank - 1) % world

    def tiles(part):
        low, high = share(end - start, world, part % world)
        return [(start + at, min(c.tile, high - at)) for at in range(low, high, c.tile)]

    def pairs(going, coming):
        for number in range(max(len(going), len(coming))):
            yield (
                going[number] if number < len(going) else None,
                coming[number] if number < len(coming) else None,
            )

    for step in range(world - 1):
        source = in_ptr if step == 0 else out_ptr
        for go, come in pairs(tiles(rank - step), tiles(rank - step - 1)):
            if go:
                tl.send(tl.load(source + go[0], shape=(go[1],)), right)  # S1
            if come:
                got = tl.recv((come[1],), c.dtype, left)  # R1
                total = c.combine(tl, got, tl.load(in_ptr + come[0], shape=(come[1],)))  # C
                total = c.finish(tl, total) if step == world - 2 else total  # F
                tl.store(out_ptr + come[0], total)  # W1
    for step in range(world - 1):
        for go, come in pairs(tiles(rank + 1 - step), tiles(rank - step)):
            if go:
                tl.send(tl.load(out_ptr + go[0], shape=(go[1],)), right)  # S2
            if come:
                tl.store(out_ptr + come[0], tl.recv((come[1],), c.dtype, left))  # W2
'''


def line_of(text: str, mark: str) -> int:
    """Return the line of the source that a comment marks."""
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(f"# {mark}"))


def ring(folder: Path, *changes: tuple[str, str]) -> tuple[Algorithm, dict[str, str]]:
    """Write a ring all-reduce with these texts replaced, and return it with `file:line` of each marked line."""
    text = SOURCE
    for old, new in changes:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    path = folder / "ring.py"
    path.write_text(text)
    marks = {line.rpartition("# ")[2].strip() for line in text.splitlines() if "  # " in line}
    return read_file(path), {mark: f"{path}:{line_of(text, mark)}" for mark in sorted(marks)}
