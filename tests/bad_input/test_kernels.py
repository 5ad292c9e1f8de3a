"""Kernels and host programs that do what they must not: one sentence with file, line, PE and time, exit code 6."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.conftest import without_carets

#: One program on each PE.
ALL = "rt.launch(kernel, x)"


def kernel(
    body: str, host: str = "rt.launch(kernel, x, grid=(1,))", setup: str = 'x = rt.tensor((256,), name="x")'
) -> str:
    """Write a bench file whose kernel has `body` from line 2 on."""
    return (
        "def kernel(x, tl):\n"
        + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
        + "\ndef bench(rt):\n"
        + textwrap.indent(textwrap.dedent(setup + "\n" + host), "    ")
        + "\n"
    )


CASES = {
    "a kernel that raises": (
        kernel(
            """
            if tl.program_id(0) == 2:
                look_up({})
            """,
            ALL,
        )
        + "def look_up(d):\n    return d['missing']\n",
        "{here}/k.py:8: KeyError: 'missing'\n"
        "  in kernel 'kernel', program (2, 0, 0), on sip0.cube0.pe2 at {time}; the kernel's own traceback, innermost "
        "call "
        "last:\n"
        '  File "{here}/k.py", line 3, in kernel\n    look_up({{}})\n'
        "  File \"{here}/k.py\", line 8, in look_up\n    return d['missing']",
    ),
    "a kernel that exits": (
        kernel("if tl.program_id(0) == 1:\n    raise SystemExit(0)", ALL),
        "{here}/k.py:3: SystemExit: 0\n"
        "  in kernel 'kernel', program (1, 0, 0), on sip0.cube0.pe1 at {time}; the kernel's own traceback, innermost "
        "call "
        'last:\n  File "{here}/k.py", line 3, in kernel\n    raise SystemExit(0)',
    ),
    "an element of a pending result": (
        kernel("a = tl.load(x, shape=(4,))\nb = a * 2\nif b[0] > 1: pass"),
        "an element at {here}/k.py:4 must have data that is known while the kernel runs, and the result of tl.mul "
        "made at "
        "{here}/k.py:3 exists only after it; branch on loaded data or on integers computed from it, or store the "
        "result "
        "and read it in the next launch.\n  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at {time}",
    ),
    "the truth of a pending result": (
        kernel("b = tl.sum(tl.load(x, shape=(4,)))\nif b: pass"),
        "a condition at {here}/k.py:3 must have data that is known while the kernel runs, and the result of tl.sum "
        "made at "
        "{here}/k.py:2 exists only after it; branch on loaded data or on integers computed from it, or store the "
        "result "
        "and read it in the next launch.\n  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at {time}",
    ),
    "a load outside its tensor": (
        kernel("if tl.program_id(0) == 1: tl.load(x + 200, shape=(64,))", ALL),
        "tl.load at {here}/k.py:2 must stay inside tensor 'x' of shape (256,), and reaches element [263]; correct the "
        "index arithmetic, or mask it off.\n  in kernel 'kernel', program (1, 0, 0), on sip0.cube0.pe1 at {time}",
    ),
    "a store outside its tensor": (
        kernel("if tl.program_id(0) == 3: tl.store(x - 1, tl.zeros((4,), tl.float32))", ALL),
        "tl.store at {here}/k.py:2 must stay inside tensor 'x' of shape (256,), and reaches element [-1]; correct the "
        "index arithmetic, or mask it off.\n  in kernel 'kernel', program (3, 0, 0), on sip0.cube0.pe3 at {time}",
    ),
    "shapes that do not fit in dot": (
        kernel("a = tl.load(x, shape=(8, 16))\ntl.dot(a, a)"),
        "tl.dot at {here}/k.py:3 must be given shapes (m, k) and (k, n), not (8, 16) and (8, 16); 16 and 8 must be "
        "equal.\n  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at {time}",
    ),
    "shapes that do not broadcast": (
        kernel("tl.load(x, shape=(8, 16)) + tl.load(x, shape=(7, 16))"),
        "tl.add at {here}/k.py:2 must have operands that broadcast, not (8, 16) and (7, 16); reshape one of them.\n"
        "  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at {time}",
    ),
    "a name of Triton's that is refused": (
        kernel("tl.atomic_add(x, 1)"),
        "tl.atomic_add at {here}/k.py:2 is a name of Triton's that kernbench refuses: kernels of triton.jit have it; "
        "here let each program write its own place, and combine in a second launch.\n"
        "  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at {time}",
    ),
    "a generator": (
        kernel("yield 1"),
        "{here}/k.py:1: kernel 'kernel' must be a plain function, not one with yield or async, which would never run; "
        "call "
        "tl.load and the rest directly.",
    ),
    "a kernel without tl": (
        "def kernel(x):\n    pass\ndef bench(rt):\n    rt.launch(kernel, rt.zeros((4,)))\n",
        "kernel 'kernel' must have a parameter named 'tl'; add it, last by custom.\n"
        "  in bench 'k' at {here}/k.py:4, at simulated time {time}",
    ),
    "a host program that raises": (
        kernel("pass", host="{}['key']"),
        "bench 'k' raised KeyError: 'key' at simulated time {time}.\n"
        "  File \"{here}/k.py\", line 5, in bench\n    {{}}['key']",
    ),
    "a host program that raises what has no words": (
        kernel("pass", host="raise type('Own', (Exception,), dict(__str__=5))"),
        "bench 'k' raised Own: <exception str() failed> at simulated time {time}.\n"
        "  File \"{here}/k.py\", line 5, in bench\n    raise type('Own', (Exception,), dict(__str__=5))",
    ),
    "a host program that exits": (
        kernel("pass", host="raise SystemExit(0)"),
        "bench 'k' raised SystemExit: 0 at simulated time {time}.\n"
        '  File "{here}/k.py", line 5, in bench\n    raise SystemExit(0)',
    ),
    "a tensor that the host looks at too early": (
        kernel("pass", setup='y = rt.zeros((4,))\nx = rt.empty((256,), name="x")', host="x.numpy()"),
        "tensor 'x' must be written before the host reads it, and its element [0] was not; store to it in a "
        "kernel, or make it with rt.zeros.\n  in bench 'k' at {here}/k.py:6, at simulated time {time}",
    ),
    "a tensor of no elements": (
        kernel("pass", setup='x = rt.tensor((0, -4), name="x")'),
        "the shape of tensor 'x' must be positive integers, not (0, -4); correct its extents.\n"
        "  in bench 'k' at {here}/k.py:4, at simulated time 0 ns",
    ),
    "a tensor that does not fit": (
        kernel("pass", setup='x = rt.empty((1 << 40,), name="x")'),
        "the HBM slice of sip0.cube0.pe0 must have 1 TiB free for tensor 'x', and has 2 GiB of 2 GiB (largest hole 2 "
        "GiB); "
        "free a tensor or place it on more PEs.\n  in bench 'k' at {here}/k.py:4, at simulated time 0 ns",
    ),
    "a dtype that no unit has": (
        kernel("pass", setup='x = rt.empty((4,), "f128")'),
        "A dtype must be one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, f8e4m3, f8e5m2, "
        "f16, bf16, f32, f64, not 'f128'; use one of these.\n"
        "  in bench 'k' at {here}/k.py:4, at simulated time 0 ns",
    ),
    "a reference that raises": (
        kernel("pass", host="rt.check(x, lambda: {}['want'])"),
        "the reference of tensor 'x' raised KeyError: 'want'.\n"
        '  File "{here}/k.py", line 5, in <lambda>\n'
        "    rt.check(x, lambda: {{}}['want'])",
    ),
    "an index outside that only phase 2 knows": (
        kernel(
            "a = tl.load(x, shape=(4,))\nj = (a * 0.0 + 9.0).to(tl.int32)\ntl.store(x, tl.gather(a, j, 0))",
            "rt.launch(kernel, x, grid=(1,))\nrt.check(x, x.numpy)",
        ),
        "gather (op 4 of PE 0, sip0.cube0.pe0.pe_math, {time}) could not be computed: An index of gather must be from "
        "0 to 3, not 9; correct it, or mask it out.\nIt is the op of {here}/k.py:4.",
    ),
    "a reference of another shape": (
        kernel("pass", host="rt.check(x, lambda: None)"),
        "the reference of tensor 'x', checked at {here}/k.py:5, must have the tensor's shape (256,), not ().",
    ),
    "an expectation of another shape": (
        kernel("pass", host="import numpy as np\nrt.check(x, np.zeros(255))"),
        "rt.check('x'): expected must have the tensor's shape (256,), not (255,).\n"
        "  in bench 'k' at {here}/k.py:6, at simulated time {time}",
    ),
}


def said(outcome: Any, sentence: str, here: object) -> None:
    """Assert that nothing but `error: sentence` was printed; `{time}` stands for any one time with its unit."""
    before, _, after = f"error: {sentence}\n".partition("{time}")
    before, after = before.format(here=here), after.format(here=here)
    err = without_carets(outcome.err)
    assert outcome.out == ""
    if not after:
        assert err == before
        return
    assert err.startswith(before) and err.endswith(after), err
    time, unit = err[len(before) : len(err) - len(after)].split(" ")
    assert float(time) >= 0 and unit in ("ns", "us")


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_one_sentence(folder: Any, name: str) -> None:
    """The sentence, exit code 6, no result, no file."""
    source, sentence = CASES[name]
    folder.write("k.py", source)
    outcome = folder.run("k.py", "--verify-data")
    said(outcome, sentence, folder.path)
    assert (outcome.code, outcome.left) == (6, frozenset())


def test_memory_that_nobody_wrote_is_named(folder: Any) -> None:
    """The tensor, the load and its line."""
    folder.write("k.py", kernel("tl.load(x, shape=(4,))", setup='y = rt.zeros((4,))\nx = rt.empty((256,), name="x")'))
    outcome = folder.run("k.py")
    assert outcome.err.splitlines()[0] == (
        f"error: tl.load at {folder.path}/k.py:2 must read memory that was written, and element [0] of tensor 'x' was "
        "not; store to it first, or make the tensor with rt.zeros."
    )
    assert (outcome.code, outcome.out, outcome.left) == (6, "", frozenset())


def test_a_full_scratchpad_prints_its_table(folder: Any) -> None:
    """Every entry with its size and the line that it was born at."""
    body = "first = tl.load(x, shape=(n,))\nkept = []\nfor i in range(9):\n    kept.append(tl.load(x, shape=(n,)))"
    setup = 'x = rt.tensor((1 << 18,), name="x")'
    source = kernel(body, "rt.launch(kernel, x, grid=(1,))", setup).replace("(n,)", "(1 << 18,)")
    folder.write("k.py", source)
    outcome = folder.run("k.py")
    entry = f"1048576 B  tl.load f32 [262144], born at {folder.path}/k.py"
    head, *table, place = outcome.err.splitlines()
    assert head == (
        f"error: {folder.path}/k.py:5: tl.load must find 1 MiB of TCM on sip0.cube0.pe0 for f32 [262144], and 0 B of "
        f"2 MiB "
        "are free (largest hole 0 B); use smaller tiles or tl.free a handle first. A handle keeps its space until its "
        "last "
        "name is gone and its last reader has finished: `a = tl.load(…)` in a loop holds two tiles, because the old "
        "one "
        "lives until the new one is there. Allocated, by offset:"
    )
    assert table == [f"  0x00000000    {entry}:2", f"  0x00100000    {entry}:5"]
    assert place.startswith("  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at ")
    assert (outcome.code, outcome.left) == (6, frozenset())


def test_data_that_is_not_kept_is_not_read(folder: Any) -> None:
    """--no-data: a kernel or a host program that needs data says so."""
    folder.write("k.py", kernel("if tl.load(x, shape=(4,))[0] > 0: pass"))
    said(
        folder.run("k.py", "--no-data"),
        "an element at {here}/k.py:2 must have data, and this run keeps shapes only; leave out --no-data to run "
        "kernels "
        "that read or branch on data.\n  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at {time}",
        folder.path,
    )
    folder.write("h.py", kernel("pass", host="x.numpy()"))
    outcome = folder.run("h.py", "--no-data")
    said(
        outcome,
        "tensor 'x' has no data in a run that keeps shapes only; leave out --no-data to read it.\n"
        "  in bench 'h' at {here}/h.py:5, at simulated time {time}",
        folder.path,
    )
    assert (outcome.code, outcome.left) == (6, frozenset())


def test_a_wrong_result_says_where_and_who_made_it(folder: Any) -> None:
    """Exit code 1, and the report: how many, the worst element, the op that made it."""
    body = "p = tl.program_id(0)\ntl.store(x + 64 * p, tl.load(x + 64 * p, shape=(64,)) * 2.0)"
    want = "want = x.numpy() * 2\nrt.launch(kernel, x)\nwant[100] += 1\nwant[101] += 5\nrt.check(x, want)"
    folder.write("k.py", kernel(body, want))
    outcome = folder.call("run", "k.py", "--topology", "tiny", "--verify-data")
    text = " ".join(outcome.out.split())
    assert "DATA IS WRONG: 1 of 1 tensor, largest error 5 " in text
    assert (
        "k.py:10, must equal what is expected within rtol=1e-05, atol=1e-05, but 2 of 256 elements differ: 100-101; "
        "the worst is [101]: got "
    ) in text
    assert "tensor 'x', checked at " in text and ": written by the host -> load at k.py:" in text
    assert "It was made by mul (op 1 of PE 1, sip0.cube0.pe1.pe_math, " in text
    assert (outcome.code, outcome.err) == (1, "")
