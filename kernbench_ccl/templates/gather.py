"""my_algorithm: every rank sends what it brings to the root.

Run `kernbench ccl check` on this file after every change: it proves the kernel below for many numbers of ranks.
"""

from kernbench_ccl.contract import share

COLLECTIVE = "gather"
# It runs on every network. TOPO_NAME_TO_KIND = {"ring": 0, "switch": 1} would name some, and topo_kind on each.


def my_algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    c = tl.collective  # the call: c.dtype, c.root, c.tile, c.network and more
    start, end = share(count, n_pe, pe)  # every PE does its share of each rank's part
    for at in range(start, end, c.tile):
        n = min(c.tile, end - at)
        mine = tl.load(in_ptr + at, shape=(n,))
        if rank != c.root:
            tl.send(mine, c.root)
            continue
        tl.store(out_ptr + rank * count + at, mine)
        for distance in range(1, world):
            other = (rank + distance) % world
            tl.store(out_ptr + other * count + at, tl.recv((n,), c.dtype, other))


kernel = my_algorithm
