"""my_algorithm: every rank sends what it brings to the root.

Run `kernbench ccl check` on this file after every change: it proves the kernel below for many numbers of ranks.
"""

from kernbench_ccl.contract import kernel_args as kernel_args
from kernbench_ccl.contract import share

COLLECTIVE = "gather"

# The networks that it runs on; the kernel is given the integer of the one that it finds itself on as topo_kind.
RING, MESH_2D, TORUS_2D, FULLY_CONNECTED, SWITCH, OTHER = range(6)
TOPO_NAME_TO_KIND = {
    "ring": RING,
    "mesh_2d": MESH_2D,
    "torus_2d": TORUS_2D,
    "fully_connected": FULLY_CONNECTED,
    "switch": SWITCH,
    "*": OTHER,  # any other: one that a plug-in brings
}


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
