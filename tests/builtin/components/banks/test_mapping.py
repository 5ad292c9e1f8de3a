"""Addresses and places: each is the other's inverse, and consecutive bytes go where the mapping says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.components.banks.mapping import BankMapping
from kernbench_builtin.components.channelled_memory import Interleaving
from kernbench_core.values.region import Region
from tests.builtin.touched_bursts import bursts_of

mappings = st.builds(
    BankMapping,
    channels=st.sampled_from([1, 2, 4, 8]),
    interleave_bytes=st.sampled_from([32, 256, 1024]),
    burst_bytes=st.just(32),
    banks=st.sampled_from([4, 16]),
    bank_groups=st.sampled_from([1, 4]),
    row_bytes=st.sampled_from([256, 1024]),
    mapping=st.sampled_from(["RoBaCo", "RoCoBa"]),
    group_interleave=st.booleans(),
    bank_hash=st.booleans(),
    channel_hash=st.booleans(),
)


def plain(**changed: object) -> BankMapping:
    usual: dict[str, object] = {
        "channels": 4, "interleave_bytes": 256, "burst_bytes": 32, "banks": 16, "bank_groups": 4, "row_bytes": 1024,
        "mapping": "RoBaCo", "group_interleave": False, "bank_hash": False, "channel_hash": False,
    }  # fmt: skip
    return BankMapping(**{**usual, **changed})  # type: ignore[arg-type]


@given(mappings, st.integers(0, 1 << 30))
def test_the_address_of_a_place_is_the_address_that_it_was_found_at(mapping: BankMapping, burst: int) -> None:
    place = mapping.locate(burst * 32)
    assert mapping.address(place) == burst * 32
    assert (place.channel, place.bank, place.row) == mapping.split(burst * 32)
    assert 0 <= place.channel < mapping.channels
    assert 0 <= place.bank < mapping.banks
    assert 0 <= place.column < mapping.columns


@pytest.mark.parametrize(
    ("changed", "banks"),
    [
        # bursts of one channel, one after another; banks 0-3 are group 0, 4-7 group 1, and so on
        ({}, [0] * 32 + [1] * 32),
        ({"mapping": "RoCoBa"}, list(range(16)) * 4),
        ({"group_interleave": True}, [0, 4, 8, 12] * 32),
        ({"group_interleave": True, "mapping": "RoCoBa"}, [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]),
    ],
)
def test_consecutive_bursts_of_a_channel_go_to_these_banks(changed: dict[str, object], banks: list[int]) -> None:
    mapping = plain(channels=1, **changed)
    assert [mapping.split(32 * n)[1] for n in range(len(banks))] == banks


def test_the_bank_hash_moves_the_next_row_of_a_bank_to_another_one() -> None:
    size = 16 * 1024
    assert [plain(channels=1).split(row * size) for row in range(3)] == [(0, 0, 0), (0, 0, 1), (0, 0, 2)]
    hashed = plain(channels=1, bank_hash=True)
    assert [hashed.split(row * size) for row in range(3)] == [(0, 0, 0), (0, 1, 1), (0, 2, 2)]


@given(mappings, st.integers(0, 1 << 20), st.integers(1, 2000), st.integers(1, 4), st.integers(-3000, 3000))
def test_both_models_of_a_controller_agree_on_the_channels(
    mapping: BankMapping, base: int, nbytes: int, rows: int, pitch: int
) -> None:
    region = Region(base + 20000, nbytes, rows, pitch if rows > 1 else 0)
    deal = Interleaving(mapping.channels, mapping.interleave_bytes, 32, hash_channels=mapping.channel_hash)
    counted: dict[int, int] = {}
    for address in bursts_of((region,)):
        channel = mapping.split(address)[0]
        counted[channel] = counted.get(channel, 0) + 32
    assert deal.shares((region,)) == tuple(sorted(counted.items()))


@pytest.mark.parametrize("pitch", [1024, 2048, 4096, 8192, 16384])
def test_with_the_channel_hash_no_power_of_two_pitch_uses_one_channel_only(pitch: int) -> None:
    column = [row * pitch for row in range(64)]
    assert {plain().split(address)[0] for address in column} == {0}
    used = [plain(channel_hash=True).split(address)[0] for address in column]
    assert all(used.count(channel) == 16 for channel in range(4))
