"""What a user is told of queues: deadlocks, messages left behind, directions, what fills the time, the saved log."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.saved.saved_run import save_run
from kernbench_core.cli import main
from kernbench_core.errors import SanityError
from kernbench_core.plugins import load_plugins
from tests.core.kernel.left_messages import REMEDY

BENCH = '''

def bench(rt):
    """Launch the kernel."""
    rt.launch(kernel)
'''

LONELY = '''def kernel(tl):
    if tl.program_id(0) == 2:
        tl.recv((4,), "f32", 1)
'''

FULL = '''def kernel(tl):
    me, n = tl.program_id(0), tl.num_programs(0)
    tile = tl.full((64,), 1.0, "f32")
    for _ in range(6):
        tl.send(tile, (me + 1) % n)
    for _ in range(6):
        tl.recv((64,), "f32", (me - 1) % n)
'''

PARTLY = '''def kernel(tl):
    if tl.program_id(0) == 0:
        tl.send(tl.full((96,), 1.0, "f32"), 1)
    elif tl.program_id(0) == 1:
        tl.recv_any((64,), "f32", [2, 3])
'''

LEFT = '''def kernel(tl):
    if tl.program_id(0) == 0:
        tile = tl.full((64,), 1.0, "f32")
        for _ in range(3):
            tl.send(tile, 1)
    if tl.program_id(0) == 1:
        tl.recv((64,), "f32", 0)
'''


@pytest.fixture
def ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, list[str]]]:
    """Run a kernel by the command line; give its exit code and what it says on stderr, without folders."""

    def run(kernel: str, *options: str) -> tuple[int, list[str]]:
        path = tmp_path / "ring.py"
        path.write_text(kernel + BENCH)
        code = main(["run", str(path), "--topology", "tiny", *options])
        return code, capsys.readouterr().err.replace(f"{tmp_path}/", "").splitlines()

    return run


def test_a_receipt_that_nobody_sends_for(ends: Callable[..., tuple[int, list[str]]]) -> None:
    """Exit code 4; the report names the line, the queue and the PE that will send no more."""
    code, told = ends(LONELY)
    assert code == 4
    assert "      tl.recv at ring.py:3 waits for a message from sip0.cube0.pe1, 0 received before" in told
    assert told[-1] == "  no wait-for cycle: sip0.cube0.pe2 -> sip0.cube0.pe1, which runs no kernel"


def test_full_queues_in_a_circle(ends: Callable[..., tuple[int, list[str]]]) -> None:
    """Exit code 4; the report names the queue that is full and the circle of PEs."""
    code, told = ends(FULL)
    assert code == 4
    assert "      tl.send at ring.py:5 waits for a free slot of the queue to sip0.cube0.pe1, 4 of 4 full" in told
    assert told[-1] == (
        "  wait-for cycle: sip0.cube0.pe0 -> sip0.cube0.pe1 -> sip0.cube0.pe2 -> sip0.cube0.pe3 -> sip0.cube0.pe0"
    )


def test_a_message_half_sent(ends: Callable[..., tuple[int, list[str]]]) -> None:
    """What has been sent of a message is told, and a receipt from several names all."""
    params = "components.pe_ipcq.params"
    code, told = ends(PARTLY, "--set", f"{params}.slot_bytes=64 B", "--set", f"{params}.slots=2")
    assert code == 4
    assert (
        "      tl.send at ring.py:3 waits for a free slot of the queue to sip0.cube0.pe1, 2 of 2 full, 128 B of 384 B "
        "sent before"
    ) in told
    assert "      tl.recv_any at ring.py:5 waits for a message from sip0.cube0.pe2 or sip0.cube0.pe3" in told


def test_a_message_left_behind(ends: Callable[..., tuple[int, list[str]]]) -> None:
    """A run whose messages were not all received has no result: exit code 7, both ends and both lines."""
    code, told = ends(LEFT)
    assert code == 7
    assert told == [
        "error: do not use this result: a message of 256 B, sent by sip0.cube0.pe0 at ring.py:5, was never received by "
        f"sip0.cube0.pe1 (the last receipt there was at ring.py:7), and 1 more after it; {REMEDY}"
    ]


def test_a_message_to_a_pe_that_never_receives() -> None:
    """Without any receipt there is only the sender's line."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.full((64,), 1.0, "f32"), 1)

    with pytest.raises(SanityError) as caught:
        kb.run(lambda rt: rt.launch(kernel), "tiny")
    assert str(caught.value) == (
        f"do not use this result: a message of 256 B, sent by sip0.cube0.pe0 at {__file__}:"
        f"{kernel.__code__.co_firstlineno + 2}, was never received by sip0.cube0.pe1; {REMEDY}"
    )


def test_what_one_launch_leaves_the_next_takes() -> None:
    """A queue outlives its launch: receipts are shifted from there on, and what is left at last is another message."""

    def kernel(y: Any, number: int, sends: int, tl: Any) -> None:
        if tl.program_id(0) == 0:
            for more in range(sends):
                tl.send(tl.full((64,), float(number + more), "f32"), 1)
        elif tl.program_id(0) == 1:
            tl.store(y, tl.recv((64,), "f32", 0))

    def bench(rt: Any) -> None:
        y = rt.zeros((64,), "f32")
        rt.launch(kernel, y, 1, 2)
        rt.launch(kernel, y, 7, 1)
        rt.check(y, np.full(64, 2.0, np.float32))  # the second message of the first launch

    with pytest.raises(SanityError) as caught:
        kb.run(bench, "tiny", verify_data=True)
    first = kernel.__code__.co_firstlineno
    assert str(caught.value) == (
        f"do not use this result: a message of 256 B, sent by sip0.cube0.pe0 at {__file__}:{first + 3}, was never "
        f"received by sip0.cube0.pe1 (the last receipt there was at {__file__}:{first + 5}); {REMEDY}"
    )


# Directions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topology", "pe", "neighbours"),
    [
        ("tiny", 0, {"e": 1, "s": 2, "n": None, "w": None}),
        ("tiny", 3, {"n": 1, "w": 2, "e": None, "s": None}),
        # cubes of 2 rows of 4 PEs, 2 x 2 of them: PE 5 is in the second row, its south is in the cube below
        ("default", 5, {"n": 1, "w": 4, "e": 6, "s": 17}),
        ("default", 3, {"w": 2, "e": 8, "s": 7, "n": None}),
    ],
)
def test_directions_lead_to_the_next_pe(topology: str, pe: int, neighbours: dict[str, int | None]) -> None:
    """By the places of the routers in the cubes' meshes, across cubes of the SIP, never to another SIP."""
    got: dict[str, int | None] = {}

    def kernel(y: Any, tl: Any) -> None:
        me = tl.program_id(0)
        there = {**neighbours}
        if me == pe:
            for name, other in there.items():
                if other is not None:
                    tl.send(tl.full((1,), float(other), "f32"), name)
                    continue
                try:
                    tl.send(tl.full((1,), 0.0, "f32"), name)
                except kb.KernelError:
                    got[name] = None
        for name, other in there.items():
            if me == other:
                back = {"n": "s", "s": "n", "e": "w", "w": "e"}[name]
                tl.recv((1,), "f32", back)
                got[name] = me

    kb.run(lambda rt: rt.launch(kernel, 0), topology)
    assert got == neighbours


# What fills the time -------------------------------------------------------------------------------------


def late_ring(x: Any, tl: Any) -> None:
    """Let PE 0 compute for long; all others wait for what comes around from it."""
    me, n = tl.program_id(0), tl.num_programs(0)
    tile = tl.full((1024,), 1.0, "f32")
    if me == 0:
        for _ in range(40):
            tile = tile + 1.0
        tl.send(tile, 1)
        tl.recv((1024,), "f32", n - 1)
    else:
        tl.send(tl.recv((1024,), "f32", me - 1), (me + 1) % n)


def test_waiting_for_a_peer_is_no_work() -> None:
    """A pe_ipcq is busy while it looks at something, 4 ns for each, however long its commands wait."""
    result = kb.run(lambda rt: rt.launch(late_ring, 0), "tiny")
    (use,) = [use for use in result.busiest if use.kind == "pe_ipcq"]
    # a send, its completion, its credit; a receipt, its note of arrival and its copy
    assert use.busy_ns <= 4.0 * 6


def test_the_critical_path_leads_from_pe_to_pe() -> None:
    """A wait in tl.recv leads to the sender's work, in the end to the sums of PE 0, and the path has no gap."""
    result = kb.run(lambda rt: rt.launch(late_ring, 0), "tiny", explain=True)
    assert result.explain is not None
    (launch,) = result.explain.launches
    path = launch.path
    assert (path[0].from_ns, path[-1].to_ns) == (launch.injected_ns, launch.completed_ns)
    assert all(later.from_ns == sooner.to_ns for sooner, later in pairwise(path))
    assert all(sum(segment.parts) == segment.ns for segment in path)
    calls = [(segment.op_id[0], segment.call) for segment in path if segment.op_id is not None]
    order = list(dict.fromkeys(calls))
    assert (0, "tl.add") in order
    assert [call for call in order if call[1] == "tl.send"] == [(pe, "tl.send") for pe in range(4)]
    sorts = {segment.sort for segment in path}
    assert {"payload", "note"} <= sorts


# The log -------------------------------------------------------------------------------------------------

REPLAY = """
import hashlib, sys
from kernbench_builtin.saved.saved_run import load_run
executor = load_run(sys.argv[1]).executor()
executor.run()
print(hashlib.sha256(executor.store.read("hbm", int(sys.argv[2]), (48,), "f32").tobytes()).hexdigest())
for module in ("simpy", "greenlet", "kernbench_builtin.components", "kernbench_core.host.session",
               "kernbench_core.component"):
    assert module not in sys.modules, module
"""
ROOT = Path(__file__).resolve().parents[3]


def add_up(x: Any, tl: Any) -> None:
    """PE 0 sends a sum in pieces, PE 1 adds to it and stores it."""
    if tl.program_id(0) == 0:
        tl.send(tl.full((48,), 1.0, "f32") + 1.0, 1)
    elif tl.program_id(0) == 1:
        tl.store(x + 48, tl.recv((48,), "f32", 0) + 2.0)


def added_up(topology: str | Path = "tiny", **options: Any) -> kb.RunResult:
    """Run it, by default with slots that take a third of the message."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.zeros((4, 48), np.float32), name="x")  # a row for each PE
        rt.launch(add_up, x)
        rt.check(x, np.array([[0.0], [4.0], [0.0], [0.0]]) + np.zeros((4, 48), np.float32))

    small = {"set": ["components.pe_ipcq.params.slot_bytes=64 B"]}
    return kb.run(bench, topology, verify_data=True, **{**small, **options})


def test_a_saved_log_is_executed_in_a_fresh_process(tmp_path: Path) -> None:
    """What was sent and received is computed from the log alone, without the machine."""
    result = added_up()
    (store,) = [record for record in result.op_log if record.op_name == "dma_write"]
    assert store.writes is not None
    save_run(tmp_path / "run", result.op_log, result.store)
    where = str(store.writes.regions[0].base)
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, str(tmp_path / "run"), where],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [hashlib.sha256(np.full(48, 4.0, np.float32).tobytes()).hexdigest()]


def test_receipts_depend_on_what_made_the_message() -> None:
    """From the sum of the receiver back over the receipt's value to the sum of the sender; copies name both ends."""
    log = list(added_up().op_log)
    sums = {record.op_id[0]: at for at, record in enumerate(log) if record.op_name == "add" and record.op_id}
    by_name: dict[str, list[int]] = {}
    for at, record in enumerate(log):
        by_name.setdefault(record.op_name, []).append(at)
    assert sums[0] in log[sums[1]].dependency_ids or any(
        sums[0] in log[at].dependency_ids for at in log[sums[1]].dependency_ids
    )
    for name in ("ipcq_send", "ipcq_copy", "ipcq_recv"):
        assert all(sums[0] in log[at].dependency_ids for at in by_name[name])
    copies = [log[at] for at in by_name["ipcq_copy"]]
    assert [(copy.params["nbytes"], copy.params["offset"], copy.params["slot"]) for copy in copies] == [
        (64, 0, 0), (64, 64, 1), (64, 128, 2)
    ]  # fmt: skip
    (send,), (receipt,) = ([log[at] for at in by_name[name]] for name in ("ipcq_send", "ipcq_recv"))
    assert [copy.params["src_addr"] - send.params["src_addr"] for copy in copies] == [0, 64, 128]
    assert receipt.params["src_addr"] == copies[0].params["dst_addr"]
    assert send.t_start < copies[0].t_start < copies[-1].t_end < receipt.t_end
    assert (send.params["peer"], receipt.params["peer"]) == (1, 0)


# Another unit ---------------------------------------------------------------------------------------------

MAILBOXES = '''
from collections import deque

from kernbench_core.component import ComponentBase
from kernbench_core.oplog.log import Access
from kernbench_core.params import Param
from kernbench_core.kernel.queue_commands import SendCmd
from kernbench_core.plugins import ComponentEntry


class Mailboxes(ComponentBase):
    """Hand messages over in a fixed time, without limit."""

    PARAMS = (Param("time", "time", "100 ns", "Time of each command."),)

    def __init__(self, node, hardware):
        super().__init__(node, hardware)
        self.sent, self.wanted = deque(), deque()

    def receive(self, msg):
        self.env.call_at(self.env.now + self.params["time"], msg, self.serve)

    def serve(self, msg):
        self._on_process_start(msg, self.env.now - self.params["time"])
        peer = self
        if isinstance(msg, SendCmd):
            peer = self.fabric.components[self.fabric.layout.pes[msg.to].prefix + ".pe_ipcq"]
            peer.sent.append(msg)
            self.done(msg)
        else:
            self.wanted.append(msg)
        while peer.sent and peer.wanted:
            message, receipt = peer.sent.popleft(), peer.wanted.popleft()
            receipt.receive(message, Access("tcm", (message.local,), message.value))
            peer.done(receipt)

    def done(self, msg):
        self._on_process_end(msg, self.env.now)
        self.emit(msg, self.env.now, self.env.now)


kernbench_api = 1
def kernbench_components():
    return [ComponentEntry("acme.mailboxes", "mailboxes:Mailboxes", kind="pe_ipcq", sentence="Hand messages over.")]
'''


def test_another_unit_can_keep_the_queues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in's model, chosen by configuration, serves the same calls: the same data, in times of its own."""
    (tmp_path / "mailboxes.py").write_text(MAILBOXES)
    choice = "base: tiny\ncomponents:\n  pe_ipcq: {impl: acme.mailboxes, params: {time: 64 ns}}\n"
    (tmp_path / "acme.yaml").write_text(choice)
    monkeypatch.syspath_prepend(tmp_path)
    result = added_up(tmp_path / "acme.yaml", plugins=load_plugins(["acme = mailboxes"]), set=[])
    assert result.verified
    (send,) = [record for record in result.op_log if record.op_name == "ipcq_send"]
    assert send.t_end - send.t_start == 64.0
    assert not [record for record in result.op_log if record.op_name == "ipcq_copy"]
