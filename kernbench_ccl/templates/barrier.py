"""my_algorithm: in each round every rank tells one that is twice as far away; then each has heard of all.

Run `kernbench ccl check` on this file after every change: it proves the kernel below for many numbers of ranks.
"""

COLLECTIVE = "barrier"
# It runs on every network. TOPO_NAME_TO_KIND = {"ring": 0, "switch": 1} would name some, and topo_kind on each.


def my_algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    distance = 1
    while distance < world:
        tl.send(tl.zeros((1,), "int32"), (rank + distance) % world)
        tl.recv((1,), "int32", (rank - distance) % world)
        distance *= 2


kernel = my_algorithm
