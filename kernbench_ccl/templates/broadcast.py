"""my_algorithm: the root sends its vector along a chain of all ranks, tile by tile.

Run `kernbench ccl check` on this file after every change: it proves the kernel below for many numbers of ranks.
"""

from kernbench_ccl.contract import share

COLLECTIVE = "broadcast"
# It runs on every network. TOPO_NAME_TO_KIND = {"ring": 0, "switch": 1} would name some, and topo_kind on each.


def my_algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    c = tl.collective  # the call: c.dtype, c.root, c.tile, c.network and more
    start, end = share(count, n_pe, pe)  # every PE of a rank does its share of the vector
    place = (rank - c.root) % world  # in the chain, which begins at the root
    for at in range(start, end, c.tile):
        n = min(c.tile, end - at)
        tile = tl.load(in_ptr + at, shape=(n,)) if place == 0 else tl.recv((n,), c.dtype, (rank - 1) % world)
        if place < world - 1:
            tl.send(tile, (rank + 1) % world)
        tl.store(out_ptr + at, tile)


kernel = my_algorithm
