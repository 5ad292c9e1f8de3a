"""my_algorithm: every rank sends every other rank the part that is meant for it.

Run `kernbench ccl check` on this file after every change: it proves the kernel below for many numbers of ranks.
"""

from kernbench_ccl.contract import share

COLLECTIVE = "all_to_all"
# It runs on every network. TOPO_NAME_TO_KIND = {"ring": 0, "switch": 1} would name some, and topo_kind on each.


def my_algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    c = tl.collective  # the call: c.dtype, c.tile, c.network and more
    # How many elements go from each rank to each; the parts lie behind each other in input and output.
    counts = c.counts or [[count] * world for _ in range(world)]

    def tiles(source, target):
        """Return (element of the part, elements) of each tile that this PE moves from one rank to another."""
        start, end = share(counts[source][target], n_pe, pe)
        return [(at, min(c.tile, end - at)) for at in range(start, end, c.tile)]

    for distance in range(world):
        peer, other = (rank + distance) % world, (rank - distance) % world
        here = in_ptr + sum(counts[rank][:peer])
        there = out_ptr + sum(counts[source][rank] for source in range(other))
        going, coming = tiles(rank, peer), tiles(other, rank)
        if peer == rank:
            for at, n in going:
                tl.store(there + at, tl.load(here + at, shape=(n,)))
            continue
        # To send one tile and then receive one keeps queues short.
        for number in range(max(len(going), len(coming))):
            if number < len(going):
                at, n = going[number]
                tl.send(tl.load(here + at, shape=(n,)), peer)
            if number < len(coming):
                at, n = coming[number]
                tl.store(there + at, tl.recv((n,), c.dtype, other))


kernel = my_algorithm
