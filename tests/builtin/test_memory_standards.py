"""The standards by name: their figures are those of their sources, and times that contradict each other are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_builtin.components.hbm_ctrl_bank import HbmCtrlBank
from kernbench_builtin.memory_standards import STANDARDS
from kernbench_core.errors import ConfigError
from kernbench_core.params import resolve_params
from kernbench_core.testing import Rig

#: In ns, as printed by the sources; rates in GB/s.
PRINTED: dict[str, dict[str, float]] = {
    "hbm2_2000": {
        "channel_bandwidth": 256 / 16, "banks": 16, "bank_groups": 4, "tCL": 14, "tRCDRD": 14, "tRP": 14, "tRAS": 34,
        "tRC": 48, "tFAW": 15, "tRRD_S": 4, "tRFC": 160, "tREFI": 3900, "tCWL": 5, "tWR": 16, "tCCD_L": 4,
    },
    "hbm3_6400": {
        "channel_bandwidth": 819.2 / 32, "banks": 16, "bank_groups": 4, "tCL": 12.5, "tRCDRD": 19.375, "tRCDWR": 9.375,
        "tRP": 16.25, "tRAS": 28.125, "tRC": 45, "tWR": 20.625, "tRTP": 5.625, "tCWL": 6.25, "tCCD_S": 1.25,
        "tCCD_L": 2.5, "tRRD_S": 2.5, "tRRD_L": 3.125, "tFAW": 15, "tWTR_S": 4.375, "tWTR_L": 6.25, "tRFC": 260,
        "tRFCpb": 200, "tREFI": 3900,
    },
    "hbm4_8000": {
        "channel_bandwidth": 2048 / 64, "banks": 16, "bank_groups": 2, "tCL": 10, "tRCDRD": 19.5, "tRP": 16.5,
        "tRAS": 28.5, "tRC": 45, "tFAW": 15, "tRRD_S": 2.5, "tRFC": 450, "tREFI": 3900,
    },
}  # fmt: skip
for _name in ("hbm3_6400", "hbm4_8000"):
    PRINTED[f"{_name}_8hi"] = {**PRINTED[_name], "banks": 32, "stack_ids": 2}
#: Clocks from a read to a write: tCL + tBL + 2 - tCWL of HBM2, a figure of its own of the others.
TURNAROUND = {"hbm2_2000": 13, "hbm3_6400": 20, "hbm4_8000": 25}
CLOCK = {"hbm2_2000": 1.0, "hbm3_6400": 0.625, "hbm4_8000": 0.5}


def resolved(**given: object) -> dict[str, Any]:
    values, problems = resolve_params(HbmCtrlBank.PARAMS, given, str)
    assert problems == []
    return values


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_standard_gives_the_figures_of_its_source_to_what_is_not_given(standard: str) -> None:
    values = resolved(standard=standard)
    assert {name: values[name] for name in PRINTED[standard]} == PRINTED[standard]
    given = resolved(standard=standard, tRC="60 ns", banks=64)
    assert (given["tRC"], given["banks"]) == (60.0, 64)
    assert {name: given[name] for name in PRINTED[standard] if name not in ("tRC", "banks")} == {
        name: value for name, value in PRINTED[standard].items() if name not in ("tRC", "banks")
    }


@pytest.mark.parametrize("standard", STANDARDS)
def test_every_figure_has_a_source_and_one_only_is_unverified(standard: str) -> None:
    assert all(figure.source for figure in STANDARDS[standard].figures.values())
    assert STANDARDS[standard].unverified == (("tFAW",) if standard == "hbm2_2000" else ())


@pytest.mark.parametrize("standard", STANDARDS)
def test_times_are_whole_clocks_and_so_is_the_read_to_write_time(standard: str) -> None:
    t = Rig(HbmCtrlBank, {"standard": standard}).under_test.timing  # type: ignore[attr-defined]
    clock = CLOCK[standard.removesuffix("_8hi")]
    assert (t.tCK, t.tBL) == (clock, 2 * clock)
    assert t.tRTW == TURNAROUND[standard.removesuffix("_8hi")] * t.tCK
    assert t.tRFC >= 100 and t.tRFC % t.tCK == 0


def test_a_time_between_two_clocks_is_rounded_up_and_the_clock_follows_from_the_rate() -> None:
    t = Rig(HbmCtrlBank, {"tRC": "45.1 ns"}).under_test.timing  # type: ignore[attr-defined]
    assert t.tRC == 73 * 0.625
    slow = Rig(HbmCtrlBank, {"channel_bandwidth": "16 GB/s"}).under_test.timing  # type: ignore[attr-defined]
    assert (slow.tCK, slow.tBL, slow.tCL) == (1.0, 2.0, 13.0)


def test_times_that_contradict_each_other_are_all_named() -> None:
    wrong = {
        "tRC": "40 ns", "tRAS": "9 ns", "tCWL": "13 ns", "tCCD_L": "1 ns", "tRRD_L": "2 ns", "tFAW": "5 ns",
        "tWTR_L": "1 ns", "tRFCpb": "300 ns", "burst_bytes": "8 B", "refresh": "per_bank", "tREFI": "500 ns",
        "tRRD_S": "2.5 ns", "tRREFD": "30 ns",
    }  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        Rig(HbmCtrlBank, wrong)
    assert caught.value.problems == (
        "under_test: burst_bytes must be a multiple of 16, what a pseudo-channel moves in a clock, not 8; correct it.",
        "under_test: tRAS must be at least tRCDRD, 19.375 ns, not 9 ns; correct one of them.",
        "under_test: tRAS must be at least tRCDWR, 9.375 ns, not 9 ns; correct one of them.",
        "under_test: tCL must be at least tCWL, 13 ns, not 12.5 ns; correct one of them.",
        "under_test: tCCD_L must be at least tCCD_S, 1.25 ns, not 1 ns; correct one of them.",
        "under_test: tRRD_L must be at least tRRD_S, 2.5 ns, not 2 ns; correct one of them.",
        "under_test: tFAW must be at least 3 x tRRD_S, 7.5 ns, what four activations take, not 5 ns; correct one of "
        "them.",
        "under_test: tWTR_L must be at least tWTR_S, 4.375 ns, not 1 ns; correct one of them.",
        "under_test: tRFC must be at least tRFCpb, 300 ns, not 260 ns; correct one of them.",
        "under_test: tREFI must be longer for each of 16 banks than tRREFD + tRAS + tRP, 55.25 ns, not 31.25 ns; "
        "correct one of them, or give refresh: none.",
    )
    with pytest.raises(ConfigError) as caught:
        Rig(HbmCtrlBank, {"tRC": "44 ns"})
    assert caught.value.problems == (
        "under_test: tRC must be at least tRAS + tRP, 28.125 + 16.25 = 44.375 ns, not 44 ns; correct one of them.",
    )
    Rig(HbmCtrlBank, {"tRC": "44.375 ns"})
    Rig(HbmCtrlBank, {"tREFI": "500 ns", "refresh": "none"})


def test_as_many_pseudo_channels_as_column_commands_fit_between_two_may_share_a_bus() -> None:
    with pytest.raises(ConfigError) as caught:
        Rig(HbmCtrlBank, {"pseudo_channels": 3})
    assert caught.value.problems == (
        "under_test: pseudo_channels must be at most 2, the clocks of tCCD_S, not 3: the column-command bus carries no "
        "more; correct one.",
    )
    Rig(HbmCtrlBank, {"pseudo_channels": 4, "burst_bytes": "64 B", "tCCD_S": "2.5 ns"})
