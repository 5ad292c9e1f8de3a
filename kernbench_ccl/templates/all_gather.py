"""my_algorithm: every rank sends what it brings to every other rank.

Run `kernbench ccl check` on this file after every change: it proves the kernel below for many numbers of ranks.
"""

from kernbench_ccl.contract import share

COLLECTIVE = "all_gather"
# It runs on every network. TOPO_NAME_TO_KIND = {"ring": 0, "switch": 1} would name some, and topo_kind on each.


def my_algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    c = tl.collective  # the call: c.dtype, c.tile, c.network and more
    start, end = share(count, n_pe, pe)  # every PE does its share of each rank's part
    for at in range(start, end, c.tile):
        n = min(c.tile, end - at)
        mine = tl.load(in_ptr + at, shape=(n,))
        tl.store(out_ptr + rank * count + at, mine)
        # To send one tile and then receive one keeps queues short.
        for distance in range(1, world):
            peer, other = (rank + distance) % world, (rank - distance) % world
            tl.send(mine, peer)
            tl.store(out_ptr + other * count + at, tl.recv((n,), c.dtype, other))


kernel = my_algorithm
