"""Math ops of plug-ins, from outside: kernels call them by name, with types, shapes and costs of their own."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.checks.op_checks import _record
from kernbench_builtin.saved.saved_run import load_run
from kernbench_core.cli import main as kernbench
from kernbench_core.compute.ops import OPS
from kernbench_core.plugins import load_plugins, own_plugins

REPO = Path(__file__).parents[1]
ACME = '''
import numpy as np

from kernbench_core.compute.ops import Again, Form, LaneCost, MathOp
from kernbench_core.compute.ops.record import both, plain
from kernbench_core.compute.ops.shape_rules import along, elementwise, reduced
from kernbench_core.compute.ops.type_rules import always, floats, integers, same
from kernbench_core.plugins import OpEntry


def log_of_sum(params, x):
    return np.log(np.sum(np.exp(x), axis=params.get("axis"), keepdims=params.get("keepdims", False)))


POPCOUNT = MathOp(
    "popcount", lambda params, x: np.bitwise_count(x), types=always("int32"), shapes=elementwise, cost=LaneCost(1)
)
LOGSUMEXP = MathOp("logsumexp", log_of_sum, types=floats, shapes=reduced, form=Form.REDUCTION, cost=LaneCost(2, 2))
SORT = MathOp(
    "sort", lambda params, x: np.sort(x, axis=params.get("axis", -1)), types=same, shapes=along, form=Form.NORMALISING,
    cost=LaneCost(30),
)
RUNNING_MAX = MathOp(
    "running_max", lambda params, x: np.maximum.accumulate(x, axis=params["axis"]), types=same, shapes=along,
    form=Form.SCAN,
)
HYPOT = MathOp(
    "hypot", plain(np.hypot), types=floats, shapes=elementwise, arity=2, cost=LaneCost(3, 1),
    again=Again(plain(np.hypot)),
)
WRONG_AGAIN = MathOp(
    "wrong_again", plain(np.hypot), types=floats, shapes=elementwise, arity=2,
    again=Again(plain(lambda a, b: 2 * np.hypot(a, b))),
)


kernbench_api = 1
def kernbench_ops():
    return [OpEntry(name, f"acme:{record}") for name, record in ENTRIES]
'''
GOOD = """ENTRIES = [
    ("popcount", "POPCOUNT"), ("logsumexp", "LOGSUMEXP"), ("sort", "SORT"), ("hypot", "HYPOT"),
    ("running_max", "RUNNING_MAX"), ("wrong_again", "WRONG_AGAIN"), ("other_name", "SORT"),
]
"""
BENCH = '''
import numpy as np


def kernel(x_ptr, i_ptr, counts_ptr, sums_ptr, sorted_ptr, long_ptr, most_ptr, tl):
    x, i = tl.load(x_ptr, shape=(4, 64)), tl.load(i_ptr, shape=(64,))
    counts = tl.popcount(i)
    if counts[3] == 2:                                  # computed at once, as all of known integers
        tl.store(counts_ptr, counts)
    tl.store(sums_ptr, tl.logsumexp(x, axis=-1))
    tl.store(sorted_ptr, tl.sort(x, axis=1))
    tl.store(long_ptr, tl.hypot(x, 2.0))
    tl.store(most_ptr, tl.running_max(x, axis=-1))
    assert int(tl.popcount(7)) == 3                     # of a number: free
    assert tl.popcount(tl.arange(0, 4)).numpy().tolist() == [0, 1, 1, 2]


def bench(rt):
    x = np.random.default_rng(3).uniform(-2, 2, (4, 64)).astype(np.float16)
    i = np.arange(64, dtype=np.int32)
    out = {"counts": ((64,), "int32"), "sums": ((4,), "f16"), "sorted": ((4, 64), "f16"), "long": ((4, 64), "f16")}
    out["most"] = (4, 64), "f16"
    made = {name: rt.empty(*what, name=name) for name, what in out.items()}
    rt.launch(kernel, rt.tensor(x, name="x"), rt.tensor(i, name="i"), *made.values(), grid=(1,))
    wide = x.astype(np.float64)
    right = {
        "counts": np.array([bin(n).count("1") for n in i], np.int32),
        "sums": np.log(np.exp(wide).sum(1)),
        "sorted": np.sort(x, 1),
        "long": np.sqrt(wide**2 + 4),
        "most": np.maximum.accumulate(x, 1),
    }
    for name, tensor in made.items():
        rt.copy_to_host(tensor)
        rt.check(tensor, right[name])
'''
REPLAY = """
import json, sys
from kernbench_builtin.saved.saved_run import load_run
saved = load_run(sys.argv[1])
executor = saved.executor()
executor.run()
foreign = [m for m in ("simpy", "greenlet", "pluggy", "kernbench_core.component", "kernbench_example.plugin")
           if m in sys.modules]
ops = [(r.op_name, r.t_end - r.t_start) for r in saved.op_log if r.op_name == "softplus"]
print(json.dumps([foreign, ops, executor.computed, saved.functions["softplus"]]))
"""


def install(folder: Path, name: str, module: str) -> None:
    """Write an entry point down in a folder."""
    info = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[kernbench]\n{name.rpartition('-')[2]} = {module}\n")


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run kernbench in this process with what is installed, in a folder too; give exit code, stdout and stderr."""
    monkeypatch.syspath_prepend(REPO / "plugins_example")
    monkeypatch.syspath_prepend(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = kernbench(["run", *arguments, "--topology", "tiny"])
        return (code, *capsys.readouterr())

    yield run
    sys.modules.pop("acme", None)


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run kernbench in this process with a plug-in of several ops; give exit code, stdout and stderr."""
    (tmp_path / "acme.py").write_text(ACME + GOOD)
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["acme = acme", *own_plugins("builtin")], installed=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = kernbench(["run", *arguments, "--topology", "tiny"], plugins)
        return (code, *capsys.readouterr())

    yield run
    sys.modules.pop("acme", None)


def kernel_that(calls: str) -> str:
    return (
        "import numpy as np\n\n\ndef kernel(x_ptr, i_ptr, tl):\n    x, i = tl.load(x_ptr, shape=(4,)), tl.load(i_ptr, "
        f"shape=(4,))\n    {calls}\n\n\ndef bench(rt):\n    rt.launch(kernel, rt.tensor(np.ones(4, np.float32)), "
        "rt.tensor(np.ones(4, np.int32)), grid=(1,))\n"
    )


def test_the_op_of_the_example_is_called_timed_computed_and_replayed(installed: Run, tmp_path: Path) -> None:
    """It is right by itself and by its second way, takes what its record says, and its log needs no simulator."""
    install(tmp_path, "kernbench-example", "kernbench_example.plugin")
    out = tmp_path / "out"
    code, told, err = installed("example-softplus", "--verify-data", "--verify-ops", "--json", "--out", str(out))
    assert code == 0, err
    assert json.loads(told)["verified"] is True
    replayed = subprocess.run(
        [sys.executable, "-c", REPLAY, str(out / "oplog")], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (REPO, tmp_path, REPO / "plugins_example")))},
    )  # fmt: skip
    assert replayed.returncode == 0, replayed.stderr
    foreign, ops, computed, function = json.loads(replayed.stdout)
    cycles = math.ceil((5 + 2 * 4) * 1024 / 128)  # five steps, and two look-ups of four cycles, of lanes of 128
    took = math.ceil((10 + cycles / 0.96) * 2**16) / 2**16
    assert (foreign, ops, computed) == ([], [["softplus", took]] * 4, 4)
    assert function == "kernbench_example.softplus:SOFTPLUS"


def test_reductions_integers_and_ops_along_an_axis_obey_their_rules(acme: Run, tmp_path: Path) -> None:
    """Known integers are ready, numbers are free, a name that Triton has and kernbench refuses may be supplied."""
    (tmp_path / "bench.py").write_text(BENCH)
    code, out, err = acme(str(tmp_path / "bench.py"), "--verify-data", "--verify-ops", "--json")
    assert code == 0, err
    assert json.loads(out)["verified"] is True


def test_reductions_and_scans_go_through_the_tree_of_the_lanes(acme: Run, tmp_path: Path) -> None:
    """As built-in ops do: once after the passes, with every pass; an axis counted from the end is the same axis."""
    (tmp_path / "bench.py").write_text(BENCH)
    code, _, err = acme(str(tmp_path / "bench.py"), "--out", str(tmp_path / "out"))
    assert code == 0, err
    took = {r.op_name: r.t_end - r.t_start for r in load_run(tmp_path / "out" / "oplog").op_log if r.op_kind == "math"}
    passes, tree = 256 // 128, 6  # 64 lanes hold parts of one result
    cycles = {
        "logsumexp": (2 + 2 * 4) * (passes + tree), "running_max": passes * (1 + tree), "sort": 30 * (passes + tree),
        "hypot": (3 + 4) * passes,
    }  # fmt: skip
    assert {name: took[name] for name in cycles} == {
        name: math.ceil((10 + count / 0.96) * 2**16) / 2**16 for name, count in cycles.items()
    }


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ("tl.hypot(i, i)", "tl.hypot at LINE: hypot must have a float operand, not int32; cast it first."),
        ("tl.hypot(x)", "tl.hypot at LINE must be given 2 operands, not 1."),
        ("tl.hypot(x, x_ptr)", "tl.hypot at LINE must be given tensors and numbers, not a pointer; load it first."),
        (
            "tl.logsumexp(x, axis=1)",
            "tl.logsumexp at LINE must have an axis of shape (4,), not the invalid axis 1; use one from -1 to 0.",
        ),
        (
            "tl.other_name(x)",
            "op 'other_name' must be the record of an op of that name, and 'acme:SORT' is that of 'sort'; register it "
            "under its own name.",
        ),
        ("tl.topk(x)", "tl.topk at LINE is a name of Triton's that kernbench refuses: kernels of triton.jit have it; "
         "here sort on the host."),
    ],
)  # fmt: skip
def test_what_an_op_refuses_is_a_sentence(acme: Run, tmp_path: Path, calls: str, said: str) -> None:
    """With the line of the kernel, before anything is computed."""
    file = tmp_path / "kernel.py"
    file.write_text(kernel_that(calls))
    code, _, err = acme(str(file), "-q")
    assert code == 6
    assert f"error: {said.replace('LINE', f'{file}:6')}\n" in err


def test_a_second_way_that_differs_is_told(acme: Run, tmp_path: Path) -> None:
    """--verify-ops compares with the record's own second way, not with the function again."""
    file = tmp_path / "kernel.py"
    file.write_text(kernel_that("tl.store(x_ptr, tl.wrong_again(x, x))"))
    code, out, _ = acme(str(file), "--verify-ops")
    assert code == 1
    assert "must give what it gives by itself, but 4 of 4 elements" in out.replace("\n", " ")


def test_no_function_computes_a_built_in_op(installed: Run, tmp_path: Path) -> None:
    """What a softmax is made of is kernbench's, whatever a plug-in calls `exp`: the run ends and says so."""
    zeros = "def zeros(params, inputs):\n    return np.zeros_like(inputs[0])\n\n\n"
    (tmp_path / "acme.py").write_text(f'{zeros}{ACME}ENTRIES = [("exp", "zeros")]\n')
    install(tmp_path, "acme", "acme")
    code, _, err = installed("softmax", "-q", "--verify-data")
    assert (code, err) == (
        6,
        "error: op 'exp' of acme 0.1.0 must not be called as an op of kernbench's own; repair or reinstall acme.\n",
    )


DTYPES = "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, f8e4m3, f8e5m2, f16, bf16, f32, f64"
FAULTS = {
    "types=lambda op, dtypes, params: 'f99'": f"must have a type rule that gives one of {DTYPES}, not 'f99'",
    "types=lambda op, dtypes, params: ['f32']": f"must have a type rule that gives one of {DTYPES}, not ['f32']",
    "types=lambda op, dtypes: 'f32'":
        "must have a type rule that answers or raises ShapeError, but it raised TypeError: <lambda>() takes 2 "
        "positional arguments but 3 were given",
    "shapes=lambda op, shapes, params: (4.0,)":
        "must have a shape rule that gives a tuple of whole numbers of at least 0, not (4.0,)",
    "shapes=lambda op, shapes, params: (-4,)":
        "must have a shape rule that gives a tuple of whole numbers of at least 0, not (-4,)",
    "shapes=lambda op, shapes, params: 4":
        "must have a shape rule that gives a tuple of whole numbers of at least 0, not 4",
    "shapes=lambda op, shapes, params: shapes[1]":
        "must have a shape rule that answers or raises ShapeError, but it raised IndexError: list index out of range "
        "at RECORD",
}  # fmt: skip


@pytest.mark.parametrize("field", FAULTS)
def test_a_record_that_will_not_do_is_the_fault_of_its_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    """When a kernel calls the op, before any model is asked; no check of ops is blamed, and no model."""
    fields = {"function": "plain(np.abs)", "types": "same", "shapes": "elementwise"}
    name, _, value = field.partition("=")
    fields[name] = value
    given = ", ".join(f"{key}={each}" for key, each in fields.items())
    sys.modules.pop("acme_odd", None)
    record = f'ODD = MathOp("odd", {given})\nENTRIES = [("odd", "ODD")]\n'
    (tmp_path / "acme_odd.py").write_text(ACME.replace("acme:", "acme_odd:") + record)
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["acme = acme_odd", *own_plugins("builtin")], installed=False)
    file = tmp_path / "kernel.py"
    file.write_text(kernel_that("tl.store(x_ptr, tl.odd(x))"))
    assert kernbench(["run", str(file), "--topology", "tiny", "-q", "--verify-ops"], plugins) == 6
    source = "acme_odd (source tree)"
    line = f"{tmp_path / 'acme_odd.py'}:{ACME.count(chr(10)) + 1}"
    told = f"error: op 'odd' of {source} {FAULTS[field].replace('RECORD', line)}; repair or reinstall {source}.\n"
    assert capsys.readouterr() == ("", told)
    file.write_text(kernel_that("tl.odd(tl.arange(0, 4))"))
    if not field.startswith("shapes"):  # of known numbers numpy gives the shape
        assert kernbench(["run", str(file), "--topology", "tiny", "-q"], plugins) == 6
        assert capsys.readouterr() == ("", told)


def test_a_record_that_cannot_be_made_leaves_its_plugin_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it is made, with what its field must be; a kernel that calls the op is told."""
    monkeypatch.syspath_prepend(tmp_path)
    record = 'ODD = MathOp("odd", plain(np.abs), same, elementwise, arity="2")\nENTRIES = [("odd", "ODD")]\n'
    (tmp_path / "acme_arity.py").write_text(ACME.replace("acme:", "acme_arity:") + record)
    plugins = load_plugins(["acme = acme_arity", *own_plugins("builtin")], installed=False)
    file = tmp_path / "kernel.py"
    file.write_text(kernel_that("tl.store(x_ptr, tl.odd(x))"))
    assert kernbench(["run", str(file), "--topology", "tiny", "-q"], plugins) == 6
    err = " ".join(capsys.readouterr().err.split())
    assert "MathOp.arity must be a number of operands, 0 where that differs, not '2'" in err
    assert "tl has no name 'odd'" in err


def test_extents_of_a_shape_rule_may_be_whole_numbers_of_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They become Python's own."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "acme_whole.py").write_text(
        ACME.replace("acme:", "acme_whole:")
        + 'WHOLE = MathOp("whole", plain(np.abs), types=same, shapes=lambda op, shapes, params: [np.int64(4)])\n'
        'ENTRIES = [("whole", "WHOLE")]\n'
    )
    plugins = load_plugins(["acme = acme_whole", *own_plugins("builtin")], installed=False)
    file = tmp_path / "kernel.py"
    file.write_text(kernel_that("assert [*map(type, tl.whole(x).shape)] == [int]; tl.store(x_ptr, tl.whole(x))"))
    assert kernbench(["run", str(file), "--topology", "tiny", "-q", "--verify-ops"], plugins) == 0, capsys.readouterr()
    sys.modules.pop("acme_whole", None)


def test_the_kit_gives_functions_what_a_run_gives_them() -> None:
    """The record of the op in the log, but for places and values."""

    def kernel(x_ptr: Any, tl: Any) -> None:
        x = tl.load(x_ptr, shape=(6, 5))
        tl.store(x_ptr, tl.exp(x) + tl.sum(x, axis=1, keepdims=True))

    x = np.ones((6, 5), np.float16)
    ran = kb.launch(kernel, x, topology="tiny").op_log
    for name, params in (("exp", {}), ("sum", {"axis": 1, "keepdims": True})):
        record = next(each.params for each in ran if each.params.get("op") == name)
        made = _record(OPS[name], params, [x])
        assert made == {key: record[key] for key in made}
        places = {"input_addrs", "input_spaces", "input_snapshots", "dst_addr", "dst_space", "addr_space", "mask"}
        assert set(record) - set(made) <= places
