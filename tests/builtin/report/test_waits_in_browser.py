"""What the page says held the critical path up, and how many ops a kernel line made, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.pages.timeline import Timeline
from kernbench_core.plugins import Plugins
from kernbench_core.units import format_time

pytestmark = pytest.mark.browser
TIMELINE = "article[data-section=timeline]"
TOLD = f"{TIMELINE} .span-detail"
Run = Callable[..., tuple[Any, Any]]


def crowd(x_ptr: Any, n: int, tl: Any) -> None:
    """Load the same tile on every PE, and multiply what is there: a line waits for what another one asked for."""
    for _ in range(3):
        tile = tl.load(x_ptr, shape=(n, n), wait=False)
        tl.dot(tile, tile)


def crowd_bench(rt: Any) -> None:
    """Have all PEs load a tile of one memory."""
    rt.launch(crowd, rt.tensor(np.zeros((n := 32 * rt.n_pes, 32), np.float16)), n // rt.n_pes)


@pytest.fixture
def run_opened(opened: Callable[..., Any], plugins: Plugins, tmp_path: Path) -> Run:
    """Run a bench on the smallest machine and open its page; return both."""

    def run_and_open(bench: Any, params: Any = None, **options: Any) -> tuple[Any, Any]:
        file = tmp_path / "page.html"
        options = {"set": ("components.hbm_ctrl.params.channel_hash=off",), **options}  # so that loads meet
        run = kb.run(bench, "tiny", params, plugins=plugins, explain=True, timeline=True, report=file, **options)
        return run, opened(file)

    return run_and_open


def waits(page: Any) -> list[tuple[Any, list[str], str]]:
    """Return each segment that waited, what the page says held its place, and what it says is missing."""
    found = []
    for number, segment in enumerate(page.evaluate("kernbench.run(0).timeline.data.path")):
        if segment.get("waited_at"):
            page.evaluate(f"kernbench.run(0).timeline.chooseSegment({number})")
            told = page.locator(TOLD)
            assert f"it waited most at {segment['waited_at'].replace('->', ' → ')}, " in told.inner_text()
            found.append((segment, told.locator("li").all_inner_texts(), " ".join(told.locator("p").all_inner_texts())))
    return found


def passed(timeline: Timeline, place: str, since: float, until: float) -> dict[tuple[int, int], list[float]]:
    """Return when each op was on a wire or on any channel of a place in a stretch of time: the begins in ns."""
    spans, found = timeline.spans, dict[tuple[int, int], list[float]]()
    for row in range(len(spans)):
        node = timeline.tracks[spans.track[row]].node
        if node.partition("#")[0] == place and since < spans.end_ns[row] and spans.start_ns[row] < until:
            found.setdefault(divmod(int(spans.op[row]), 1 << 32), []).append(float(spans.start_ns[row]))
    return found


def test_who_was_at_a_memory_is_named(run_opened: Run) -> None:
    """The last of four PEs that load one tile waited for the three before it, each on all channels of that memory."""
    run, page = run_opened(crowd_bench)
    first = next(each for each in waits(page) if "hbm_ctrl" in each[0]["waited_at"])
    segment, held, missing = first
    pe, issue = segment["op_id"]
    seen = passed(run.timeline, segment["waited_at"], segment["from_ns"], segment["to_ns"])
    turn = max(seen[pe, issue])
    before = {op for op, begins in seen.items() if min(begins) < turn and op != (pe, issue)}
    assert len(before) == 3
    assert {(int(n), int(o)) for text in held for o, n in re.findall(r"op (\d+) of PE (\d+)", text)} == before
    assert all(text.startswith("read request, op ") and " on 4 channels, from " in text for text in held)
    assert missing == ""
    page.locator(TOLD).locator("li button").first.click()
    assert page.evaluate("kernbench.run(0).timeline.span") is not None


def test_an_op_waits_for_its_own_earlier_parts(run_opened: Run) -> None:
    """A store goes over one wire in parts, and nothing else is there: the last waited for those before it."""
    run, page = run_opened("gemm-naive", {"M": 128, "N": 128, "K": 128})
    (store,) = [each for each in waits(page) if each[0]["sort"] == "write"]
    segment, held, missing = store
    seen = passed(run.timeline, segment["waited_at"], segment["from_ns"], segment["to_ns"])
    assert list(seen) == [tuple(segment["op_id"])] and len(seen[tuple(segment["op_id"])]) > 1
    assert len(held) == 1 and held[0].startswith("its own earlier parts, for ")
    timeline = "kernbench.run(0).timeline"
    page.evaluate(f"{timeline}.chooseSegment({timeline}.data.path.findIndex((each) => each.sort === 'write'))")
    turn = max(seen[tuple(segment["op_id"])]) - segment["from_ns"]
    within = f"which was held, in the {format_time(turn)} from its begin to its last turn there, by"
    assert within in " ".join(page.locator(TOLD).locator("h5").all_inner_texts())
    assert missing == ""


def test_every_wait_of_a_crowded_machine_has_its_reason(run_opened: Run) -> None:
    """Whoever is named was at that place in that time, and nobody is named who came later than the one that waited."""
    run, page = run_opened("gemm-naive", {"M": 256, "N": 256, "K": 128, "tile_m": 32})
    found = waits(page)
    assert len(found) > 5 and {"->" in each[0]["waited_at"] for each in found} == {True, False}
    for segment, held, missing in found:
        assert held and missing == ""
        seen = passed(run.timeline, segment["waited_at"], segment["from_ns"], segment["to_ns"])
        turn = max(each for each in seen[tuple(segment["op_id"])] if each <= segment["to_ns"])
        for text in held:
            named = re.search(r"op (\d+) of PE (\d+)", text)
            op = tuple(segment["op_id"]) if named is None else (int(named[2]), int(named[1]))
            assert (named is None) == text.startswith("its own earlier parts, ")
            assert min(seen[op]) < turn


def test_a_memory_that_does_not_note_for_whom_it_transfers(run_opened: Run) -> None:
    """Its transfers are told as what they are: of whom is not known, and the op that waited may be among them."""
    sets = {"components.hbm_ctrl.impl": "builtin.hbm_ctrl_bank"}
    page = run_opened("gemm-naive", {"M": 128, "N": 128, "K": 128}, set=sets)[1]
    found = [held for segment, held, _ in waits(page) if "hbm_ctrl" in segment["waited_at"].partition("->")[0]]
    assert found and all(len(held) == 1 for held in found)
    assert all(held[0].startswith("transfers of unknown ops, perhaps its own too, for up to ") for held in found)


def test_only_what_the_timeline_has_is_told(run_opened: Run) -> None:
    """Of a coarser level no wait has its reason; of a window only those that lie in it have all of it."""
    page = run_opened("gemm-naive", {"M": 128, "N": 128, "K": 128}, level="unit")[1]
    assert [each[1:] for each in waits(page)] == 3 * [([], "The timeline does not go down to it.")]
    page = run_opened("gemm-naive", {"M": 128, "N": 128, "K": 128}, window="6.2 us..6.3 us")[1]
    only = "The timeline is known from 6.2 us to 6.3 us only."
    found = [(bool(held), missing) for _, held, missing in waits(page)]
    assert found == [(False, only), (True, only), (False, only)]


def test_a_line_tells_how_many_ops_it_made(run_opened: Run) -> None:
    """Three on each of four PEs, however often it waited for what it needs besides."""
    run, page = run_opened(crowd_bench)
    spans = run.timeline.spans
    kernels = [track.id for track in run.timeline.tracks if track.kind == "kernel"]
    on = np.isin(spans.track, kernels)
    lines = [name.rpartition(":")[2] for name in run.timeline.lines]
    dot = next(i for i, text in enumerate(run.timeline.sources) if text.startswith("tl.dot"))
    assert int(np.count_nonzero(on & (spans.line == dot))) > 12
    page.wait_for_timeout(150)
    row = page.locator(f"{TIMELINE} .source tr.hot[aria-label^='line {lines[dot]}: ']")
    assert " over all PEs, 12 ops, " in row.get_attribute("aria-label")
    assert row.locator("title").first.text_content().endswith(" over all PEs, 12 ops, 97% of all")
