"""A result is one JSON object, and a repr that says what happened."""

from __future__ import annotations

import json
import math
import pickle
from types import ModuleType, SimpleNamespace

import attrs
import pytest

from kernbench_core.compute.verification import Verification
from kernbench_core.runs.result import json_text

PROMISED = {
    "schema", "bench", "params", "topology", "total_ns", "phases", "ops", "events", "wall_s", "verified",
    "max_abs_error", "busiest", "hazards", "rows", "not_modelled", "op_log_sha256", "manifest",
}  # fmt: skip


def test_json_holds_every_promised_key(samples: ModuleType) -> None:
    """The object survives JSON, with the schema first and every promised key."""
    found = json.loads(json_text(samples.make_result().to_json()))
    assert set(found) >= PROMISED
    assert next(iter(found.items())) == ("schema", "kernbench.run/1")
    assert found["busiest"][0] == {
        "name": "sip0.cube0.pe0.pe_gemm", "kind": "pe_gemm", "utilisation": 0.8125, "busy_ns": 335000.0, "nbytes": 0,
        "alike": 4, "mean_utilisation": 0.5,
    }  # fmt: skip
    assert found["hazards"] == []


def test_rows_are_plain(samples: ModuleType) -> None:
    """Rows that a bench reported come as they are; what JSON has no number for is written as a word."""
    found = samples.make_result(rows=({"tile": "64", "ns": 1.5, "rate": math.inf, "n": None},)).to_json()
    assert json.loads(json_text(found))["rows"] == [{"tile": "64", "ns": 1.5, "rate": "inf", "n": None}]


def test_phases_come_in_reading_order_and_sum_to_the_total(samples: ModuleType) -> None:
    """The phases are those of the run, in the order in which they happen."""
    phases = samples.make_result().to_json()["phases"]
    assert list(phases) == ["host_to_device", "launch", "kernel", "device_to_host"]
    assert sum(phases.values()) == 412_300.0


@pytest.mark.parametrize(
    ("verification", "verified", "error"),
    [(None, None, None), ("NOTHING", None, None), ("RIGHT", True, 0.00012), ("WRONG", False, 3.0)],
)
def test_verified_has_three_states(
    samples: ModuleType, verification: str | None, verified: bool | None, error: float | None
) -> None:
    """Right, wrong, or not asked for."""
    result = samples.make_result(verification and getattr(samples, verification))
    assert result.verified is verified
    assert result.to_json()["verified"] is verified
    assert result.to_json()["max_abs_error"] == error
    assert result.to_json()["wrong"] == (1 if verified is False else 0)


def test_json_has_no_nan(samples: ModuleType) -> None:
    """An error that is no number is written as a word, as JSON has no NaN."""
    result = samples.make_result(Verification(False, 1, math.nan, ()))
    assert json.loads(json_text(result.to_json()))["max_abs_error"] == "nan"


def test_results_are_equal_where_their_json_is(samples: ModuleType) -> None:
    """But for wall times, whatever outputs were looked at, and whether the cache had it."""
    found = samples.make_result()
    assert found == attrs.evolve(found, wall_s=9.0) and hash(found) == hash(attrs.evolve(found, wall_s=9.0))
    assert found == pickle.loads(pickle.dumps(found))
    for name, value in (("rows", ({"n": 1},)), ("params", {}), ("manifest", {"schema": "x"}), ("device", "sip:0")):
        assert attrs.evolve(found, **{name: value}) != found
    nan = samples.make_result(Verification(False, 1, math.nan, ()))
    assert nan == samples.make_result(Verification(False, 1, float("nan"), ())) != found


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({}, "<RunResult gemm on tiny: 412.3 us, 4096 ops, 1234567 events, verified>"),
        ({"verification": None}, "<RunResult gemm on tiny: 412.3 us, 4096 ops, 1234567 events, data not verified>"),
        (
            {"verification": None, "interrupted": True, "op_log_sha256": None},
            "<RunResult gemm on tiny: 412.3 us, 4096 ops, 1234567 events, data not verified, interrupted>",
        ),
    ],
)
def test_repr_says_what_happened(samples: ModuleType, changed: dict[str, object], text: str) -> None:
    """A notebook shows time, size and verdict."""
    assert repr(samples.make_result(**changed)) == text


def test_the_log_is_hashed_when_it_is_asked_for(samples: ModuleType) -> None:
    """Once; the manifest has the hash, and so has what is pickled."""

    class Log(SimpleNamespace):
        def sha256(self) -> str:
            asked.append(1)
            return "cd" * 32

    asked: list[int] = []
    found = samples.make_result(op_log_sha256=Log(), manifest={"schema": "x", "op_log_sha256": None})
    assert not asked
    again = pickle.loads(pickle.dumps(found))
    assert (found.op_log_sha256, found.manifest["op_log_sha256"], again.manifest["op_log_sha256"]) == ("cd" * 32,) * 3
    assert len(asked) == 1
