"""Slots of many queues into one PE fit into its scratchpad, and what somebody asked for stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.cli.scaffold import algorithm_text
from kernbench_ccl.measure import time_collective
from kernbench_ccl.plan.queue_sizes import FEWEST_SLOTS, SMALLEST_SLOT, fitted
from kernbench_core.peers import SLOT_ALIGNMENT, Channel
from kernbench_core.plugins import load_plugins

PLUGINS = load_plugins()
CATALOGUE = Catalogue.of(PLUGINS)
SHIPPED = sorted(name for name in CATALOGUE.algorithms if CATALOGUE.collective_of(name) != "barrier")
TEMPLATES = sorted({CATALOGUE.collective_of(name) for name in SHIPPED})


MIB = 1 << 20


@given(
    queues=st.integers(0, 500),
    tcm=st.sampled_from([MIB // 4, 2 * MIB]),
    slots=st.integers(1, 32),
    lines=st.integers(1, 1024),
    asked=st.sampled_from([Channel(), Channel(slots=8), Channel(slot_bytes=4096), Channel(tier="sram")]),
    tier=st.sampled_from(["tcm", "hbm"]),
)
def test_slots_fit_or_are_as_small_as_they_get(
    queues: int, tcm: int, slots: int, lines: int, asked: Channel, tier: str
) -> None:
    """Half of the scratchpad at most, where the channel leaves anything open; nothing is changed without need."""
    size = lines * SLOT_ALIGNMENT
    found = fitted(asked, queues, tcm, slots, size, tier)
    before = (asked.slots or slots, asked.slot_bytes or size)
    after = (found.slots or slots, found.slot_bytes or size)
    assert found.name == asked.name and found.tier == asked.tier
    if (asked.tier or tier) != "tcm" or queues * before[0] * before[1] <= tcm // 2:
        assert found == asked
        return
    assert asked.slots in (None, after[0]) and asked.slot_bytes in (None, after[1])
    assert after[0] <= before[0] and after[1] <= before[1] and after[1] % SLOT_ALIGNMENT == 0
    least_slots = before[0] if asked.slots else min(before[0], FEWEST_SLOTS)
    least_size = before[1] if asked.slot_bytes else min(before[1], SMALLEST_SLOT)
    assert queues * after[0] * after[1] <= tcm // 2 or after == (least_slots, least_size)


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "all_to_all", "gather"])
def test_direct_algorithms_run_with_as_many_ranks_as_had_no_room(collective: str) -> None:
    """Queues of 11 x 4 slots of 16 KiB are more than a scratchpad of 512 KiB."""
    small = ["pe.tcm.capacity=512 KiB", "cube.pes=1"]
    [row] = time_collective(collective, [12 * 64], "tiny", algo="direct", ranks=12, check=False, set=small)
    assert row.out_of_place.time_ns > 0


@pytest.mark.parametrize(
    ("ranks", "n", "set"),
    [
        (6, 12_000, ["cube.pes=1", "pe.tcm.capacity=512 KiB"]),
        (20, 600, []),
    ],
    ids=["six ranks, three messages to each", "twenty ranks"],
)
def test_a_ranks_program_with_many_ranks_is_right(ranks: int, n: int, set: list[str]) -> None:
    """Real data through queues of two slots instead of four."""

    def bench(rt: kb.Runtime) -> None:
        import kernbench_ccl.distributed as dist

        def worker(rank: int, rt: Any) -> None:
            dist.init_process_group(set=["collectives.all_to_all=direct"])
            given = np.arange(ranks * n, dtype=np.int32) + 1000 * rank
            x, y = rt.tensor(given), rt.empty((ranks * n,), "int32")
            dist.all_to_all_single(y, x)
            block = np.arange(n * rank, n * rank + n, dtype=np.int32)
            rt.check(y, np.concatenate([block + 1000 * other for other in range(ranks)]))

        dist.spawn(worker, nprocs=ranks)

    result = kb.run(bench, "tiny", set=[f"system.sips={ranks}", *set], verify_data=True)
    assert result.verified


def message_of(tmp_path: Path, collective: str, algo: str, settings: str, size: int, **more: Any) -> int:
    """Time a collective, which must not end in a deadlock, and return the bytes of a message, which its queues hold."""
    (config := tmp_path / "ccl.yaml").write_text(f"defaults: {{{settings}}}\n")
    given = {"ranks": 4, "pes": 1, "check": False, "in_place": False, "plugins": PLUGINS, **more}
    [row] = time_collective(collective, [size], "tiny", algo=algo, config=str(config), **given)
    used = row.out_of_place.used
    assert used is not None and used.message is not None and used.slots and used.slot_bytes
    assert used.message <= used.slots * used.slot_bytes
    return used.message


def template(tmp_path: Path, collective: str) -> str:
    """Return the path of what `kernbench ccl new` writes, with a word on how many it receives from."""
    text = algorithm_text("mine", collective) + "\n\ndef peers(world):\n    return world - 1\n"
    (path := tmp_path / "mine.py").write_text(text)
    return str(path)


SMALL = "slots: 2, slot_bytes: 512 B, chunk: 4 KiB"


@pytest.mark.parametrize("collective", TEMPLATES)
def test_no_template_waits_for_ever_because_a_message_is_longer_than_its_queue(tmp_path: Path, collective: str) -> None:
    """Few small slots; a message of more than usual ones hold; so many ranks that slots are made smaller."""
    mine = template(tmp_path, collective)
    assert message_of(tmp_path, collective, mine, SMALL, 1 << 15) == 1024
    assert message_of(tmp_path, collective, mine, "chunk: 128 KiB", MIB) == 64 << 10
    tight = {"ranks": 12, "set": ["pe.tcm.capacity=128 KiB", "cube.pes=1"]}
    assert message_of(tmp_path, collective, mine, "", 12 << 14, **tight) == 4096


@pytest.mark.parametrize("name", SHIPPED)
def test_no_algorithm_waits_for_ever_because_a_message_is_longer_than_its_queue(tmp_path: Path, name: str) -> None:
    """On a network that it is for."""
    algorithm = CATALOGUE.open(name, CATALOGUE.collective_of(name))
    more: dict[str, Any] = {"set": [f"system.network.topology={next(iter(algorithm.topologies))}"]}
    if "sip" not in algorithm.contributors:
        more |= {"contributors": "pe", "pes": None}
    assert message_of(tmp_path, algorithm.collective, name, SMALL, 1 << 15, **more) == 1024


def test_a_message_fits_the_queue_of_any_pe_that_takes_part(tmp_path: Path) -> None:
    """Not only that of the first one."""
    (machine := tmp_path / "one.yaml").write_text(
        "base: tiny\noverrides:\n  - {match: sip2.cube0.pe0.pe_ipcq, params: {slots: 1, slot_bytes: 1 KiB}}\n"
    )
    [row] = time_collective(
        "all_reduce", [1 << 15], str(machine), algo=template(tmp_path, "all_reduce"), ranks=4, pes=1, check=False
    )
    assert row.out_of_place.used is not None and row.out_of_place.used.message == 1024
