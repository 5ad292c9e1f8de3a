"""Models that lie: every check at the end of a run is tripped by one, on the command line, with exit code 7."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.plugins import Plugins, load_plugins, own_plugins

MODELS = Path(__file__).with_name("lying_models.py")
TRIPS = {
    # bytes conserved
    "Halves": r"\d+ B passed the wires of sip0\.cube0\.hbm_ctrl0, but its transactions move \d+ B\.",
    # bound <= simulated, in the model without banks and in the one with them
    "Hasty": r"a write of 2048 B from host to sip0\.cube0\.hbm_ctrl0 took [\d.]+ ns, below its lower bound of "
    r"[\d.]+ ns\.",
    "HastyBanks": r"a read of 1024 B from sip0\.cube0\.pe0\.pe_dma to sip0\.cube0\.hbm_ctrl0 took [\d.]+ ns, below its "
    r"lower bound of [\d.]+ ns\.",
    # every request answered once
    "Hurried": r"52 memory transactions were sent but 12 answered; each must be answered once\.",
    # work takes time: a command that reads bytes, and the stage of a tile, which knows only its sizes
    "Instant": r"gemm_f16 \(op \d+ of PE \d, sip0\.cube0\.pe\d\.pe_gemm, [\d.]+ ns\) touches \d+ B in no time; work "
    r"must take time\.",
    "Instant tile": r"TileToken/GEMM \(sip0\.cube0\.pe\d\.pe_gemm, [\d.]+ ns\) makes 65536 products in no time; work "
    r"must take time\.",
    # memory takes time, also where the model says that it takes none
    "Nought": r"sip0\.cube0\.hbm_ctrl0 answered a write of \d+ B from host in 0 ns: its round trip of [\d.]+ \w+ is "
    r"what the wires alone take; memory must take time\.",
    # no op is faster than its unit: a command, and the stage of a tile
    "Racing": r"sip0\.cube0\.pe0\.pe_gemm computed tl\.dot at \S+gemm\.py:\d+ \(op \d+ of PE 0\) at 8192 GFLOP/s "
    r"\(\d+ operations in [\d.]+ ns\), above its declared peak of 4096 GFLOP/s; no op can be faster\.",
    "Racing tile": r"sip0\.cube0\.pe0\.pe_gemm computed tl\.composite at \S+gemm_composite\.py:\d+ \(op \d+ of PE 0\) "
    r"at 8192 GFLOP/s \(\d+ operations in [\d.]+ ns\), above its declared peak of 4096 GFLOP/s; no op can be faster\.",
    # no resource above 100 %: servers, and the channels of a scratchpad, which a DMA books without a message
    "Busy": r"sip0\.cube0\.pe0\.pe_gemm was busy for [\d.]+% of the time; no resource can pass 100 %\.",
    "BusyScratchpad": r"sip0\.cube0\.pe0\.pe_tcm#write was busy for [\d.]+% of the time; no resource can pass 100 %\.",
    # phases sum to the total, each instant in one
    "Prophet": r"the phase host_to_device lasts -[\d.]+ ns; every instant of the run must belong to one phase\.",
}
REFUSED = {
    "TwiceMemory": r"each message must be sent once, but a Transaction on its way from sip0\.cube0\.hbm_ctrl\d to "
    r"(host|sip0\.cube0\.pe\d\.pe_dma) was sent twice; find the component that calls emit twice for it\.",
    "TwiceMmu": r"each message must be sent once, but a MapUpdateMsg on its way from sip0\.cube0\.pe\d\.pe_mmu to "
    r"sip0\.cube0\.m_cpu was sent twice; find the component that calls emit twice for it\.",
    "Impatient": r"sip0\.cube0\.pe\d\.pe_scheduler must answer tl\.composite at \S+ when its last tile is back, but "
    r"tile 0 came after the answer; wait for every tile\.",
}


@pytest.fixture
def lying(monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """Load the builtin plug-in, and the one with the lying models."""
    monkeypatch.syspath_prepend(MODELS.parent)
    return load_plugins([*own_plugins("builtin"), "lying = lying_models"], installed=False)


def run(folder: Any, plugins: Plugins, name: str) -> Any:
    """Run a small GEMM with one lying model in the place of its kind."""
    model, _, tile = name.lower().partition(" ")
    bench = "gemm-composite" if tile or model == "impatient" else "gemm"
    kind = plugins.components.get(f"lying.{model}").kind
    sizes = [part for size in ("M=64", "N=64", "K=64") for part in ("-p", size)]
    return folder.run(bench, *sizes, "--set", f"components.{kind}.impl=lying.{model}", plugins=plugins)


@pytest.mark.parametrize("name", TRIPS)
def test_a_lie_fails_a_check(folder: Any, lying: Plugins, name: str) -> None:
    """Exit code 7, what is wrong where, no figures and no files."""
    outcome = run(folder, lying, name)
    assert re.match(r"error: do not use this result: (.*\n  )*" + TRIPS[name], outcome.err), outcome.err
    assert len(outcome.err) < 1500
    assert (outcome.code, outcome.out, outcome.left) == (7, "", frozenset())


def test_memory_is_not_blamed_for_what_a_router_claims(folder: Any, lying: Plugins) -> None:
    """Round trips are below what wires and routers say that they take: that memory took no time does not follow."""
    err = run(folder, lying, "Claims").err
    assert "below its lower bound of" in err
    assert "memory must take time" not in err


@pytest.mark.parametrize("name", REFUSED)
def test_a_lie_that_cannot_go_on_is_refused_at_once(folder: Any, lying: Plugins, name: str) -> None:
    """Exit code 6: a second answer, or one before the work is done, names the component that gave it."""
    outcome = run(folder, lying, name)
    assert re.match("error: " + REFUSED[name], outcome.err), outcome.err
    assert (outcome.code, outcome.out, outcome.left) == (6, "", frozenset())


def test_a_deadlock_is_found_with_banks_too(folder: Any, lying: Plugins, tmp_path: Path) -> None:
    """Refresh goes on for ever only while somebody asks for memory: the report comes, exit code 4."""
    folder.write("k.py", "def kernel(x, tl):\n    tl.load(x, shape=(16,))\ndef bench(rt):\n"
                 "    rt.launch(kernel, rt.zeros((256,)), grid=(1,))\n")  # fmt: skip
    banks = ("--set", "components.hbm_ctrl.impl=builtin.hbm_ctrl_bank")
    outcome = folder.run("k.py", *banks, "--set", "components.pe_dma.impl=lying.deaf", plugins=lying)
    assert outcome.err.startswith("error: deadlock at simulated time ")
    assert "kernel 'kernel' at " in outcome.err and "waits for tl.load from its pe_dma" in outcome.err
    assert (outcome.code, outcome.out, outcome.left) == (4, "", frozenset())


@pytest.mark.parametrize("model", ["atpeak", "atpeakmath"])
def test_an_op_as_fast_as_its_peak_passes(folder: Any, lying: Plugins, model: str) -> None:
    """The tight pair of a unit that is faster."""
    kind = lying.components.get(f"lying.{model}").kind
    folder.write("k.py", ARITHMETIC)
    outcome = folder.run("k.py", "--topology", "tiny", "--set", f"components.{kind}.impl=lying.{model}", plugins=lying)
    assert (outcome.code, outcome.err) == (0, "")


def test_a_vector_op_above_the_peak_is_refused(folder: Any, lying: Plugins) -> None:
    """A thousandth is enough; the kernel line is that of the op."""
    folder.write("k.py", ARITHMETIC)
    racing = ("--set", "components.pe_math.impl=lying.racingmath")
    outcome = folder.run("k.py", "--topology", "tiny", *racing, plugins=lying)
    assert re.search(
        r"sip0\.cube0\.pe0\.pe_math computed tl\.add at \S*k\.py:6 \(op 3 of PE 0\) at 123 GFLOP/s \(4096 operations "
        r"in 33\.3 ns\), above its declared peak of 122\.88 GFLOP/s; no op can be faster\.",
        outcome.err,
    ), outcome.err
    assert (outcome.code, outcome.out) == (7, "")


def test_sram_takes_time_too(folder: Any, lying: Plugins) -> None:
    """Slots of queues lie in the SRAM: what is written and read there took no time."""
    folder.write("k.py", LOSSES)
    sets = ("components.pe_ipcq.params.tier=sram", "components.sram.impl=lying.noughtsram")
    outcome = folder.run("k.py", "--topology", "tiny", *(p for s in sets for p in ("--set", s)), plugins=lying)
    assert re.search(
        r"sip0\.cube0\.sram answered a \w+ of \d+ B from sip0\.cube0\.pe\d\.pe_dma in 0 ns: its round trip of "
        r"[\d.]+ ns is what the wires alone take; memory must take time\.",
        outcome.err,
    ), outcome.err
    assert (outcome.code, outcome.out) == (7, "")


ARITHMETIC = """
def kernel(x, tl):
    a = tl.load(x, shape=(64, 64))
    b = tl.load(x, shape=(64, 64))
    c = tl.dot(a, b)
    tl.store(x, c + c)


def bench(rt):
    rt.launch(kernel, rt.zeros((64, 64)), grid=(1,))
"""
LOSSES = """
def kernel(x, tl):
    me = tl.program_id(0)
    if me == 0:
        a = tl.load(x, shape=(4096,))
        for _ in range(6):
            tl.send(a, 1)
    elif me == 1:
        for _ in range(6):
            a = tl.recv((4096,), "f32", 0)
        tl.store(x, a + 1)


def bench(rt):
    rt.launch(kernel, rt.zeros((4096,)), grid=(2,))
"""
LOST = {
    "Lossy": r"sip0\.cube0\.r0c0 \(lying\.lossy\) was the last to have the read of 4096 B from "
    r"sip0\.cube0\.pe0\.pe_dma to sip0\.cube0\.hbm_ctrl\d, for tl\.load at \S*k\.py:5 \(op 0 of PE 0\)",
    "LossyAnswers": r"sip0\.cube0\.r0c0 \(lying\.lossyanswers\) was the last to have the answer to the read of "
    r"\d+ B from sip0\.cube0\.pe0\.pe_dma to sip0\.cube0\.hbm_ctrl0, for tl\.load at \S*k\.py:5 \(op 0 of PE 0\)",
    "LossyPayload": r"sip0\.cube0\.r0c0 \(lying\.lossypayload\) was the last to have the payload of 4096 B from "
    r"sip0\.cube0\.pe0\.pe_dma to sip0\.cube0\.pe1\.pe_dma, for tl\.send at \S*k\.py:7 \(op 1 of PE 0\)",
    "LossyCredits": r"sip0\.cube0\.r\dc\d \(lying\.lossycredits\) was the last to have the credit of 8 B from "
    r"sip0\.cube0\.pe1\.pe_ipcq to sip0\.cube0\.pe0\.pe_ipcq",
    "Swallow": r"sip0\.cube0\.pe1\.pe_math \(lying\.swallow\) was the last to have the MathCmd of \d+ B from "
    r"sip0\.cube0\.pe1\.pe_cpu to sip0\.cube0\.pe1\.pe_math, for tl\.add at \S*k\.py:11 \(op \d+ of PE 1\)",
}  # fmt: skip


@pytest.mark.parametrize("name", LOST)
def test_who_loses_a_message_is_named(folder: Any, lying: Plugins, name: str) -> None:
    """A read, an answer, payload and credits of a queue, a command: who had it, for which kernel line; exit code 4."""
    folder.write("k.py", LOSSES)
    model = f"lying.{name.lower()}"
    kind = lying.components.get(model).kind
    outcome = folder.run("k.py", "--topology", "tiny", "--set", f"components.{kind}.impl={model}", plugins=lying)
    assert re.search(r"\n  messages that were lost:\n    " + LOST[name], outcome.err), outcome.err
    assert (outcome.code, outcome.out, outcome.left) == (4, "", frozenset())


def test_what_is_held_is_not_called_lost(folder: Any) -> None:
    """Two kernels that wait for each other: their commands are where they belong, and nothing was lost."""
    folder.write("k.py", "def kernel(tl):\n    tl.recv((4,), 'f32', 1 - tl.program_id(0))\ndef bench(rt):\n"
                 "    rt.launch(kernel, grid=(2,))\n")  # fmt: skip
    outcome = folder.run("k.py", "--topology", "tiny")
    assert "lost" not in outcome.err
    assert outcome.code == 4
