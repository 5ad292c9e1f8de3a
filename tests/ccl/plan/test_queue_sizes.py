"""Slots of many queues into one PE fit into its scratchpad, and what somebody asked for stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_ccl.measure import time_collective
from kernbench_ccl.plan.queue_sizes import FEWEST_SLOTS, SMALLEST_SLOT, fitted
from kernbench_core.peers import SLOT_ALIGNMENT, Channel

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
