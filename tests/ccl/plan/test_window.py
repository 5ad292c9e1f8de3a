"""What a PE may have under way: what fills the links, as far as its scratchpad and the slots of its peers have room."""

from __future__ import annotations

import json
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_ccl.contract import HELD_BYTES
from kernbench_ccl.plan import make_group
from kernbench_ccl.plan.window import LEAST, MessageWindow, room_of, wanted_bytes, window_for, window_of
from kernbench_core.cli import main
from kernbench_core.peers import Channel
from kernbench_core.plugins import load_plugins
from tests.ccl.algorithms.measured_forms import ideal

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("rates", "latency", "n_pe", "message", "most", "wanted"),
    [
        ([100.0], 500.0, 1, 1000, 1e9, 50_000 + 2000),
        ([100.0] * 15, 500.0, 1, 16 * KIB, 64 * KIB, 15 * 64 * KIB),  # no more than a peer gets
        ([100.0] * 15, 500.0, 1, 16 * KIB, 1e9, 15 * (50_000 + 32 * KIB)),
        ([100.0] * 3, 500.0, 4, 1000, 1e9, 3 * (12_500 + 500)),  # PEs share the links
        ([100.0] * 3, 500.0, 64, 16 * KIB, 1e9, 3 * 16 * KIB),  # a message to each peer at least
        ([100.0, 10.0], 500.0, 1, 1000, 1e9, 50_000 + 5000 + 4000),
        ([], 500.0, 1, 1000, 1e9, 0),
    ],
)
def test_what_fills_the_links(
    rates: list[float], latency: float, n_pe: int, message: int, most: float, wanted: int
) -> None:
    """Bandwidth x latency of each link and two messages at its ends, worked out by hand."""
    assert wanted_bytes(rates, latency, n_pe, message, most) == wanted


@given(st.integers(1, 1 << 34), st.integers(0, 1 << 34), st.integers(0, 1 << 32), st.integers(0, 1 << 32))
def test_a_window_keeps_within_the_scratchpad_and_says_when_it_is_short(
    tcm: int, slots: int, wanted: int, queued: int
) -> None:
    """Tiles take a quarter at most, and half of what slots leave; what is under way half of that."""
    window = window_of(room_of(tcm, slots), wanted, queued)
    assert window.held == 1 or (4 * window.held <= tcm and 2 * window.held <= tcm - slots)
    assert 1 <= window.under_way <= max(1, window.held // 2)
    assert window.under_way >= min(wanted, window.held // 2) and window.under_way >= min(LEAST, window.held // 2)
    assert (window.limit is None) == (wanted <= min(window.under_way, queued))
    assert window.limit in (None, "scratchpad" if wanted > window.under_way else "slots")


def windows(network: str, sips: int, peers: int, *, pes: int = 1, topology: str = "tiny", **more: Any) -> MessageWindow:
    """Return the window of a PE of a machine, for 1 MiB."""
    found: list[MessageWindow] = []

    def bench(rt: Any) -> None:
        group = make_group(rt.pes, channel=more.get("channel", Channel("ccl")))
        found.append(window_for(rt, group, group.channel, peers, pes, 16 * KIB, MIB))
        rt.tensor([0.0])  # a run without any traffic is refused

    sets = [f"system.sips={sips}", f"system.network.topology={network}", *more.get("set", ())]
    kb.run(bench, topology, set=sets)
    return found[0]


def latency_by_networkx(network: str, sips: int, others: int) -> float:
    """Return the ns of wires and nodes between the DMAs of PE 0 of rank 0 and of the farthest, not over the host."""
    from kernbench_ccl.measure import Setup, machine_of

    graph = machine_of(Setup("tiny", None, (f"system.sips={sips}", f"system.network.topology={network}")),
                       load_plugins()).graph  # fmt: skip
    ways = nx.DiGraph()
    for (source, target), edge in graph.edges.items():
        if edge.kind.value not in ("command", "pcie"):
            ways.add_edge(source, target, weight=edge.latency + float(graph.nodes[target].params.get("overhead", 0)))
    start = "sip0.cube0.pe0.pe_dma"
    ends = [f"sip{other}.cube0.pe0.pe_dma" for other in range(1, others + 1)]
    own = {end: float(graph.nodes[end].params["overhead"]) for end in ends}
    return max(nx.shortest_path_length(ways, start, end, weight="weight") - own[end] for end in ends)


@pytest.mark.parametrize(("network", "sips"), [("fully_connected", 5), ("switch", 3), ("ring", 6)])
def test_the_latency_is_that_of_the_farthest_peer(network: str, sips: int) -> None:
    """By shortest ways through the graph; PEs that send to all use as many links as they have."""
    found = windows(network, sips, sips - 1)
    links = {"fully_connected": sips - 1, "switch": 1, "ring": 2}[network]
    latency = latency_by_networkx(network, sips, sips - 1)
    assert found.wanted == pytest.approx(links * (100 * latency + 32 * KIB), abs=1)


def test_a_window_is_the_same_as_ever_where_links_want_less() -> None:
    """On the presets a quarter of 2 MiB is held, and half of that under way."""
    found = windows("ring", 4, 0, pes=4)
    assert (found.held, found.under_way, found.limit) == (HELD_BYTES, HELD_BYTES // 2, None)


def test_small_scratchpads_and_many_slots_make_it_smaller() -> None:
    """Half of what slots leave, or a quarter; slots elsewhere take nothing."""
    small = ["pe.tcm.capacity=256 KiB"]
    assert windows("ring", 2, 0, set=small).held == 64 * KIB
    large = Channel("ccl", slots=14, slot_bytes=64 * KIB)
    assert windows("ring", 2, 0, channel=large).held == (2 * MIB - 2 * 14 * 64 * KIB) // 2
    assert windows("ring", 2, 0, channel=Channel("ccl", 14, 64 * KIB, "sram")).held == HELD_BYTES


def test_a_table_says_what_had_no_room(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Below the rows which sizes, and in --json bytes, what is wanted and what limits."""
    few = tmp_path / "few.yaml"
    few.write_text("defaults: {slots: 2, slot_bytes: 4 KiB, pes: 1}\n")
    asked = ["ccl", "all_reduce", "--topology", "tiny", "--ranks", "3", "--algo", "ring", "-b", "1K", "-e", "64K", "-f",
             "8", "--no-check", "--config", str(few)]  # fmt: skip
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    [told] = [line for line in lines if "under way" in line]
    assert told == (
        "# 64 KiB: 16 KiB of a PE under way where 128 KiB would fill the links: its queues of 2 slots of 4 KiB have no "
        "room for more"
    )
    assert main([*asked, "--json"]) == 0
    found = [row["settings"]["window"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert found[-1] == {"bytes": 16 * KIB, "wanted_bytes": 128 * KIB, "limit": "slots"}
    assert found[0]["limit"] is None


@pytest.mark.parametrize("ranks", [8, 16])
def test_direct_takes_its_form_with_as_few_pes_as_auto_takes(ranks: int) -> None:
    """All peers at once over links of their own: with 256 KiB under way 16 ranks took 1.9 times as long."""
    nbytes = MIB // 2
    measured, formula, _ = ideal("direct", "all_reduce", nbytes, ranks, "fully_connected")
    assert measured.used is not None and measured.used.pes == 1
    assert formula == pytest.approx(2 * (500 + nbytes / ranks / 100))
    assert measured.time_ns == pytest.approx(formula, rel=0.01)
