"""The benches of ranks: right against numpy on the whole problem, in place, by the data, and one inside the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench_ccl.benches import dp_gradients, moe_all_to_all, tp_mlp
from kernbench_ccl.benches._shared import Cut
from kernbench_core.compute import executor
from kernbench_core.errors import NoDataError, UsageError
from kernbench_core.host.bench import open_bench
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.result import RunResult

SMALL: dict[str, dict[str, Any]] = {
    "tp-mlp": {"tokens": 8, "hidden": 16, "ffn": 24},
    "moe-all-to-all": {"tokens": 12, "hidden": 16, "experts": 4},
    "dp-gradients": {"tokens": 8, "hidden": 16, "layers": 3, "communication_pes": 2},
}
RANKS = {name: 3 if name == "tp-mlp" else 2 for name in SMALL}

Run = Callable[..., RunResult]


@pytest.fixture(name="bench")
def _bench(plugins: Plugins) -> Run:
    """Return a function that runs a bench on small SIPs: data verified, and no two PEs racing."""

    def run_bench(name: Any, sips: int = 2, topology: str = "tiny", /, **params: Any) -> RunResult:
        result = run(name, topology, params, set=[f"system.sips={sips}"], plugins=plugins, verify_data=True)
        assert not result.hazards
        return result

    return run_bench


# All of them ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_it_says_in_one_sentence_what_it_does(plugins: Plugins, name: str) -> None:
    opened = open_bench(name, plugins.benches)
    assert opened.sentence.endswith(".") and len(opened.sentence) <= 100
    assert not any(param.required for param in opened.params)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("name", SMALL)
def test_data_is_right_in_every_dtype(bench: Run, name: str, dtype: str) -> None:
    assert bench(name, RANKS[name], **SMALL[name], dtype=dtype).verified


@pytest.mark.parametrize("name", SMALL)
def test_one_rank_is_enough(bench: Run, name: str) -> None:
    assert bench(name, 1, **SMALL[name]).verified


@pytest.mark.parametrize("name", SMALL)
def test_wrong_data_is_found(bench: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What phase 2 computes at the end is made a little wrong; what the host reads between launches is not."""
    right = executor.DataExecutor.materialize

    def wrong(self: Any, value: Any) -> Any:
        found = right(self, value)
        return found + found.dtype.type(0.5) if found.dtype.kind not in "iu" and found.shape[-1] == 16 else found

    monkeypatch.setattr(executor.DataExecutor, "materialize", wrong)
    assert bench(name, **SMALL[name]).verified is False


@pytest.mark.parametrize(
    "name", ["moe-all-to-all", "tp-mlp", "dp-gradients"]
)
def test_the_same_inputs_give_the_same_log(bench: Run, name: str) -> None:
    logs = {bench(name, **SMALL[name]).op_log_sha256 for _ in range(2)}
    assert len(logs) == 1


@pytest.mark.parametrize("name", ["tp-mlp", "dp-gradients"])
def test_shapes_alone_take_the_same_time(plugins: Plugins, bench: Run, name: str) -> None:
    shapes = run(name, "tiny", SMALL[name], set=["system.sips=2"], plugins=plugins, data=False)
    assert shapes.total_ns == bench(name, **SMALL[name]).total_ns


REFUSED = {
    ("tp-mlp", "ffn", 25): "parameter 'ffn' must be a multiple of 2, the number of ranks, not 25; give 26.",
    ("tp-mlp", "layers", 0): "parameter 'layers' must be a positive integer, not 0; give 1 or more.",
    ("moe-all-to-all", "tokens", 7): "parameter 'tokens' must be a multiple of 2, the number of ranks, not 7; give 8.",
    ("moe-all-to-all", "experts", 5): "parameter 'experts' must be a multiple of 2, the number of ranks, not 5; "
    "give 6.",
    ("moe-all-to-all", "top_k", 5): "parameter 'top_k' must be at most 'experts', 4, not 5; give less.",
    ("dp-gradients", "bucket", 0): "parameter 'bucket' must be a positive integer, not 0; give 1 or more.",
    ("dp-gradients", "communication_pes", 4): "parameter 'communication_pes' must be less than the 4 PEs of a SIP, not "
    "4; leave some to compute.",
}


@pytest.mark.parametrize(("name", "param", "value"), REFUSED)
def test_what_does_not_fit_is_refused(bench: Run, name: str, param: str, value: int) -> None:
    with pytest.raises(UsageError) as caught:
        bench(name, **{**SMALL[name], param: value})
    assert str(caught.value) == REFUSED[name, param, value]


@pytest.mark.parametrize("grid", [(1, 1), (2, 3), (5, 1)])
@pytest.mark.parametrize(("rows", "cols", "cubes"), [(1, 1, 1), (7, 10, 4), (12, 8, 2), (3, 5, 3)])
def test_the_blocks_of_a_cut_cover_a_result_once(rows: int, cols: int, cubes: int, grid: tuple[int, int]) -> None:
    covered = np.zeros((rows, cols), int)
    for number in range(cubes * grid[0] * grid[1]):
        row, col, high, wide = Cut(rows, cols, cubes, grid).of(number)
        if high > 0 and wide > 0:
            covered[row : row + high, col : col + wide] += 1
    assert (covered == 1).all()


# tp-mlp -----------------------------------------------------------------------------------------------


def exact(rt: Any, shape: tuple[int, ...], dtype: str, scale: float = 1.0) -> Any:
    """Draw -1, 0 and 1, mostly 0, whose products and sums are exact in f32."""
    return rt.rng.choice([-1, 0, 0, 0, 1], shape).astype("f4") if dtype == "f32" else None


@pytest.mark.parametrize("ranks", [1, 2, 4, 3])
def test_sums_of_integers_are_exact_whatever_the_number_of_ranks(
    bench: Run, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three layers in one scratch tensor: one stale element anywhere would be off by a whole number."""
    monkeypatch.setattr(tp_mlp, "drawn", exact)
    result = bench("tp-mlp", ranks, tokens=8, hidden=16, ffn=24, layers=3, activation="relu", dtype="f32")
    assert result.verified and result.max_abs_error == 0


def test_activations_weights_and_sums_share_one_tensor_per_rank(bench: Run) -> None:
    """The GEMM of a layer writes where it is all-reduced and where the next layer reads: record 0027."""
    result = bench("tp-mlp", **SMALL["tp-mlp"], layers=3)
    assert result.verified and result.verification.checked == 2
    assert [row["layer"] for row in result.rows] == [0, 1, 2]
    assert all(row[name] > 0 for row in result.rows for name in ("up_ns", "down_ns", "all_reduce_ns"))


def test_a_reduction_left_out_is_found(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tp_mlp.dist, "all_reduce", lambda tensor: None)
    assert bench("tp-mlp", **SMALL["tp-mlp"]).verified is False


def test_the_reference_is_that_of_a_layer_written_out() -> None:
    x, up, down = (np.array(rows, "f4") for rows in ([[1, 2]], [[1, 0, 1], [0, 1, -1]], [[1, 1], [2, 0], [5, 5]]))
    np.testing.assert_array_equal(tp_mlp.feed_forward(x, ((up, down),), "relu", "f32"), [[5, 1]])
    gelu = tp_mlp.activate(np.array([-1.0, 0.0, 1.0, 3.0]), "gelu")
    np.testing.assert_allclose(gelu, [-0.1588, 0, 0.8412, 2.9964], atol=1e-4)


# moe-all-to-all ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "experts", "top_k"),
    [
        (2, 6, 3), (3, 3, 3), (2, 2, 1), (4, 8, 2),
    ],
)  # fmt: skip
def test_any_number_of_experts_and_choices(bench: Run, ranks: int, experts: int, top_k: int) -> None:
    assert bench("moe-all-to-all", ranks, tokens=12, hidden=16, experts=experts, top_k=top_k).verified


def test_every_choice_of_every_token_is_sent_and_nothing_else(bench: Run) -> None:
    """Capacity is not padded: the rows that experts got are the choices made."""
    result = bench("moe-all-to-all", **SMALL["moe-all-to-all"])
    assert sum(row["rows"] for row in result.rows) == 12 * 2


def test_ranks_whose_experts_nobody_chose(bench: Run) -> None:
    """The gate prefers the first expert so much that the second rank gets nothing, and still gets its own rows back."""
    result = bench("moe-all-to-all", tokens=12, hidden=16, experts=2, top_k=1, skew=100.0)
    assert result.verified
    assert [row["rows"] for row in result.rows] == [12, 0]


def test_time_depends_on_the_routing(bench: Run) -> None:
    """The same shapes with a skewed gate: one expert has all to do, so it takes longer, and the others nothing."""
    even, skewed = (
        bench("moe-all-to-all", tokens=256, hidden=128, experts=4, top_k=1, skew=skew, dtype="f32").rows
        for skew in (0.0, 100.0)
    )
    assert [row["rows"] for row in skewed] == [256, 0]
    assert skewed[0]["experts_ns"] > 1.5 * even[0]["experts_ns"]
    assert skewed[1]["experts_ns"] == 0


def test_a_route_by_hand() -> None:
    gates = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0.0, 0.0], [0.0, 0.6, 0.1, 0.3]], "f4")
    route = moe_all_to_all.Route.of(gates, 2)
    assert route.token.tolist() == [1, 1, 2, 0, 0, 2], "rows by expert, tokens in order"
    assert route.counts.tolist() == [1, 2, 1, 2]
    assert route.place.tolist() == [[4, 0, 2], [3, 1, 5]]
    np.testing.assert_allclose(route.weight, [[4 / 7, 0.5, 2 / 3], [3 / 7, 0.5, 1 / 3]], rtol=1e-6)


def test_a_row_that_comes_back_to_the_wrong_token_is_found(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    right = moe_all_to_all.Route.of

    def wrong(gates: Any, top_k: int) -> Any:
        route = right(gates, top_k)
        route.place[0, :2] = route.place[0, 1::-1]
        return route

    monkeypatch.setattr(moe_all_to_all.Route, "of", wrong)
    assert bench("moe-all-to-all", **SMALL["moe-all-to-all"]).verified is False


def test_routing_needs_data(plugins: Plugins) -> None:
    with pytest.raises(NoDataError) as caught:
        run("moe-all-to-all", "tiny", SMALL["moe-all-to-all"], plugins=plugins, data=False)
    assert str(caught.value).splitlines()[0] == (
        "tensor 'gates of rank 0' has no data in a run that keeps shapes only; leave out --no-data to read it."
    )


# dp-gradients -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bucket", "communication_pes"), [(1, 1), (2, 3), (5, 2)]
)
def test_gradients_are_right_in_any_buckets_on_any_pes(bench: Run, bucket: int, communication_pes: int) -> None:
    result = bench(
        "dp-gradients", 3, tokens=5, hidden=10, layers=4, bucket=bucket, communication_pes=communication_pes
    )
    assert result.verified
    assert result.verification.checked == 2 * 3 * -(-4 // bucket), "each bucket of each rank, alone and overlapped"


def test_gradients_by_differences() -> None:
    """numpy's gradients are those of the loss sum(last * out), nudged one weight at a time, in f64."""
    rng = np.random.default_rng(5)
    weights = [rng.standard_normal((3, 3)) for _ in range(3)]
    x, last = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))

    def forward() -> list[Any]:
        found = [x]
        for weight in weights:
            found.append(np.maximum(found[-1] @ weight, 0) if len(found) < 3 else found[-1] @ weight)
        return found

    found = dp_gradients.gradients(forward()[:3], weights, last, "f32")
    for layer, place in ((0, (1, 2)), (1, (0, 0)), (2, (2, 1))):
        losses = []
        for nudge in (1e-6, -1e-6):
            weights[layer][place] += nudge
            losses.append(np.sum(last * forward()[3]))
            weights[layer][place] -= nudge
        assert found[layer][place] == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-4)


def test_the_pes_are_parted(bench: Run) -> None:
    assert dp_gradients.part_pes(2, 4, 3) == ((2, 3, 7), (0, 1, 4, 5, 6))
    result = bench("dp-gradients", **SMALL["dp-gradients"])
    pes_of = {
        name: {op.component_id.rpartition(".")[0] for op in result.op_log if op.op_name == name}
        for name in ("gemm_f32", "ipcq_send")
    }
    assert pes_of["gemm_f32"] == {f"sip{sip}.cube0.pe{pe}" for sip in (0, 1) for pe in (0, 1)}
    assert pes_of["ipcq_send"] == {f"sip{sip}.cube0.pe{pe}" for sip in (0, 1) for pe in (2, 3)}


def test_sums_that_do_not_see_the_new_gradients_are_found(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the second backward pass the third phase would add up what the second one left: too large."""
    right, calls = dp_gradients.Share.backward, {}

    def once(self: Any, rt: Any, number: int) -> None:
        calls[rt, number] = calls.get((rt, number), 0) + 1
        if calls[rt, number] == 1:
            right(self, rt, number)

    monkeypatch.setattr(dp_gradients.Share, "backward", once)
    assert bench("dp-gradients", **SMALL["dp-gradients"]).verified is False


def hides(result: RunResult) -> None:
    """Assert that the longer of the two hides most of the other one."""
    assert result.verified
    compute, communicate, overlapped = (row["time_ns"] for row in result.rows)
    assert overlapped <= 1.1 * max(compute, communicate)
    assert overlapped < 0.9 * (compute + communicate)
    assert overlapped >= max(compute, communicate), "nothing is faster with company"


def test_communication_hides_behind_the_backward_pass_on_a_small_machine(bench: Run) -> None:
    result = bench("dp-gradients", hidden=64, communication_pes=1)
    assert [row["pes"] for row in result.rows] == [3, 1, 4]
    hides(result)


@pytest.mark.parametrize("sips", [2, 4])
def test_communication_hides_behind_the_backward_pass(bench: Run, sips: int) -> None:
    """With its default parameters on the default machine, and on one with twice the ranks."""
    result = bench("dp-gradients", sips, "default")
    assert [row["pes"] for row in result.rows] == [24, 8, 32]
    hides(result)


def test_nothing_hides_where_one_bucket_has_all_gradients(bench: Run) -> None:
    result = bench("dp-gradients", hidden=32, tokens=64, layers=6, bucket=6, communication_pes=1)
    compute, communicate, overlapped = (row["time_ns"] for row in result.rows)
    assert overlapped == pytest.approx(compute + communicate, rel=0.1)
