"""Names that two plug-ins have, or that are no names: a warning for all, an error for who uses them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kernbench_core.cli import main as kernbench
from kernbench_core.plugins import (
    BenchEntry,
    MachineEntry,
    MachineRegistry,
    OpEntry,
    Provider,
    Registry,
    load_plugins,
    own_plugins,
)

SOURCE = """
import click
import numpy as np

from kernbench_core.compute.ops import MathOp
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import floats
from kernbench_core.plugins import BenchEntry, CommandEntry, ComponentEntry, OpEntry, TopologyEntry

WOBBLE = MathOp("wobble", lambda params, x: x, types=floats, shapes=elementwise)


def exp(params, inputs):
    return inputs[0]


@click.command()
def zap():
    print("zap of NAME")


def bench(rt):
    "Copy a number, of NAME."
    rt.tensor(np.ones(1, np.float32))


kernbench_api = 1
def kernbench_benches():
    return [BenchEntry("idle", "NAME_names:bench")]


def kernbench_commands():
    return [CommandEntry("zap", "NAME_names:zap", "Zap.")]


def kernbench_topologies():
    return [TopologyEntry("toy", "kernbench_builtin.topologies:tiny.yaml", "Toy.")]


def kernbench_components():
    return [ComponentEntry("nobody.m", "NAME_names:M", "router", "M.")]


def kernbench_ops():
    return [OpEntry(name, f"NAME_names:{name}") for name in OPS]
"""
KERNEL = """import numpy as np


def kernel(x_ptr, tl):
    tl.store(x_ptr, tl.wobble(tl.load(x_ptr, shape=(4,))))


def bench(rt):
    rt.launch(kernel, rt.tensor(np.ones(4, np.float32)), grid=(1,))
"""
ONE, TWO = "one_names (source tree)", "two_names (source tree)"
Run = Callable[..., tuple[int, str, str]]


def left_out(noun: str, name: str, picks: str = "") -> str:
    return (
        f"{noun} {name!r} is left out: it must be registered once, not by {ONE} and by {TWO}; uninstall all but one"
        f"{picks}."
    )


@pytest.fixture(params=[("WOBBLE",)])
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> Iterator[Run]:
    """Run kernbench in this process with two plug-ins that call everything alike; give code, stdout and stderr."""
    for name in ("one", "two"):
        ops = f"\nOPS = {request.param!r}\n"
        text = SOURCE.replace("NAME", name) + ops
        text = text.replace('OpEntry(name,', 'OpEntry(name.lower(),')
        (tmp_path / f"{name}_names.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    given = [f"{name} = {name}_names" for name in ("one", "two")]
    plugins = load_plugins([*given, *own_plugins("builtin")], installed=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = kernbench(list(arguments), plugins)
        except SystemExit as end:
            code = int(end.code or 0)
        return (code, *capsys.readouterr())

    yield call
    for name in ("one", "two"):
        sys.modules.pop(f"{name}_names", None)


def test_names_that_two_have_stop_nothing_else(run: Run) -> None:
    """Help, lists and runs go on, with a warning for each name."""
    for arguments in (("--help",), ("list",), ("run", "vector-add", "--topology", "tiny", "-q")):
        code, out, err = run(*arguments)
        assert code == 0, err
        assert out
    told = " ".join(err.split())
    for noun, name, picks in (
        ("bench", "idle", ", or write 'one:idle' or 'two:idle'"),
        ("command", "zap", ", or write 'one:zap' or 'two:zap'"),
        ("topology preset", "toy", ", or write 'one:toy' or 'two:toy'"),
        ("op", "wobble", ", or write 'one:wobble' or 'two:wobble'"),
    ):  # fmt: skip
        assert f"warning: {left_out(noun, name, picks)}" in told
    for name, source in (("one", ONE), ("two", TWO)):
        assert (
            f"warning: component 'nobody.m' is left out: plug-in {name!r} ({source}) must name its components "
            f"'{name}.<thing>', not 'nobody.m'; rename the component or the entry point." in told
        )


def test_a_name_that_two_have_is_an_error_where_it_is_used(run: Run, tmp_path: Path) -> None:
    """Of a bench, a command, a topology and an op."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    for arguments, noun, name, picks in (
        (("run", "idle", "--topology", "tiny"), "bench", "idle", ", or write 'one:idle' or 'two:idle'"),
        (("zap",), "command", "zap", ", or write 'one:zap' or 'two:zap'"),
        (("run", "vector-add", "--topology", "toy"), "topology preset", "toy", ", or write 'one:toy' or 'two:toy'"),
        (("run", str(tmp_path / "kernel.py"), "--topology", "tiny"), "op", "wobble",
         ", or write 'one:wobble' or 'two:wobble'"),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (6, "")
        assert f"error: {left_out(noun, name, picks)}" in err


def test_either_is_called_by_its_vendor(run: Run) -> None:
    """A bench, a command, a topology."""
    assert run("two:zap")[:2] == (0, "zap of two\n")
    code, out, err = run("run", "one:idle", "--topology", "two:toy", "--json")
    assert code == 0, err
    assert "one:idle" in out
    assert "two:idle" in run("list")[1]


@pytest.mark.parametrize("run", [("exp",)], indirect=True)
def test_what_two_call_as_one_of_our_ops_ends_runs(run: Run) -> None:
    """Whichever computed it would do so in silence."""
    code, _, err = run("run", "vector-add", "--topology", "tiny", "-q")
    assert code == 6
    told = left_out("op", "exp", ", or write 'one:exp' or 'two:exp'")
    assert f"error: {told}" in " ".join(err.split())


TAKER = """
from kernbench_core import LanguageEntry, OpEntry
kernbench_api = 1
def a_function(*given):
    return given[0]
def kernbench_ops():
    return [OpEntry(name, "taker:a_function") for name in OPS]
def kernbench_language():
    return [LanguageEntry(name, "taker:a_function", "A call.") for name in ("dot", "mine")]
"""


@pytest.mark.parametrize("name", ["fdiv", "gemm_f16", "composite_math"])
def test_an_op_of_ours_that_a_plugin_takes_ends_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Its function would be called instead of ours; a name that `tl` has is the plug-in's, for `tl.unit_op`."""
    (tmp_path / "taker.py").write_text(TAKER.replace("OPS", f'("store", "gemmini", "{name}")'))
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["taker = taker", *own_plugins("builtin")], installed=False)
    assert kernbench(["run", "vector-add", "--topology", "tiny", "-q"], plugins) == 6
    assert capsys.readouterr().err == (
        f"error: op {name!r} of taker (source tree) must not be called as an op of kernbench's own; repair or "
        "reinstall taker (source tree).\n"
    )
    sys.modules.pop("taker", None)


def test_a_call_of_tl_that_a_plugin_takes_is_found_by_its_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kernels get ours, so that runs go on."""
    (tmp_path / "taker.py").write_text(TAKER.replace("OPS", "()"))
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["taker = taker", *own_plugins("builtin")], installed=False)
    assert kernbench(["run", "vector-add", "--topology", "tiny", "-q"], plugins) == 0
    assert capsys.readouterr().err == ""
    with suppress(SystemExit):
        assert kernbench(["plugins", "check", "taker"], plugins) == 1
    assert "tl has a name 'dot' of its own, which kernels get" in " ".join(capsys.readouterr().out.split())
    sys.modules.pop("taker", None)


def test_a_name_that_one_distribution_gives_twice_is_its_own_fault() -> None:
    """There is no second one to uninstall, and no vendor tells them apart."""
    one = Provider("one", "one", "1.0")
    for registry in (
        Registry("op", [(OpEntry("idle", "m:A"), one), (OpEntry("idle", "m:B"), one)]),
        Registry("bench", [(BenchEntry("idle", "m:A"), one), (BenchEntry("idle", "m:A"), one)]),
    ):
        told = "it must be registered once, and one 1.0 registers it twice; rename one of the two"
        assert [failure.reason for failure in registry.taken.values()] == [told]
        assert not list(registry)


def test_a_name_of_ours_stays_ours() -> None:
    """The plug-in's machine is left out, and the machine of that name is there."""
    ours = Provider("builtin", "kernbench", "")
    one = Provider("one", "one", "1.0")
    entries = [(MachineEntry(name, "m:A", "Another."), one) for name in ("mesh", "tree")]
    registry = MachineRegistry("machine", [*entries, (MachineEntry("mesh", "m:B", "Ours."), ours)])
    assert [str(failure) for failure in registry.taken.values()] == [
        "machine 'mesh' is left out: one 1.0 must not call it as kernbench calls its own; rename it"
    ]
    assert [(name, str(registry.provider(name))) for name in registry] == [
        ("mesh", "kernbench"), ("tree", "one 1.0"),
    ]  # fmt: skip
