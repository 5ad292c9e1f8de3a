"""Verdicts on runs with one planted cause each: what limits is named, with its line, and what to try follows."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import kernbench as kb
from kernbench_builtin.explain.advice.unit_times import all_trips, of_pe
from kernbench_builtin.explain.verdict import RunVerdict, with_data
from kernbench_builtin.pages.report.notebook import picture
from kernbench_core.cli import main
from kernbench_core.compute.verification import Verification
from kernbench_core.errors import LimitError

LARGE = (512, 512)


def verdict(kernel: Any, programs: int = 4) -> RunVerdict:
    """Run a kernel over two matrices on the smallest machine; return the verdict."""

    def bench(rt: Any) -> None:
        a, c = rt.zeros(LARGE, "f16", name="a"), rt.zeros(LARGE, "f16", name="c")
        rt.launch(kernel, a, c, grid=(programs,))

    found = kb.run(bench, "tiny", data=False).part(RunVerdict)
    assert found is not None
    return found


def rules(found: RunVerdict) -> list[str]:
    return [each.rule for each in found.advice if each.about == "kernel"]


def streams(a: Any, c: Any, tl: Any) -> None:
    """Load tiles one after another, and work on each."""
    at = a + tl.program_id(0) * 128 * 512
    total = tl.zeros((128, 128), "f32")
    for k in range(4):
        tile = tl.load(at + k * 128, shape=(128, 128), strides=(512, 1))
        total = total + tile
    tl.store(c + tl.program_id(0) * 128 * 128, tl.cast(total, "f16"))


def streams_ahead(a: Any, c: Any, tl: Any) -> None:
    """Do the same with all loads under way."""
    at = a + tl.program_id(0) * 128 * 512
    tiles = [tl.load(at + k * 128, shape=(128, 128), strides=(512, 1), wait=False) for k in range(4)]
    total = tl.zeros((128, 128), "f32")
    for tile in tiles:
        total = total + tile
    tl.store(c + tl.program_id(0) * 128 * 128, tl.cast(total, "f16"))


def multiplies(a: Any, c: Any, tl: Any) -> None:
    """Multiply one block many times."""
    tile = tl.load(a, shape=(128, 128), strides=(512, 1))
    for _ in range(8):
        tile = tl.cast(tl.dot(tile, tile), "f16")
    tl.store(c + tl.program_id(0) * 128 * 128, tile)


def exponentiates(a: Any, c: Any, tl: Any) -> None:
    """Keep the vector unit at work."""
    tile = tl.load(a, shape=(32, 32), strides=(512, 1))
    for _ in range(20):
        tile = tl.exp(tile)
    tl.store(c + tl.program_id(0) * 1024, tile)


def waits_for_a_neighbour(a: Any, c: Any, tl: Any) -> None:
    """Send blocks round and round."""
    me, programs = tl.program_id(0), tl.num_programs(0)
    tile = tl.full((64, 64), 1.0, "f16")
    for _ in range(4):
        tl.send(tile, (me + 1) % programs)
        tile = tl.recv((64, 64), "f16", (me - 1) % programs)
    tl.store(c + me * 4096, tile)


def test_loads_that_nothing_is_computed_under() -> None:
    """Are to be issued ahead; where they are, nobody says so."""
    before, after = verdict(streams), verdict(streams_ahead)
    assert "loads-ahead" in rules(before)
    assert "loads-ahead" not in rules(after)
    assert before.kernel_ns is not None and after.kernel_ns is not None
    assert after.kernel_ns < 0.95 * before.kernel_ns
    assert before.limiter is not None and "tl.load" in before.limiter.calls


def test_products_limit() -> None:
    """With the line of the product, and no word on loads."""
    found = verdict(multiplies)
    assert found.limiter is not None
    line = multiplies.__code__.co_firstlineno + 4
    assert (found.limiter.kind, found.limiter.calls) == ("product", ("tl.dot",))
    assert found.limiter.lines == (f"test_verdict.py:{line}",)
    assert not {"loads-ahead", "moved-again", "far-cube"} & {*rules(found)}


def pages_of_one_load_each(a: Any, c: Any, tl: Any) -> None:
    """Load bytes of another page each time."""
    for row in range(16):
        tl.load(a + (tl.program_id(0) * 16 + row) * 32768, shape=(64,))


def rows_of_one_page(a: Any, c: Any, tl: Any) -> None:
    """Load bytes of one page."""
    for _ in range(16):
        tl.load(a + tl.program_id(0) * 16 * 32768, shape=(64,))


@pytest.mark.parametrize(
    ("kernel", "cause", "setting"),
    [
        (pages_of_one_load_each, "translation of addresses (pe_mmu)", "components.pe_mmu.params.walk_time=1 ps"),
        (
            rows_of_one_page,
            "the latency of the way there and back, memory's too",
            "components.hbm_ctrl.params.overhead=1 ps",
        ),
    ],
)
def test_what_loads_are_made_of_gains_when_it_goes(kernel: Any, cause: str, setting: str) -> None:
    """More than the other cause does."""

    def kernel_ns(*sets: str) -> float:
        def bench(rt: Any) -> None:
            rt.launch(kernel, rt.zeros((64, 32768), "f16"), rt.zeros(LARGE, "f16"), grid=(4,))

        found = kb.run(bench, "tiny", set=sets, data=False)
        if not sets:
            told = found.part(RunVerdict)
            assert told is not None and told.limiter is not None and told.limiter.cause == cause
        return found.phases["kernel"]

    both = "components.pe_mmu.params.walk_time=1 ps", "components.hbm_ctrl.params.overhead=1 ps"
    assert kernel_ns(setting) == min(kernel_ns(each) for each in both) < 0.95 * kernel_ns()


def test_a_vector_unit_limits() -> None:
    """With the op that most of it is; there is nothing to say of an op that has no cheaper one."""
    found = verdict(exponentiates)
    assert found.limiter is not None and found.limiter.kind == "compute"
    assert "tl.exp (test_verdict.py:" in found.limiter.sentence
    assert not rules(found)


@pytest.mark.parametrize(("programs", "rule"), [(2, "idle-pes"), (3, ""), (5, "last-round"), (4, ""), (8, "")])
def test_a_grid_that_leaves_pes_without_work(programs: int, rule: str) -> None:
    """Of four PEs."""
    found = [each for each in rules(verdict(multiplies, programs=programs)) if each in ("idle-pes", "last-round")]
    assert found == ([rule] if rule else [])


def test_vector_work_of_a_last_round_is_not_to_be_split() -> None:
    """Of five programs on four PEs: a row that is split takes as long, and its halves are to be joined."""
    assert "last-round" not in rules(verdict(exponentiates, programs=5))


def test_pes_of_launches_side_by_side_are_at_work() -> None:
    """Two launches on two of four PEs each, one beside the other, or one after it."""

    def bench(rt: Any, wait: bool) -> None:
        a, c = rt.zeros(LARGE, "f16", name="a"), [rt.zeros(LARGE, "f16", name=f"c{half}") for half in (0, 1)]
        for half in (0, 1):
            rt.launch(multiplies, a, c[half], grid=(2,), pes=[2 * half, 2 * half + 1], wait=wait)
        rt.wait_all()

    beside, after = (kb.run(bench, "tiny", {"wait": wait}, data=False).part(RunVerdict) for wait in (False, True))
    assert beside is not None and after is not None
    assert "idle-pes" not in rules(beside)
    assert "idle-pes" in rules(after)


def test_data_in_another_package() -> None:
    """Where the tensors are all over, and the programs in the first package."""

    def bench(rt: Any, near: bool) -> None:
        a = rt.zeros(LARGE, "f16", name="a", device="sip:0" if near else "sip:1")
        c = rt.zeros(LARGE, "f16", name="c", device="sip:0")
        rt.launch(streams, a, c, grid=(4,))

    far, near = (kb.run(bench, "default", {"near": near}, data=False).part(RunVerdict) for near in (False, True))
    assert far is not None and near is not None and far.kernel_ns is not None and near.kernel_ns is not None
    assert "far-package" in rules(far)
    assert "far-package" not in rules(near)
    assert near.kernel_ns < 0.95 * far.kernel_ns


def test_messages_limit() -> None:
    """From PE to PE; nothing is said of it where each sends and receives as many."""
    found = verdict(waits_for_a_neighbour)
    assert found.limiter is not None and found.limiter.kind == "message"
    assert not rules(found)


def gathers_columns(a: Any, c: Any, tl: Any) -> None:
    """Load columns, element by element."""
    at = tl.program_id(0) * 8
    for column in range(4):
        tile = tl.load(a + at + column + tl.arange(0, 128) * 512)
        tl.store(c + at * 512 + column * 128, tile)


def loads_little(a: Any, c: Any, tl: Any) -> None:
    """Load short rows one after another."""
    at = tl.program_id(0) * 512
    for row in range(8):
        tl.store(c + at + row * 64, tl.load(a + at + row * 64, shape=(64,)))


def in_place(a: Any, c: Any, tl: Any) -> None:
    """Change a block in place, each byte loaded and stored once."""
    at = a + tl.program_id(0) * 128 * 512
    tl.store(at, tl.load(at, shape=(128, 512)))


def test_pieces_and_short_transfers() -> None:
    """Scattered bytes are told apart from blocks that are small, and from none of both."""
    assert "scattered" in rules(verdict(gathers_columns))
    assert "small-transfers" in rules(verdict(loads_little))
    assert not {"scattered", "small-transfers", "moved-again"} & {*rules(verdict(in_place))}


def triangular(a: Any, c: Any, tl: Any) -> None:
    """Do as many products as the program's number says."""
    tile = tl.full((64, 64), 1.0, "f16")
    for _ in range(4 * tl.program_id(0) + 1):
        tile = tl.cast(tl.dot(tile, tile), "f16")
    tl.store(c + tl.program_id(0) * 4096, tile)


def late(a: Any, c: Any, tl: Any) -> None:
    """Have each wait for the one before it, with the same work."""
    me = tl.program_id(0)
    if me:
        tl.recv((8,), "f16", me - 1)
    tile = tl.full((64, 64), 1.0, "f16")
    tl.store(c + me * 4096, tl.cast(tl.dot(tile, tile), "f16"))
    if me < 3:
        tl.send(tl.full((8,), 1.0, "f16"), me + 1)


def test_uneven_work_is_no_wait_for_others() -> None:
    """A PE that has more to do is named; one that waits is not."""
    assert "uneven" in rules(verdict(triangular))
    assert "uneven" not in rules(verdict(late))


def test_wrong_data_comes_first() -> None:
    """Before any time."""

    def bench(rt: Any) -> None:
        x = rt.zeros((64,), "f32", name="x")
        rt.check(x, rt.rng.random(64).astype("f4") + 1)

    result = kb.run(bench, "tiny", verify_data=True)
    found = result.part(RunVerdict)
    assert found is not None
    assert found.lines[0] == "DATA IS WRONG in tensor 'x': make it right first."
    (failure,) = result.failures
    assert result.to_json()["failures"] == [failure] and failure.startswith("tensor 'x', checked at ")
    assert found.lines[1].endswith("; no kernel ran to its end.")


def test_a_kernel_that_does_nothing_ran_to_its_end() -> None:
    """It took no time, as its launch says, and not none."""

    def nothing(x: Any, tl: Any) -> None:
        pass

    def bench(rt: Any) -> None:
        rt.launch(nothing, rt.zeros((64,)), grid=(1,))

    result = kb.run(bench, "tiny")
    found = result.part(RunVerdict)
    assert found is not None and [each.time_ns for each in result.launches] == [found.kernel_ns] == [0.0]
    assert found.lines[0] == "kernel 0 ns; data not verified."


def test_wrong_ops_come_first_too() -> None:
    """What is computed anew in another way gives something else, whatever the data of tensors."""
    result = kb.run("vector-add", "tiny", {"n": 64}, verify_data=True)
    (record, *_) = (each for each in result.op_log if each.op_name == "add")
    told = f"{record}, which gives f32, must give what it gives by itself, but 1 of 64 elements differs"
    wrong = attrs.evolve(result.correctness, op_verification=Verification(False, 32, 1.0, (told,)))
    found = with_data(verdict(exponentiates), attrs.evolve(result, correctness=wrong))
    assert found.lines[0] == f"OPS ARE WRONG in {record}: make it right first."


def test_races_come_first() -> None:
    """Whatever the data is."""

    def races(a: Any, c: Any, tl: Any) -> None:
        tl.store(c, tl.full((16,), 1.0, "f16"))

    found = verdict(races)
    assert found.lines[0].startswith("RACE: two programs' tl.store of c[0, 0] (test_verdict.py:")
    assert found.lines[0].endswith(
        ") have no order: make it right first; a message (tl.send, tl.recv) or a launch that the host waits for in "
        "between orders them."
    )
    assert found.lines[1].endswith("; data not verified.") and not found.right and found.data_right


def test_several_kernels_name_the_one_that_takes_most(capsys: pytest.CaptureFixture[str]) -> None:
    """And how much it takes of all; the roof is over all of them."""

    def bench(rt: Any) -> None:
        a, c = rt.zeros(LARGE, "f16", name="a"), rt.zeros(LARGE, "f16", name="c")
        rt.launch(streams, a, c, grid=(4,))
        rt.launch(multiplies, a, c, grid=(4,))
        rt.launch(multiplies, a, c, grid=(4,))

    result = kb.run(bench, "tiny", data=False)
    found = result.part(RunVerdict)
    assert found is not None and found.limiter is not None
    assert found.kernel.startswith("multiplies, 2 launches and ")
    own = sum(launch.time_ns for launch in result.launches if launch.kernel == "multiplies")
    assert f"{own / result.phases['kernel']:.0%} of the time of all kernels" in found.kernel
    assert found.limiter.kind == "product"


def test_launches_at_the_same_time_count_once() -> None:
    """Of two ranks that run one kernel side by side: its share is that of the time in which either does."""

    def bench(rt: Any) -> None:
        a, c = ([rt.zeros(LARGE, "f16", name=f"{name}{sip}", device=sip) for sip in (0, 1)] for name in "ac")
        for handle in [rt.launch(multiplies, a[sip], c[sip], grid=(4,), device=sip, wait=False) for sip in (0, 1)]:
            rt.wait(handle)
        rt.launch(streams, a[0], c[0], grid=(4,), device=0)

    result = kb.run(bench, "tiny", data=False, set=("system.sips=2",))
    found = result.part(RunVerdict)
    first, second, _ = result.launches
    assert found is not None and second.started_ns < first.ended_ns
    share = (max(first.ended_ns, second.ended_ns) - first.started_ns) / result.phases["kernel"]
    assert share < 0.9
    assert found.kernel == f"multiplies, 2 launches and {share:.0%} of the time of all kernels: "


def test_launches_without_any_op_have_a_verdict_too() -> None:
    """Two at the same time, as for what a launch takes: no record has a template that says what it is."""

    def nothing(tl: Any) -> None:
        """Do nothing."""

    def bench(rt: Any) -> None:
        for _ in range(2):
            rt.launch(nothing, wait=False)
        rt.wait_all()

    found = kb.run(bench, "tiny").part(RunVerdict)
    assert found is not None and found.kernel_ns > 0


def test_pages_and_cells_begin_with_it(tmp_path: Path) -> None:
    """Before any figure."""
    page = tmp_path / "page.html"
    result = kb.run("gemm", "tiny", {"M": 128, "N": 128, "K": 128}, report=page)
    said = result.verdict.lines[1]
    for html in (page.read_text(), picture(result) or ""):
        assert 0 < html.index(said) < html.index('<dl class="figures">')


def test_a_comparison_says_what_limits_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Below the total time."""
    assert main(["diff", "gemm", "--topology", "tiny", "-p", "M=128", "--b-param", "M=256"]) == 0
    told = capsys.readouterr().out.splitlines()
    before, after = (next(line for line in told if line.startswith(f"{side}: ")) for side in ("before", "after"))
    assert "the slowest PE spends " in before and "the slowest PE spends " in after


def test_a_saved_run_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its folder, and as what --json printed; the last lines of a run are its verdict; a terminal wraps at words."""
    asked = ["run", "gemm", "--topology", "tiny", "-p", "M=128", "-p", "N=128", "-p", "K=128"]
    assert main([*asked, "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(printed) if line.startswith("kernel "))
    assert main(["explain", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "gemm on tiny"
    assert told[1:3] == printed[at : at + 2]
    assert any(line.startswith("slowest PE of gemm_kernel, sip") for line in told)
    assert main([*asked, "--json"]) == 0
    (tmp_path / "run.json").write_text(capsys.readouterr().out)
    assert main(["explain", str(tmp_path / "run.json")]) == 0
    assert capsys.readouterr().out.splitlines() == told
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["explain", str(tmp_path / "run")]) == 0
    assert terminal.getvalue().split() == " ".join(told).split()
    assert max(map(len, terminal.getvalue().splitlines())) <= 60 < max(map(len, told))


@pytest.mark.filterwarnings("ignore:the run in .* cannot be run again")
def test_paths_of_launches_that_are_alike_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And those of many that differ not all; one PE has a program, and does not have it."""

    def bench(rt: Any) -> None:
        x = rt.tensor((4096,), "f32", name="x", resident=True)
        for times in (*([1] * 4), *range(2, 12)):
            rt.launch(lambda x, times, tl: [tl.load(x, shape=(64,)) for _ in range(times)], x, times, grid=(1,))

    kb.run(bench, "tiny", data=False, out=tmp_path / "run")
    assert main(["explain", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().out.splitlines()
    heads = [line for line in told if line.startswith("slowest PE of ")]
    assert len(heads) == 8 and told[-1].startswith("and ") and told[-1].endswith(" more launches; --json has them")
    alike = [int(head.split()[-3]) if head.endswith(" launches alike") else 1 for head in heads]
    assert max(alike) >= 3 and sum(alike) + int(told[-1].split()[1]) == 14
    assert any("1 of 4 PEs has a program" in line for line in told)


@pytest.mark.filterwarnings("ignore:the run in .* cannot be run again")
@pytest.mark.parametrize("sends", [True, False])
def test_what_a_sender_did_is_not_said_of_the_slowest_pe(
    sends: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """PE 1 only waits for a message of what PE 0 loads; without messages, its time is its own."""

    def kernel(x: Any, tl: Any) -> None:
        if tl.program_id(0) == 0 or not sends:
            block = tl.load(x, shape=(8192,))
            if sends:
                tl.send(block, 1)
        else:
            tl.recv((8192,), "f32", 0)

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.tensor((8192,), "f32", name="x"), grid=(2,))

    found = kb.run(bench, "tiny", data=False, out=tmp_path / "run", report=tmp_path / "page.html")
    if sends:
        assert not [op for op in found.ops if op["component"] == f"{found.launches[0].last}.pe_dma"]
    assert main(["explain", str(tmp_path / "run")]) == 0
    head = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("slowest PE of kernel, "))
    page = (tmp_path / "page.html").read_text()
    assert found.verdict.lines[1].startswith("the slowest PE and those that it waits for spend ") == sends
    assert (", and those that it waits for, " in head) == sends
    last = f"<p>The slowest PE, {found.launches[0].last}"  # as the page has the lines of this test, too
    assert f"{last}{', and those that it waits for: where the' if sends else ': where its'} " in page
    share = f"{found.verdict.limiter.share:.0%} of the"
    assert f"<span>{share} {'time of the slowest PE and those that it waits for' if sends else 'slowest PE'}" in page


def test_a_run_without_a_verdict_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was made without the plug-in."""
    out = str(tmp_path / "o")
    assert main(["run", "gemm", "--topology", "tiny", "--no-plugin", "explain", "--out", out, "-q"]) == 0
    capsys.readouterr()
    assert main(["explain", out]) == 2
    assert capsys.readouterr().err == (
        f"error: run {out!r} must hold a verdict, and has none, as plug-in builtin.explain was left out when it was "
        "made; run it again.\n"
    )


def test_a_run_that_a_limit_ends_says_what_limited_it() -> None:
    """By the paths of the PEs until then, or that nothing is known where no command had ended."""
    dot = f"computing tl.dot (test_verdict.py:{multiplies.__code__.co_firstlineno + 4})."
    nothing = "what limited it until then cannot be said: no command of a kernel had ended."
    told = {600: ("multiplies, which had not ended on 4 PEs: the slowest PE spends ", dot), 40: (nothing, nothing)}

    def bench(rt: Any) -> None:
        a, c = (rt.tensor(LARGE, "f16", name=name, resident=True) for name in "ac")
        rt.launch(multiplies, a, c)

    for events, (begin, end) in told.items():
        with pytest.raises(LimitError) as limited:
            kb.run(bench, "tiny", data=False, max_events=events)
        last = str(limited.value).splitlines()[-1].strip()
        assert last.startswith(begin) and last.endswith(end)


def test_of_very_many_ops_the_times_are_told_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Causes are looked for in all ops at once, which has to fit into memory."""
    whole = verdict(multiplies)
    monkeypatch.setattr("kernbench_builtin.explain.verdict._MOST_OPS", 8)
    found = verdict(multiplies)
    assert whole.limiter is not None and found.limiter is not None
    assert (found.kernel_ns, found.limiter.lines) == (whole.kernel_ns, whole.limiter.lines)
    assert (found.roof_ns, found.limiter.cause, found.advice) == (None, "", ())


def test_a_dma_of_somebody_else_may_call_anything_trips() -> None:
    """Of it nothing is known."""
    session: Any = SimpleNamespace(hardware=SimpleNamespace(components={"pe0.pe_dma": SimpleNamespace(trips=5)}))
    parts, ways = of_pe(session, "pe0")
    assert all_trips(session) == []
    assert not any(part for kind in parts.values() for part in kind.values()) and not any(ways.values())
