"""The recorder on a machine of toys: nothing changes, several may look on, and only one brings a clock."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.explain.explanation import Recorder
from kernbench_builtin.pages.timeline import TimelineRecorder
from kernbench_builtin.pages.timeline.instruments import noting_wire
from kernbench_builtin.pages.timeline.notes import Notes
from kernbench_core.environment import Environment
from kernbench_core.errors import UsageError
from kernbench_core.messages import MemoryReadMsg, MsgBase
from kernbench_core.values.region import Region
from kernbench_core.wire import Wire
from tests.builtin.working_machine import on_machine
from tests.core.toy_machine import toy_engine


def test_wires_are_plain_unless_somebody_looks_on() -> None:
    """And of another class down to each wire, or to channels inside components."""
    plain, watched = toy_engine(pes=1), toy_engine(pes=1, observers=[TimelineRecorder()])
    coarse = toy_engine(pes=1, observers=[TimelineRecorder("unit")])
    assert {type(wire) for wire in (*plain.hardware.wires, *coarse.hardware.wires)} == {Wire}
    assert Wire not in {type(wire) for wire in watched.hardware.wires}


def test_what_waits_for_a_wire_is_noted_until_it_goes_on() -> None:
    """The first one does not wait; the second while the first is on the wire; outside of a window nothing is noted."""
    for since, until, waits in ((0.0, math.inf, [7, 8.0, 10.0]), (10.0, 20.0, []), (0.0, 2.0, [])):
        notes, env = Notes(since, until), Environment()
        wire = noting_wire(notes)(env, 7, "a->b", 1.0, 3.0, arrive=lambda msg: None, on_head=False)
        for head in (0.0, 2.0):
            wire.send(MsgBase(nbytes=10), head, head)
        assert notes.waits.table().ravel().tolist() == waits and wire.waited_ns == 8.0


def test_two_clocks_are_refused() -> None:
    """Explanations bring one; a timeline takes the one that is there."""
    with pytest.raises(UsageError) as caught:
        toy_engine(pes=1, observers=[Recorder(), Recorder()])
    assert str(caught.value) == "observers of a run must bring one clock at most, not 2; leave one out."
    explained = Recorder()
    assert toy_engine(pes=1, observers=[TimelineRecorder(), explained]).env is explained.env
    assert type(toy_engine(pes=1, observers=[TimelineRecorder()]).env) is Environment


def test_a_copy_is_seen_on_every_wire() -> None:
    """From the host to the memory and back: each hop once, the message the same all along."""
    recorder = TimelineRecorder()
    engine = toy_engine(pes=1, observers=[recorder])
    start = engine.machine.design.address_map.encode(0, 0, "hbm0")
    engine.submit(MemoryReadMsg((Region(start, 512),)))
    engine.advance()
    timeline = recorder.timeline(engine.shared.requests, engine.op_log)
    spans = timeline.spans
    seen = [timeline.tracks[track].node for track in spans.track[np.argsort(spans.start_ns, kind="stable")].tolist()]
    there = ["host->sip0.io0.pcie_ep", "sip0.io0.pcie_ep->sip0.cube0.r0c0", "sip0.cube0.r0c0->sip0.cube0.hbm_ctrl0"]
    back = ["->".join(reversed(name.split("->"))) for name in reversed(there)]
    wires = [name for name in seen if "->" in name]
    assert wires == there + back
    on_wires = np.array(["->" in timeline.tracks[track].node for track in spans.track])
    assert len(set(spans.message[on_wires].tolist())) == 1
    assert {wire.name: wire.bytes_carried for wire in engine.hardware.wires if wire.name in wires} == {
        timeline.tracks[track].node: nbytes
        for track, nbytes in zip(spans.track[on_wires].tolist(), spans.nbytes[on_wires].tolist(), strict=True)
    }


def test_lines_of_two_files_are_two_where_all_else_is_the_same(tmp_path: Path) -> None:
    """A copy of a kernel, line for line, is told from what it was copied from."""
    kernels: list[Any] = []
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("def kernel(x, tl):\n    tl.store(x, tl.load(x) + 1.0)\n")
        names: dict[str, Any] = {}
        exec(compile((tmp_path / name).read_text(), str(tmp_path / name), "exec"), names)
        kernels.append(names["kernel"])

    def bench(rt: Any) -> None:
        x = rt.zeros((4,))
        for kernel in kernels:
            rt.launch(kernel, x, grid=(1,))

    timeline = kb.run(bench, **on_machine(timeline=True)).timeline
    assert timeline is not None
    assert timeline.lines == (f"{tmp_path}/one.py:2", f"{tmp_path}/two.py:2")
    waits = [
        timeline.lines[line]
        for line, track in zip(timeline.spans.line.tolist(), timeline.spans.track.tolist(), strict=True)
        if timeline.tracks[track].kind == "kernel" and line >= 0
    ]
    assert waits.count(timeline.lines[0]) == waits.count(timeline.lines[1]) > 0


@pytest.mark.parametrize("most", [1, 7, 40])
def test_the_latest_part_is_a_window_of_the_whole(most: int) -> None:
    """From when the first of so many passages began, with all that is in sight; of fewer it is the whole."""
    recorder = TimelineRecorder()
    engine = toy_engine(pes=1, observers=[recorder])
    start = engine.machine.design.address_map.encode(0, 0, "hbm0")
    for nbytes in (512, 4096, 64):
        engine.submit(MemoryReadMsg((Region(start, nbytes),)))
        engine.advance()
    found = (engine.shared.requests, engine.op_log)
    whole, latest = recorder.timeline(*found), recorder.timeline(*found, latest=most)
    begins = sorted(recorder._notes.passages.table()[:, 1].tolist())
    if most >= len(begins):
        assert latest == whole
        return
    assert latest.known_ns == (begins[-most], whole.total_ns)
    cut = whole.window(begins[-most], math.inf)
    names = ("node", "name", "kind")
    tracks = [[[getattr(made.tracks[at], name) for name in names] for at in made.spans.track] for made in (cut, latest)]
    assert tracks[0] == tracks[1] and len(tracks[0]) >= most
    for column in ("start_ns", "end_ns", "line", "op", "nbytes", "parent", "message"):
        assert getattr(cut.spans, column).tolist() == getattr(latest.spans, column).tolist(), column
    assert cut.activity is not None and latest.activity is not None
    busy = cut.activity.busy_ns.sum()  # even within the step that is cut
    assert latest.activity.busy_ns.sum() == pytest.approx(busy, rel=0.02)


def test_what_waits_for_its_wire_is_no_latest_passage() -> None:
    """The last that have begun count, however much has booked a wire until later."""
    notes = Notes()
    for at in (1, 2, 3, 50, 60):
        notes.passages.extend(notes.passages.pack(7, at, at + 20, 8, -1))
    found = notes.latest(2, 10.0)
    assert found.since == 2.0 and found.passages.table()[:, 1].tolist() == [1, 2, 3, 50, 60]
    assert notes.latest(1, 55.0).passages.table()[:, 1].tolist() == [50, 60]
    assert notes.latest(3, 10.0) is notes
