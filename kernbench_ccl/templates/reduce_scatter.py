"""my_algorithm: every rank is sent its part of every other rank's vector, and reduces them.

Run `kernbench ccl check` on this file after every change: it proves the kernel below for many numbers of ranks.
"""

from kernbench_ccl.contract import share

COLLECTIVE = "reduce_scatter"
# It runs on every network. TOPO_NAME_TO_KIND = {"ring": 0, "switch": 1} would name some, and topo_kind on each.


def my_algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    c = tl.collective  # the call: c.dtype, c.redop, c.tile, c.network and more
    start, end = share(count, n_pe, pe)  # every PE does its share of each rank's part, which has `count` elements
    for at in range(start, end, c.tile):
        n = min(c.tile, end - at)
        total = tl.load(in_ptr + rank * count + at, shape=(n,))
        # To send one tile and then receive one keeps queues short.
        for distance in range(1, world):
            peer, other = (rank + distance) % world, (rank - distance) % world
            tl.send(tl.load(in_ptr + peer * count + at, shape=(n,)), peer)
            total = c.combine(tl, total, tl.recv((n,), c.dtype, other))
        tl.store(out_ptr + at, c.finish(tl, total))  # finish divides, if the reduction is avg


kernel = my_algorithm
