"""my_algorithm: in each round every rank tells one that is twice as far away; then each has heard of all.

Run `kernbench ccl check` on this file after every change: it proves the kernel below for many numbers of ranks.
"""

from kernbench_ccl.contract import kernel_args as kernel_args

COLLECTIVE = "barrier"

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
    distance = 1
    while distance < world:
        tl.send(tl.zeros((1,), "int32"), (rank + distance) % world)
        tl.recv((1,), "int32", (rank - distance) % world)
        distance *= 2


kernel = my_algorithm
