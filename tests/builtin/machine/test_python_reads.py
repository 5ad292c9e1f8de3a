"""Reads of elements on the real machine: the verdict, the object of --json, exit codes, a pe_cpu of somebody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kernbench_core as kb
from kernbench_core.cli import main
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import PythonReadsError
from tests.conftest import SOURCE_TREE

SUMS = '''
import numpy as np


def sums(x, y, n, tl):
    tile = tl.load(x, shape=(512,))
    total = 0.0
    for i in range(n):
        total += tile[i]
    tl.store(y, tl.full((1,), total, "f32"), shape=(1,))


def bench(rt, n: int = 257):
    """Sum elements in Python."""
    x = rt.tensor(np.ones(512, np.float32), name="x")
    y = rt.empty((1,), "f32", name="y")
    rt.launch(sums, x, y, n, grid=(1,))
    rt.check(y, np.full(1, n, np.float32))
'''
FREE = "components.pe_cpu.params.element_read=0 ns"
STRANGER = """
import kernbench_core as kb
from kernbench_core.component import ComponentBase
from kernbench_core.kernel import KernelRunner, Kernels

kernbench_api = 1


class Cpu(ComponentBase):
    needs = (Kernels,)
    dispatch_overhead_ns = 10.0

    def __init__(self, node, fabric):
        super().__init__(node, fabric)
        self.kernels = self.part(Kernels)

    def run(self, env, msg):
        self.env = env
        yield from KernelRunner(self).run(env, msg.launch)

    def send_command(self, cmd):
        cmd.path, cmd.hop = (self.id, self.id.replace("pe_cpu", cmd.serves)), 0
        cmd.born = cmd.head = cmd.tail = self.env.now
        self.emit(cmd, self.env.now, self.env.now)


def kernbench_components():
    return [kb.ComponentEntry("acme_cpu.cpu", "acme_cpu:Cpu", "pe_cpu", "A processor.")]
"""


@pytest.fixture
def bench(tmp_path: Path) -> str:
    """Give a bench that sums in Python."""
    path = tmp_path / "sums.py"
    path.write_text(SUMS)
    return str(path)


def test_the_verdict_names_many_reads(bench: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On the line of -q and, with lines of the kernel, beside the verdict; a few are told below it, in JSON alike."""
    given = ["run", bench, "--topology", "tiny", "--verify-data"]
    assert main([*given, "-q"]) == 0
    assert capsys.readouterr().out.endswith("largest error 0, 257 elements read into Python\n")
    assert main(given) == 0
    told = (
        "data verified: 1 tensor, largest error 0, 257 elements read into Python\n"
        "257 elements read into Python, of 512 loaded, in 257 ns of the PEs' CPUs; arithmetic on them is not timed\n"
        f"  257 at {bench}:9\n"
    )
    assert told in capsys.readouterr().out
    assert main([*given, "-p", "n=256"]) == 0
    told = (
        "data verified: 1 tensor, largest error 0\n"
        "256 elements read into Python, of 512 loaded, in 256 ns of the PEs' CPUs; arithmetic on them is not timed\n"
        "3 ops"
    )
    assert told in capsys.readouterr().out
    assert main([*given, "-p", "n=256", "-v"]) == 0
    assert f"not timed\n  256 at {bench}:9\n" in capsys.readouterr().out


def test_json_has_reads_where_there_are_any(bench: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing of them in any other run."""
    assert main(["run", bench, "--topology", "tiny", "--json", "-p", "n=3"]) == 0
    assert json.loads(capsys.readouterr().out)["python_reads"] == {
        "elements": 3, "loaded": 512, "cost_ns": 3.0, "lines": [{"line": f"{bench}:9", "elements": 3}], "free": [],
    }  # fmt: skip
    assert main(["run", bench, "--topology", "tiny", "--json", "-p", "n=0"]) == 0
    assert "python_reads" not in json.loads(capsys.readouterr().out)


def test_each_read_is_one_element_read(bench: str) -> None:
    """Of the parameter of pe_cpu; 0 gives the time of no read, and is named."""

    def ran(n: int, *sets: str) -> kb.RunResult:
        return kb.run(bench, "tiny", {"n": n}, set=sets)

    none, one, two = ran(0), ran(1), ran(2)
    assert (one.total_ns - none.total_ns, two.total_ns - none.total_ns) == (1.0, 2.0)
    assert ran(2, "components.pe_cpu.params.element_read=2.5 ns").total_ns - none.total_ns == 5.0
    free = ran(2, FREE)
    assert (free.total_ns, free.op_log_sha256, free.events) == (none.total_ns, none.op_log_sha256, none.events)
    assert free.python_reads is not None
    assert free.python_reads.free == ("element_read of builtin.pe_cpu is 0",)


def test_strict_python_exits_with_7(bench: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The result is printed, the sentence goes to stderr, and no file is written; from the cache it is the same."""
    out = tmp_path / "out"
    given = ["run", bench, "--topology", "tiny", "--strict-python", "--json", "--out", str(out)]
    assert main(given) == 7
    told = capsys.readouterr()
    assert json.loads(told.out)["python_reads"]["elements"] == 257
    assert told.err.splitlines()[-2:] == [
        "error: bench 'sums' must leave arithmetic to units with --strict-python, and has 257 elements read into "
        "Python, of 512 loaded, in 257 ns of the PEs' CPUs; arithmetic on them is not timed:",
        f"  257 at {bench}:9",
    ]
    assert not out.exists()
    with pytest.raises(PythonReadsError) as caught:
        kb.run(bench, "tiny", strict_python=True, set=[FREE])
    assert caught.value.exit_code == 7
    assert "at no time, as element_read of builtin.pe_cpu is 0" in str(caught.value)
    assert kb.run(bench, "tiny", {"n": 256}, strict_python=True).python_reads is not None


def test_a_pe_cpu_without_a_time_for_reads_is_named(bench: str, tmp_path: Path) -> None:
    """Then they take no time, and the verdict still names them."""
    plugin = tmp_path / "acme_cpu.py"
    plugin.write_text(STRANGER)
    plugins = load_plugins([*SOURCE_TREE, str(plugin)], installed=False)
    machine = {"components.pe_cpu": {"impl": "acme_cpu.cpu", "params": {}}}
    times = []
    for n in (0, 257):
        found = kb.run(bench, "tiny", {"n": n}, set=machine, plugins=plugins)
        times.append(found.total_ns)
    assert times[0] == times[1]
    assert found.python_reads is not None
    assert (found.python_reads.free, found.python_reads.many) == (("acme_cpu.cpu has no element_read",), True)
