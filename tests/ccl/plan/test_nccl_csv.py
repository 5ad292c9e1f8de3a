"""The CSV of NCCL's example tuner plug-in, read here as that plug-in reads it."""

from __future__ import annotations

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.plan.machine_tuning import MachineTuning, MeasuredTimes
from kernbench_ccl.plan.nccl_csv import nccl_lines, nccl_name
from kernbench_core.plugins import load_plugins, own_plugins

RING, BOTH, TREE, DIRECT = (
    f"ccl.{method}_all_reduce" for method in ("ring", "ring_bidirectional", "double_binary_tree", "direct")
)


def as_the_plugin_reads(lines: list[str]) -> list[tuple[str, int, int, str, str, int, int, int]]:
    """Return the configurations, by the rules of its README: no comments, eight fields, decimal numbers."""
    found = []
    for line in lines:
        assert len(line) < 255
        if line.startswith("#") or not line:
            continue
        kind, low, high, algorithm, protocol, channels, nodes, ranks = line.split(",")
        assert kind in ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
        assert algorithm in ("tree", "ring") and protocol in ("ll", "ll128", "simple")
        found.append((kind, int(low), int(high), algorithm, protocol, int(channels), int(nodes), int(ranks)))
    return found


def table(*entries: MeasuredTimes) -> MachineTuning:
    """Return a table of a made-up machine, whose name is longer than a line may be."""
    return MachineTuning("key", "m" * 300, "f16", entries)


def test_every_size_has_the_best_algorithm_that_nccl_has_a_name_for() -> None:
    """Both rings are one ring to it; where something else is the fastest a comment says so."""
    rows = (
        (1024, {DIRECT: 1.0, TREE: 2.0, RING: 4.0, BOTH: 5.5}),
        (3072, {DIRECT: 17.0, TREE: 8.0, RING: 6.0, BOTH: 5.5}),
    )
    lines = list(nccl_lines(table(MeasuredTimes("all_reduce", "ring", 4, rows))))
    assert as_the_plugin_reads(lines) == [
        ("allreduce", 0, 2048, "tree", "simple", -1, -1, 4),
        ("allreduce", 2049, 4294967295, "ring", "simple", -1, -1, 4),
    ]
    assert [line for line in lines if line.startswith("# all_reduce")] == [
        f"# all_reduce of 4 ranks, up to 1.199 KiB: {DIRECT} is the fastest, and has no name in NCCL"
    ]


def test_what_nccl_has_not_is_said() -> None:
    """A collective that its tuner does not know, and one of whose algorithms none has a name."""
    lines = list(
        nccl_lines(
            table(
                MeasuredTimes("all_to_all", "ring", 4, ((8, {"ccl.direct_all_to_all": 1.0}),)),
                MeasuredTimes("broadcast", "ring", 4, ((8, {"ccl.double_binary_tree_broadcast": 1.0}),)),
            )
        )
    )
    assert as_the_plugin_reads(lines) == []
    assert lines[2:] == [
        "# all_to_all of 4 ranks: NCCL's tuner has no such collective",
        "# broadcast of 4 ranks: nothing that was measured has a name in NCCL",
    ]


def test_names_are_those_of_registered_algorithms() -> None:
    """Of all that come with kernbench just these have a name; a stranger's ring is a ring."""
    catalogue = Catalogue.of(load_plugins(own_plugins("ccl"), installed=False))
    named = {
        name: nccl
        for name in catalogue.algorithms
        if (nccl := nccl_name(name, catalogue.collective_of(name))) is not None
    }
    rings = {f"ccl.{way}_{what}" for way in ("ring", "ring_bidirectional")
             for what in ("all_reduce", "all_gather", "reduce_scatter")}  # fmt: skip
    assert named == {**dict.fromkeys(rings | {"ccl.ring_broadcast", "ccl.ring_reduce"}, "ring"), TREE: "tree"}
    assert nccl_name("acme.ring_all_reduce", "all_reduce") == "ring"
