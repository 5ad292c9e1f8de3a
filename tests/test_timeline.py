"""What a timeline says of real runs, against the op log, the ledger of the wires, and the times of programs."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections import defaultdict
from functools import partial
from typing import Any

import attrs
import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.explain.explanation import Recorder
from kernbench_builtin.explain.ledger import queueing_places
from kernbench_builtin.explain.scratchpad_map import TcmRecorder
from kernbench_builtin.machines.figures.launch import FiguresMeter
from kernbench_builtin.machines.figures.tables import launches_of
from kernbench_builtin.pages.timeline import LEVELS, Timeline, TimelineRecorder
from kernbench_builtin.pages.timeline.notes import Notes
from kernbench_builtin.pages.timeline.timeline import FLOWS, op_of
from kernbench_builtin.pages.timeline.window import TimeWindow
from kernbench_core.host.session import GraphEngine
from kernbench_core.host.timing import resource_uses
from kernbench_core.messages import KernelLaunchMsg
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology

RUNS: dict[str, tuple[str, str, dict[str, object], tuple[str, ...]]] = {
    "gemm": ("gemm", "tiny", {"M": 128, "N": 128, "K": 256}, ()),
    "composite": ("gemm-composite", "tiny", {"M": 128, "N": 128, "K": 128}, ()),
    "banks": ("vector-add", "tiny", {"n": 4096}, ("components.hbm_ctrl.impl=builtin.hbm_ctrl_bank",)),
    "queues": ("tp-mlp", "default", {"tokens": 16, "hidden": 64, "ffn": 128, "layers": 1}, ()),
}

STAGES = {
    "TileToken/DMA_READ": "tile: DMA read", "TileToken/DMA_WRITE": "tile: DMA write", "TileToken/FETCH": "tile: fetch",
    "TileToken/GEMM": "tile: GEMM", "TileToken/MATH": "tile: math", "TileToken/STORE": "tile: store",
}  # fmt: skip
"""What people call the stages of a composite."""


@attrs.frozen
class Seen:
    """A run that was looked on at."""

    engine: GraphEngine
    timeline: Timeline


def engine_of(plugins: Plugins, name: str, observers: list[Any]) -> GraphEngine:
    bench, topology, params, sets = RUNS[name]
    config = configure(plugins, topology, sets=sets)
    graph = compile_topology(config, plugins)
    engine = GraphEngine(
        graph, plugins.components, plugins=plugins, observers=observers, data=False,
        scratchpads=TcmRecorder if observers else None, meter=FiguresMeter(),
    )  # fmt: skip
    engine.run(plugins.benches.load(bench), params)
    return engine


@pytest.fixture(scope="module", params=RUNS)
def seen(request: pytest.FixtureRequest, plugins: Plugins) -> Seen:
    """Run a bench and look on."""
    recorder = TimelineRecorder()
    engine = engine_of(plugins, request.param, [recorder])
    return Seen(engine, recorder.timeline(engine.shared.requests, engine.op_log, engine.device.recorder))


@pytest.mark.parametrize("name", RUNS)
def test_looking_on_changes_nothing(name: str, plugins: Plugins) -> None:
    """Op log, number of events and time are the same; alone, and beside the recorder of explanations."""
    plain = engine_of(plugins, name, [])
    for observers in ([TimelineRecorder()], [Recorder(), TimelineRecorder()], [TimelineRecorder("host"), Recorder()]):
        watched = engine_of(plugins, name, [*observers])
        assert watched.op_log.sha256() == plain.op_log.sha256()
        assert (watched.env.events, watched.env.now) == (plain.env.events, plain.env.now)


def rows(timeline: Timeline, kind: str) -> Any:
    """Return the numbers of the spans on tracks of a kind."""
    wanted = np.array([track.kind == kind for track in timeline.tracks])
    return np.flatnonzero(wanted[timeline.spans.track])


def test_spans_of_units_are_the_op_log(seen: Seen) -> None:
    """Every record, once, with its times, unit, name, op and bytes."""
    timeline, spans = seen.timeline, seen.timeline.spans
    found = Tally(
        (timeline.tracks[spans.track[row]].node, timeline.names[spans.name[row]], spans.start_ns[row],
         spans.end_ns[row], op_of(spans.op[row]), spans.nbytes[row])
        for row in rows(timeline, "unit")
    )  # fmt: skip
    assert found == Tally(
        (record.component_id, STAGES.get(record.op_name, record.op_name), record.t_start, record.t_end,
         record.stage_of or record.op_id, record.params.get("nbytes", 0))
        for record in seen.engine.op_log
    )  # fmt: skip


def test_spans_of_wires_carry_what_the_ledger_says(seen: Seen) -> None:
    """Each wire and channel by itself: bytes, and time that it was busy, which spans of one wire never share."""
    timeline, spans = seen.timeline, seen.timeline.spans
    nbytes: dict[str, int] = defaultdict(int)
    until: dict[str, float] = defaultdict(float)
    for row in [*rows(timeline, "wire"), *rows(timeline, "channel")]:
        node = timeline.tracks[spans.track[row]].node
        nbytes[node] += int(spans.nbytes[row])
        assert spans.start_ns[row] >= until[node] and spans.end_ns[row] >= spans.start_ns[row]
        until[node] = spans.end_ns[row]
    wires = {wire.name: wire for wire in seen.engine.hardware.wires if wire.busy_ns}
    assert dict(nbytes) == {name: wire.bytes_carried for name, wire in wires.items()}
    assert dict(until) == {name: wire.available_at for name, wire in wires.items()}


def test_bandwidths_integrate_to_bytes(seen: Seen) -> None:
    """A memory's is that of its channels together."""
    timeline = seen.timeline
    carried: dict[str, int] = defaultdict(int)
    for wire in seen.engine.hardware.wires:
        inside_a_pe = re.fullmatch(r"(.*\.pe\d+)\.\w+->\1\.\w+", wire.name)
        if not inside_a_pe and wire.busy_ns:
            carried[wire.name.partition("#")[0]] += wire.bytes_carried
    counted = {
        timeline.tracks[each.track].node: float(np.sum(each.values[:-1] * np.diff(each.times_ns))) / 1e9
        for each in timeline.counters
        if each.name == "bandwidth"
    }
    assert counted == pytest.approx(dict(carried), rel=1e-9)


def test_a_kernel_is_somewhere_all_the_time(seen: Seen) -> None:
    """The programs of a PE fill its launch, and the lines of a program fill that, without gaps."""
    timeline, spans = seen.timeline, seen.timeline.spans
    parts: dict[int, list[int]] = defaultdict(list)
    for row in rows(timeline, "kernel"):
        if spans.parent[row] >= 0:
            parts[int(spans.parent[row])].append(row)
    assert parts
    for whole, inside in parts.items():
        edges = [(spans.start_ns[row], spans.end_ns[row]) for row in inside]
        assert edges[0][0] == spans.start_ns[whole] and edges[-1][1] == spans.end_ns[whole]
        assert [end for _, end in edges[:-1]] == [start for start, _ in edges[1:]]
    tops = Tally(
        (timeline.tracks[spans.track[row]].node, spans.start_ns[row], spans.end_ns[row])
        for row in rows(timeline, "kernel")
        if spans.parent[row] < 0
    )
    sites = seen.engine.device.design.pes
    assert tops == Tally(
        (sites[pe].prefix, started, request.launch.ended_ns[pe])
        for request in seen.engine.shared.requests
        if isinstance(request, KernelLaunchMsg)
        for pe, started in request.launch.started_ns.items()
    )


def test_a_child_lies_in_its_parent(seen: Seen) -> None:
    """On the same track."""
    spans = seen.timeline.spans
    rows = np.flatnonzero(spans.parent >= 0)
    parent = spans.parent[rows]
    assert np.array_equal(spans.track[rows], spans.track[parent])
    assert np.all(spans.start_ns[parent] <= spans.start_ns[rows])
    assert np.all(spans.end_ns[rows] <= spans.end_ns[parent])


def test_arrows_pair_up(seen: Seen) -> None:
    """Each issue leads to the op of its line, requests and answers come in pairs, a receipt is of what was sent."""
    spans, flows = seen.timeline.spans, seen.timeline.flows
    assert np.all(flows.from_ns <= flows.to_ns)
    by_kind: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for kind, begin, end in zip(flows.kind.tolist(), flows.from_span.tolist(), flows.to_span.tolist(), strict=True):
        by_kind[FLOWS[kind]].append((begin, end))
    for begin, end in by_kind["issue"]:
        assert spans.op[begin] == spans.op[end] and spans.line[begin] == spans.line[end]
    memories = [Tally(int(pair[1 - at]) for pair in by_kind[kind]) for at, kind in enumerate(("request", "answer"))]
    assert memories[0].total() == memories[1].total() > 0
    told = sorted((op_of(spans.op[begin]), op_of(spans.op[end])) for begin, end in by_kind["send"])
    assert told == sorted(pairs_by_order(seen.engine))


def pairs_by_order(engine: GraphEngine) -> list[tuple[Any, Any]]:
    """Pair sends and receipts by the order of each queue: what is sent first is received first."""
    sent: dict[Any, list[Any]] = defaultdict(list)
    got: dict[Any, list[Any]] = defaultdict(list)
    for record in sorted((r for r in engine.op_log if r.op_id is not None), key=lambda r: r.op_id or (0, 0)):
        assert record.op_id is not None
        if record.op_name == "ipcq_send":
            sent[record.op_id[0], record.params["peer"], record.params["channel"]].append(record.op_id)
        elif record.op_name == "ipcq_recv":
            got[record.params["peer"], record.op_id[0], record.params["channel"]].append(record.op_id)
    return [pair for queue in sent for pair in zip(sent[queue], got[queue], strict=True)]


def test_lines_are_those_of_the_kernel(plugins: Plugins) -> None:
    """With the text that is there."""

    def kernel(x_ptr: Any, tl: Any) -> None:
        x = tl.load(x_ptr, shape=(16,))
        tl.store(x_ptr, x + 1)

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.tensor(np.zeros(16, np.float32)), grid=(1,))

    timeline = kb.run(bench, "tiny", timeline=True, plugins=plugins).timeline
    assert timeline is not None
    first = kernel.__code__.co_firstlineno
    assert timeline.lines == tuple(f"{__file__}:{first + number}" for number in (1, 2))
    assert timeline.sources == ("x = tl.load(x_ptr, shape=(16,))", "tl.store(x_ptr, x + 1)")


def test_a_window_notes_what_the_whole_has_of_it(plugins: Plugins) -> None:
    """The same spans, but for messages' numbers, which count from the window's begin."""
    whole, part = TimelineRecorder(), TimelineRecorder(window=TimeWindow(7_000.0, 8_000.0))
    engines = [engine_of(plugins, "gemm", [recorder]) for recorder in (whole, part)]
    cut, found = (
        recorder.timeline(engine.shared.requests, engine.op_log, engine.device.recorder)
        for recorder, engine in zip((whole, part), engines, strict=True)
    )
    several = len(cut.spans)
    cut = cut.window(7_000.0, 8_000.0).without_empty_tracks()
    found = found.without_empty_tracks()
    assert 0 < len(found.spans) == len(cut.spans) < several
    of_spans = ("start_ns", "end_ns", "line", "op", "nbytes", "parent")
    for column in of_spans:
        assert np.array_equal(getattr(found.spans, column), getattr(cut.spans, column)), column
    assert [found.tracks[track].node for track in found.spans.track] == [
        cut.tracks[track].node for track in cut.spans.track
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_a_coarser_level_is_the_finest_one_cut(level: str, plugins: Plugins) -> None:
    """What is noted down to a level is what the whole timeline has of it: but for arrows from and to wires."""
    whole, coarse = TimelineRecorder(), TimelineRecorder(level)
    engines = [engine_of(plugins, "gemm", [recorder]) for recorder in (whole, coarse)]
    cut, found = (
        recorder.timeline(engine.shared.requests, engine.op_log, engine.device.recorder)
        for recorder, engine in zip((whole, coarse), engines, strict=True)
    )
    cut = cut.level(level)
    assert found.depth == cut.depth == level
    assert found.without_empty_tracks().tracks == cut.tracks
    for column in ("track", "start_ns", "end_ns", "line", "op", "nbytes", "parent"):
        assert np.array_equal(getattr(found.without_empty_tracks().spans, column), getattr(cut.spans, column)), column
    assert [found.names[name] for name in found.spans.name] == [cut.names[name] for name in cut.spans.name]
    counted = [[(each.name, *each.values.tolist()) for each in line.counters] for line in (found, cut)]
    assert Tally(counted[0]) == Tally(counted[1])


def test_what_is_too_much_is_not_noted_and_said(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    """From some time on; what began before it is there whole."""
    whole = TimelineRecorder()
    monkeypatch.setattr("kernbench_builtin.pages.timeline.recorder.Notes", partial(Notes, most=1000))
    part = TimelineRecorder()
    engines = [engine_of(plugins, "gemm", [recorder]) for recorder in (whole, part)]
    every, found = (
        recorder.timeline(engine.shared.requests, engine.op_log, engine.device.recorder)
        for recorder, engine in zip((whole, part), engines, strict=True)
    )
    assert every.notes == ()
    (note,) = found.notes
    told = re.fullmatch(
        r"what passes on channels and wires was noted until ([\d.]+) us only, (1,0\d\d) times; give a --window, or a "
        r"coarser --level\.",
        note,
    )
    assert told is not None
    passed = [*rows(found, "wire"), *rows(found, "channel")]
    assert len(passed) == int(told[2].replace(",", ""))
    until = float(told[1]) * 1000 - 1
    starts = [np.sort(line.spans.start_ns[[*rows(line, "wire"), *rows(line, "channel")]]) for line in (every, found)]
    assert np.array_equal(*(each[each < until] for each in starts))
    assert len(rows(found, "unit")) == len(rows(every, "unit"))


def test_places_were_as_busy_as_the_simulator_counted(seen: Seen) -> None:
    """Each wire, channel and unit, and as long as messages queued there."""
    activity, hardware = seen.timeline.activity, seen.engine.hardware
    assert activity is not None
    rows = {place: row for row, place in enumerate(activity.places)}
    uses = {use.name: use.busy_ns for use in resource_uses(hardware, hardware.env.now)}
    waits = {place.place: place.total_ns for place in queueing_places(hardware)}
    assert rows.keys() == uses.keys() | waits.keys()
    for table, counted in ((activity.busy_ns, uses), (activity.waiting_ns, waits)):
        for place, row in rows.items():
            assert table[row].sum(dtype=float) == pytest.approx(counted.get(place, 0.0), rel=1e-6), place


def test_a_unit_is_busy_when_the_op_log_says_so(seen: Seen) -> None:
    """The matrix and vector units in each window, where none of their ops overlap; the spans of wires that are held."""
    timeline, activity = seen.timeline, seen.timeline.activity
    assert activity is not None
    spans, edges = timeline.spans, activity.edges_ns
    compared = 0
    for track in timeline.tracks:
        mine = (spans.track == track.id) & (spans.parent < 0)
        start, end = spans.start_ns[mine], spans.end_ns[mine]
        if track.node not in activity.places or not len(start) or np.any(start[1:] < end[:-1]):
            continue
        busy = activity.busy_ns[activity.places.index(track.node)]
        if busy.sum() != pytest.approx((end - start).sum(), rel=1e-6):
            continue  # it came slowly
        for low, high in ((0, len(edges) - 1), (1, 2), (len(edges) // 3, len(edges) // 2)):
            covered = np.maximum(np.minimum(end, edges[high]) - np.maximum(start, edges[low]), 0.0).sum()
            assert busy[low:high].sum(dtype=float) == pytest.approx(covered, rel=1e-6, abs=1e-3), track.node
        compared += 1
    assert compared > 10


def test_launches_begin_and_end_at_edges(seen: Seen) -> None:
    """Between them places were as busy as the figures of the launch say, which are taken from the ledger."""
    activity = seen.timeline.activity
    assert activity is not None
    for launch in launches_of(seen.engine):
        low, high = np.searchsorted(activity.edges_ns, [launch.started_ns, launch.ended_ns])
        assert activity.edges_ns[[low, high]].tolist() == [launch.started_ns, launch.ended_ns]
        assert launch.busiest
        for use in launch.busiest:
            row = activity.places.index(use.name)
            assert activity.servers[row] == use.servers
            assert activity.busy_ns[row, low:high].sum(dtype=float) == pytest.approx(use.busy_ns, rel=0.02), use.name


def test_channels_alone_leave_wires_out(plugins: Plugins) -> None:
    """At a coarser level only what was looked at is told; of a window only what lies in it."""
    recorder = TimelineRecorder("channel")
    engine = engine_of(plugins, "gemm", [recorder])
    timeline = recorder.timeline(engine.shared.requests, engine.op_log)
    assert timeline.activity is not None and not any("->" in place for place in timeline.activity.places)
    assert any("#" in place for place in timeline.activity.places)
    units = timeline.level("unit").activity
    assert units is not None and not any("#" in place for place in units.places)
    assert timeline.level("kernel").activity is None
    cut = timeline.window(1000.0, 2000.0).activity
    assert cut is not None and (cut.edges_ns[0], cut.edges_ns[-1]) == (1000.0, 2000.0)


def test_what_a_program_waits_for_at_its_end_has_its_line(plugins: Plugins) -> None:
    """One stretch for each op that it left in flight, in order of issue; none for one that is there before another."""

    def kernel(x_ptr: Any, tl: Any) -> None:
        left = [tl.load(x_ptr, shape=(16,), wait=False)]
        left += [tl.load(x_ptr + 8192, shape=(4096,), wait=False)]
        left += [tl.load(x_ptr + 64, shape=(16,), wait=False)]
        left += [tl.load(x_ptr + 128, shape=(8000,), wait=False)]

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.tensor(np.zeros(16384, np.float32)), grid=(1,))

    result = kb.run(bench, "tiny", timeline=True, plugins=plugins)
    timeline = result.timeline
    assert timeline is not None
    spans, first = timeline.spans, kernel.__code__.co_firstlineno
    ends = [row for row in rows(timeline, "kernel") if timeline.names[spans.name[row]] == "end of the program"]
    told = [(op_of(spans.op[row]), timeline.lines[spans.line[row]], spans.end_ns[row]) for row in ends]
    expected, latest = [], 0.0
    back = spans.end_ns[ends[-1]] - max(op["t_end"] for op in result.ops)  # from the unit to who waits
    for op in result.ops:
        if op["t_end"] > latest:
            latest = op["t_end"]
            place = f"{__file__}:{first + 1 + op['issue']}"
            expected.append(((op["pe"], op["issue"]), place, latest + back))
    assert told == expected and len(expected) == 3 and 0 < back < 10
    issued = timeline.flows.from_span[timeline.flows.kind == FLOWS.index("issue")].tolist()
    assert len(issued) == 4 and not {*ends} & {*issued}


def test_an_op_has_its_line_where_asking_for_it_takes_no_time(plugins: Plugins) -> None:
    """And so have its stages and the end that waits for it; nothing of no length stands on the kernel's track."""
    sets = {"components.pe_cpu.params.dispatch_overhead": "0 ns"}
    size = {"M": 64, "N": 64, "K": 64}
    timeline = kb.run("gemm-composite", "tiny", size, timeline=True, set=sets, plugins=plugins).timeline
    assert timeline is not None
    spans = timeline.spans
    lines = {timeline.names[name]: line for name, line in zip(spans.name.tolist(), spans.line.tolist(), strict=True)}
    assert lines["composite_gemm"] == lines["tile: GEMM"] == lines["end of the program"] == 0
    assert timeline.sources[0].startswith("tl.composite(")
    assert all(spans.end_ns[row] > spans.start_ns[row] for row in rows(timeline, "kernel"))
