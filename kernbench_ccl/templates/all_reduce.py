"""my_algorithm: every rank reduces one part of the vector and hands the result to all others.

Run `kernbench ccl check` on this file after every change: it proves the kernel below for many numbers of ranks.
"""

from kernbench_ccl.contract import share

COLLECTIVE = "all_reduce"
# It runs on every network. TOPO_NAME_TO_KIND = {"ring": 0, "switch": 1} would name some, and topo_kind on each.


def my_algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    c = tl.collective  # the call: c.dtype, c.redop, c.tile, c.network and more
    start, end = share(count, n_pe, pe)  # every PE of a rank does its share of the vector

    def piece(owner, number):
        """Return where tile `number` of the part that rank `owner` reduces begins, and its elements (maybe 0)."""
        first, last = share(end - start, world, owner)
        at = first + number * c.tile
        return start + at, max(0, min(c.tile, last - at))

    largest = -(-(end - start) // world)
    for number in range(-(-largest // c.tile)):
        # Hand every rank what it reduces, and reduce what the others hand to this one. To send one tile and then
        # receive one keeps queues short: all that waits is waited for by a rank that is further behind.
        mine, size = piece(rank, number)
        total = tl.load(in_ptr + mine, shape=(size,)) if size else None
        for distance in range(1, world):
            peer, other = (rank + distance) % world, (rank - distance) % world
            at, n = piece(peer, number)
            if n:
                tl.send(tl.load(in_ptr + at, shape=(n,)), peer)
            if size:
                total = c.combine(tl, total, tl.recv((size,), c.dtype, other))
        if size:
            total = c.finish(tl, total)  # divides, if the reduction is avg
            tl.store(out_ptr + mine, total)
        # Hand the result to every rank, and store what the others have.
        for distance in range(1, world):
            peer, other = (rank + distance) % world, (rank - distance) % world
            if size:
                tl.send(total, peer)
            at, n = piece(other, number)
            if n:
                tl.store(out_ptr + at, tl.recv((n,), c.dtype, other))


kernel = my_algorithm
