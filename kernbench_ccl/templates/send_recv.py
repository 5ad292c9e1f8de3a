"""my_algorithm: every rank sends to the next one and receives from the one before.

Run `kernbench ccl check` on this file after every change: it proves the kernel below for many numbers of ranks.
"""

from kernbench_ccl.contract import kernel_args as kernel_args
from kernbench_ccl.contract import share

COLLECTIVE = "send_recv"

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
    c = tl.collective  # the call: c.dtype, c.tile, c.network and more
    start, end = share(count, n_pe, pe)  # every PE of a rank does its share of the vector
    for at in range(start, end, c.tile):
        n = min(c.tile, end - at)
        tile = tl.load(in_ptr + at, shape=(n,))
        if world > 1:
            tl.send(tile, (rank + 1) % world)
            tile = tl.recv((n,), c.dtype, (rank - 1) % world)
        tl.store(out_ptr + at, tile)


kernel = my_algorithm
