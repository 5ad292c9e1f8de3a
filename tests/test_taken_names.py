"""Names that two plug-ins have, or that are no names: a warning for all, an error for who uses them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kernbench_core.cli import main as kernbench
from kernbench_core.compute.functions import CORE_FUNCTIONS
from kernbench_core.compute.ops import ALIASES, OPS
from kernbench_core.errors import PluginError
from kernbench_core.kernel.tl.language import REFUSED, TLContext
from kernbench_core.plugins import (
    BenchEntry,
    MachineEntry,
    MachineRegistry,
    OpEntry,
    Provider,
    Registry,
    load_plugins,
    own_ops,
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


@pytest.mark.parametrize("run", [("exp", "WOBBLE")], indirect=True)
def test_functions_for_one_of_our_ops_are_left_out(run: Run) -> None:
    """Whichever computed it would do so in silence; the run goes on."""
    code, _, err = run("run", "vector-add", "--topology", "tiny", "-q")
    assert code == 0
    for source in (ONE, TWO):
        told = f"op 'exp' is left out: {source} must not call it as kernbench calls its own; rename it"
        assert f"warning: {told}." in " ".join(err.split())


@pytest.mark.parametrize("target", ["A_FUNCTION", "A_RECORD"])
def test_an_op_of_ours_that_a_plugin_takes_is_fatal_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Whatever stands behind the name, which is not looked at."""
    text = "from kernbench_core import OpEntry\nkernbench_api = 1\ndef kernbench_ops():\n"
    text += f'    return [OpEntry("fdiv", "taker:{target}"), OpEntry("mine", "taker:M")]\n'
    (tmp_path / "taker.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["taker = taker"], installed=False)
    assert list(plugins.ops) == ["mine"]
    told = "op 'fdiv' is left out: taker (source tree) must not call it as kernbench calls its own; rename it"
    assert [str(each) for each in plugins.failures] == [told]
    with pytest.raises(PluginError) as caught:
        load_plugins(["taker = taker"], installed=False, strict=True)
    assert str(caught.value) == f"{told}."
    sys.modules.pop("taker", None)


def test_the_names_of_our_ops_are_those_that_we_compute() -> None:
    """Written down apart from the records: no more of them, and no fewer."""
    assert {*OPS, *ALIASES, *CORE_FUNCTIONS} == own_ops._NAMES
    assert own_ops.is_own("gemm_f16")
    assert not own_ops.is_own("gemmini")


def test_the_names_of_tl_are_those_that_it_has_or_refuses() -> None:
    """Written down apart from the language, too."""
    of_tl = {name for name in dir(TLContext) if not name.startswith("_")}
    assert of_tl - own_ops._NAMES == own_ops.CALLS
    assert {*REFUSED} - of_tl - own_ops._NAMES == own_ops.REFUSED


TAKER = """
from kernbench_core import LanguageEntry, OpEntry
from kernbench_core.compute.ops import OPS
import attrs
kernbench_api = 1
NAMES = NAMED
A_RECORD = attrs.evolve(OPS["exp"], name=NAMES[0])
def a_function(params, inputs):
    return inputs[0]
def kernbench_ops():
    return [OpEntry("load", "taker:A_RECORD"), OpEntry("store", "taker:a_function"), OpEntry("rand", "taker:A_RECORD")]
def kernbench_language():
    return [LanguageEntry(name, "taker:a_function", "A call.") for name in ("dot", "rand", "ge", "mine")]
"""


def test_an_entry_called_as_something_of_tl_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a line, and runs go on; a function for `tl.unit_op` may be, and a record as a name that is refused."""
    (tmp_path / "taker.py").write_text(TAKER.replace("NAMED", '("load",)'))
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["taker = taker", *own_plugins("builtin")], installed=False)
    assert "load" not in plugins.ops and {"store", "rand"} <= {*plugins.ops}
    kinds = (("op", "load"), *(("name of tl", name) for name in ("dot", "rand", "ge")))
    must = "taker (source tree) must not call it as kernbench calls its own; rename it"
    told = [f"warning: {noun} {name!r} is left out: {must}." for noun, name in kinds]
    assert kernbench(["run", "vector-add", "--topology", "tiny", "-q"], plugins) == 0
    assert sorted(capsys.readouterr().err.splitlines()) == sorted(told)
    with suppress(SystemExit):
        assert kernbench(["plugins", "check", "taker"], plugins) == 1
    assert " ".join(capsys.readouterr().out.split()).count(must) == 1  # of all that are alike
    with pytest.raises(PluginError, match=r"^op 'load' is left out: taker \(source tree\) must not call it as "):
        load_plugins(["taker = taker"], installed=False, strict=True)
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
