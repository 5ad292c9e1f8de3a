"""Right algorithms, begun from the templates, and the faults that are planted in them."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen

from kernbench_ccl.cli.scaffold import algorithm_text
from kernbench_ccl.contract import SWITCH
from kernbench_core.plugins import Plugins, load_plugins
from tests.conftest import SOURCE_TREE

Changes = dict[str, str]

COMBINE = "total = c.combine(tl, total, tl.recv((size,), c.dtype, other))"
FINISH = "total = c.finish(tl, total)  # divides, if the reduction is avg"
SHARE = "start, end = share(count, n_pe, pe)  # every PE of a rank does its share of the vector"
PEER = "peer, other = (rank + distance) % world, (rank - distance) % world\n            at, n = piece(peer, number)"
#: How sentences about the plainest calls begin.
ONE = "with 2 ranks on ring, 1 PE each, 48 elements, tiles of 4, redop sum, out of place, queues of 1 slot: "
TWO = "with 2 ranks on ring, 2 PEs each, 16 elements, tiles of 4, redop sum, out of place, queues of 1 slot: "
SUM = "elements 24-47 of rank 0's output must be the sum of elements 24-47 of ranks 0 and 1"
KERNEL = "kernel = my_algorithm"
#: The data checks that find whatever is wrong with the data of a plain call.
DATA = ("computes_right_data",)
#: And in a group, as it is called there.
EVERYWHERE = (*DATA, "serves_groups_of_ranks")
#: Where no run comes to its end.
ENDS = (*EVERYWHERE, "does_not_beat_its_bound", "logs_the_same_twice", "logs_the_same_under_every_hash_seed")


@frozen
class Plant:
    """A fault: what is put in place of which texts of a template, the check that is for it, what others must fail."""

    check: str
    changes: Changes
    also: tuple[str, ...] = ()
    collective: str = "all_reduce"
    told: str = field(default="", kw_only=True)
    """What the check says, as far as that is the same everywhere."""
    ranks: tuple[int, ...] = field(default=(2, 3), kw_only=True)
    """Few numbers of ranks that show it."""


PLANTS: dict[str, Plant] = {
    "a refusal without words": Plant(
        "refuses_in_words",
        {KERNEL: f"{KERNEL}\n\n\ndef refuses(world, network):\n    return 'no' * (world == 6) or None"},
        told="what it says of 6 ranks on ring must be a sentence with 'must' and a full stop, not 'no'",
        ranks=(2, 6),
    ),
    "a wait cycle at one number of ranks": Plant(
        "never_waits_for_ever",
        {SHARE: f"{SHARE}\n    if world == 7:\n        tl.recv((1,), c.dtype, (rank + 1) % world)"},
        told="with 7 ranks on ring, 1 PE each, 56 elements, tiles of 4, redop sum, out of place, queues of 4 slots: "
        "7 PEs wait for ever, 7 of them for each other in a cycle: rank 0 at ",
        ranks=(2, 7),
    ),
    "a look at the payload": Plant(
        "does_only_what_it_may",
        {FINISH: f"{FINISH}\n            total = total if float(total[0]) > 1 else total"},
        ENDS,
        told=f"{ONE}rank 1 after step 1: ",
    ),
    "a chunk dropped": Plant(
        "loses_no_contribution",
        {COMBINE: "got = tl.recv((size,), c.dtype, other)\n                total = total if rank == distance == 1 else "
         "c.combine(tl, total, got)"},
        EVERYWHERE,
        told=f"{ONE}{SUM}, and lack rank 0; ",
    ),
    "a chunk reduced twice": Plant(
        "counts_nothing_twice",
        {COMBINE: "got = tl.recv((size,), c.dtype, other)\n                total = c.combine(tl, total, got)\n"
         "                total = c.combine(tl, total, got) if rank == distance == 1 else total"},
        EVERYWHERE,
        told=f"{ONE}{SUM}, and hold rank 0 twice; ",
    ),
    "a message that nobody receives": Plant(
        "receives_all_that_is_sent",
        {KERNEL: "def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):\n"
         "    my_algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl)\n"
         "    if rank == 0:\n        tl.send(tl.zeros((1,), tl.collective.dtype), 1, wait=False)"},
        ENDS,
        told=f"{ONE}rank 1 never received what rank 0 sent it in step 1 at ",
    ),
    "a hazard": Plant(
        "orders_its_uses_of_memory",
        {KERNEL: "def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):\n"
         "    tl.store(out_ptr, tl.load(in_ptr, shape=(1,)))  # all PEs, to one place\n"
         "    my_algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl)"},
        DATA,
        told=f"{TWO}PE 0 of rank 0 writes output of rank 0 at ",
    ),
    "an input that is changed": Plant(
        "leaves_inputs_alone", {FINISH: f"{FINISH}\n            tl.store(in_ptr + mine, total)"}, DATA,
        told=f"{ONE}the input of rank 0 must be left as it is out of place, and rank 0 changed elements 0-23 of it at ",
    ),
    "a rank that nobody waits for": Plant(
        "waits_for_everyone", {"while distance < world:": "while 2 * distance < world:"}, (), "barrier",
        told="with 2 ranks on ring, 1 PE each, 1 element, tiles of 4, out of place, queues of 1 slot: rank 0 leaves "
        "the barrier without having heard of rank 1.",
    ),
    "sizes that do not divide": Plant(
        "takes_any_count",
        {"first, last = share(end - start, world, owner)":
         "each = (end - start) // world\n        first, last = owner * each, (owner + 1) * each"},
        EVERYWHERE,
        told="with 2 ranks on ring, 1 PE each, 1 element, tiles of 4, redop sum, out of place, queues of 1 slot: "
        "element 0 of rank 0's output must be the sum of element 0 of ranks 0 and 1, and holds what the output held "
        "before and lacks ranks 0 and 1; ",
    ),
    "an output that is written too early": Plant(
        "works_in_place",
        {SHARE: f"{SHARE}\n    if end > start:\n        tl.store(out_ptr + start, tl.zeros((end - start,), c.dtype))"},
        ("serves_groups_of_ranks",),
    ),
    "steps that end too soon": Plant(
        "works_step_by_step", {FINISH: "total = c.finish(tl, total) if c.pipeline else c.combine(tl, total, total)"},
    ),
    "an average taken twice": Plant(
        "does_every_reduction", {FINISH: "total = c.finish(tl, c.finish(tl, total))"}, DATA,
    ),
    "a root that is always 0": Plant("takes_any_root", {"(rank - c.root) % world": "rank"}, (), "broadcast"),
    "splits that are taken for even": Plant(
        "takes_uneven_splits", {"counts = c.counts or [": "counts = ["}, (),
        "all_to_all",
    ),
    "one network mistaken": Plant(
        "runs_on_each_of_its_networks",
        {COMBINE: f"got = tl.recv((size,), c.dtype, other)\n                if topo_kind != {SWITCH}:\n"
         "                    total = c.combine(tl, total, got)"},
    ),
    "sums in another dtype": Plant(
        "computes_right_data",
        {COMBINE: 'got = tl.recv((size,), c.dtype, other)\n'
         '                if c.dtype == "f32":\n'
         '                    total, got = tl.cast(tl.cast(total, "f16"), "f32"), got\n'
         '                total = c.combine(tl, total, got)'},
        told="with 3 ranks, 13 elements of f32, sum: rank 0, reals: ",
    ),
    "a result before its bound": Plant(
        "does_not_beat_its_bound", {"for distance in range(1, world)": "for distance in range(0)"},
        ("loses_no_contribution", *EVERYWHERE),
        told="with 4 ranks on ring, idealised: all_reduce of 16384 B by acme.planted_all_reduce must take at least the "
        "lower bound of ",
    ),
    "a form that lies": Plant(
        "takes_the_time_of_its_form", {KERNEL: f"{KERNEL}\n\n\ndef formula(cost):\n    return 123456.0"},
        told="with 4 ranks on ring, idealised: 16384 B step by step must take 123.5 us, as its form says, "
        "within 1%, not ",
    ),
    "a rank of the group taken for one of the world": Plant(
        "serves_groups_of_ranks",
        {PEER: PEER.replace("(rank + distance) % world", "c.group[(rank + distance) % world]")},
    ),
    "a module that counts calls": Plant(
        "logs_the_same_twice",
        {SHARE: f"{SHARE}\n    CALLS.append(rank)\n    if len(CALLS) > world * n_pe:\n"
         "        tl.load(in_ptr + end - 1, shape=(1,))",
         KERNEL: f"{KERNEL}\nCALLS = []"},
    ),
    "the order of a set": Plant(
        "logs_the_same_under_every_hash_seed",
        {SHARE: f"{SHARE}\n    for _ in range(list({{f'lane {{n}}' for n in range(40)}}).index('lane 0')):\n"
         "        tl.load(in_ptr + end - 1, shape=(1,))"},
    ),
}


def plugins_with(folder: Path, plant: Plant, *others: str) -> tuple[Plugins, str]:
    """Register a template with a fault, beside other plug-ins; return them all and the name of the algorithm."""
    collective = plant.collective
    text = algorithm_text("my_algorithm", collective)
    for old, new in plant.changes.items():
        assert old in text, old
        text = text.replace(old, new)
    name = f"acme.planted_{collective}"
    text += (
        "\n\nfrom kernbench_core import AlgorithmEntry\n\nkernbench_api = 1\n\n\ndef kernbench_algorithms():\n"
        f"    return [AlgorithmEntry({name!r}, f'{{__name__}}:kernel', 'For a test.')]\n"
    )
    module = f"planted_{folder.name.replace('-', '_')}"
    (folder / f"{module}.py").write_text(text)
    return load_plugins([*SOURCE_TREE, *others, f"acme = {module}"], installed=False), name
