"""`VENDOR:name` is one of two things of one name, wherever names are given; and any thing by its vendor."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import PluginSource, load_plugins
from tests.conftest import SOURCE_TREE

#: What both offer: everything of the same name, each half or twice as large as the other's.
SOURCE = """
import numpy as np

from kernbench_core import (
    AlgorithmEntry, ComponentBase, ComponentEntry, ExporterEntry, MachineEntry, NetworkEntry, OpEntry, Param,
)
from kernbench_core.compute.ops import MathOp
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import floats
from kernbench_builtin.machines import mesh
from kernbench_core.topology import NetworkShape, ScaleUpLink
from attrs import evolve

kernbench_api = 1
TIMES = NUMBER


class Unit(ComponentBase):
    PARAMS = (Param("took", "time", "NUMBER00 ns", "Time of a product."),)

    def run(self, env, msg):
        yield env.timeout(self.params["took"])


def links(extent):
    return [ScaleUpLink(0, f"p{n}", 1, f"p{n}") for n in range(1)]


def read(config, networks):
    return mesh.MeshSpec(NUMBER, 3, 1.0, mesh.ChannelSpec(16.0, 1.0), mesh.InterfaceSpec(1.0))


SHAPE = NetworkShape(links, lambda extent, here, there: there)
WOBBLE = MathOp("wobble", lambda params, x: TIMES * x, types=floats, shapes=elementwise)
GRID = evolve(mesh.MESH, what="a grid of SOURCE", read=read)


def scaled(params, inputs):
    return TIMES * inputs[0]


def export(op_log, out):
    out.write(b"SOURCE")


def kernbench_components():
    return [ComponentEntry("acme.unit", "SOURCE_names:Unit", "", "A unit.")]


def kernbench_networks():
    return [NetworkEntry("acme.pair", "SOURCE_names:SHAPE", "Two packages.")]


def kernbench_machines():
    return [MachineEntry("grid", "SOURCE_names:GRID", "A grid.")]


def kernbench_algorithms():
    return [AlgorithmEntry("acme.star_all_reduce", "kernbench_example.star_all_reduce:kernel", "Of SOURCE.")]


def kernbench_ops():
    return [OpEntry("wobble", "SOURCE_names:WOBBLE"), OpEntry("scaled", "SOURCE_names:scaled")]


def kernbench_exporters():
    return [ExporterEntry("dump", "SOURCE_names:export", (".dump",), "A dump.")]
"""
KERNEL = """import numpy as np

def kernel(x_ptr, y_ptr, tl):
    x = tl.load(x_ptr, shape=(4,))
    tl.store(y_ptr, tl.unit_op("pe_math", SCALED, x))
    tl.store(y_ptr + 4, getattr(tl, WOBBLE)(x))

def bench(rt):
    y = rt.empty((8,), "f32")
    rt.launch(kernel, rt.tensor(np.ones(4, np.float32)), y, grid=(1,))
    rt.check(y, lambda: np.array([EXPECTED] * 4 + [EXPECTED] * 4, np.float32))
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run kernbench with two distributions that have one vendor, acme; give code and what is on both streams."""
    folder = tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        for number, name in ((1, "one"), (2, "two")):
            (folder / f"{name}_names.py").write_text(SOURCE.replace("NUMBER", str(number)).replace("SOURCE", name))
        sources = [PluginSource(f"acme-{name}", "acme", f"{name}_names", "1.0") for name in ("one", "two")]
        plugins = load_plugins([*SOURCE_TREE, *sources], installed=False)

        def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
            capsys.readouterr()
            return (main(list(arguments), plugins), *capsys.readouterr())

        yield call
    for name in ("one", "two"):
        sys.modules.pop(f"{name}_names", None)


def left_out(noun: str, name: str) -> str:
    return (
        f"{noun} {name!r} is left out: it must be registered once, not by acme-one 1.0 and by acme-two 1.0; uninstall "
        f"all but one, or write 'acme-one:{name}' or 'acme-two:{name}'."
    )


def result(found: tuple[int, str, str]) -> Any:
    assert found[0] == 0, found
    return json.loads(found[1])


GEMM = ("run", "gemm", "--topology", "tiny", "-p", "M=16", "-p", "N=16", "-p", "K=16", "--json")


def test_a_model_is_named_with_its_distribution(run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By --set and in YAML; the bare name is an error that names both."""
    code, _, err = run(capsys, *GEMM, "--set", "components.pe_gemm.impl=acme.unit")
    assert code == 3
    assert f"components.pe_gemm.impl must be usable, not 'acme.unit': {left_out('component', 'acme.unit')}" in err
    (tmp_path / "two.yaml").write_text("components: {pe_gemm: {impl: 'acme-two:acme.unit'}}\n")
    one = result(run(capsys, *GEMM, "--set", "components.pe_gemm.impl=acme-one:acme.unit"))
    two = result(run(capsys, *GEMM, "--components", str(tmp_path / "two.yaml")))
    assert two["phases"]["kernel"] - one["phases"]["kernel"] == 100.0
    short = result(run(capsys, *GEMM, "--set", "components.pe_gemm.impl=acme-two:acme.unit"))
    assert short["phases"] == two["phases"]


def test_ops_are_named_with_their_distribution(run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Those of a function, and those of a record by getattr; phase 2 computes by the one that is named."""
    for number, vendor in ((1.0, "acme-one:"), (2.0, "acme-two:")):
        text = KERNEL.replace("SCALED", repr(f"{vendor}scaled")).replace("WOBBLE", repr(f"{vendor}wobble"))
        (tmp_path / "kernel.py").write_text(text.replace("EXPECTED", str(number)))
        found = run(capsys, "run", str(tmp_path / "kernel.py"), "--topology", "tiny", "--verify-data", "--json")
        assert result(found)["verified"] is True
        assert result(found)["max_abs_error"] == 0
    (tmp_path / "kernel.py").write_text(KERNEL.replace("SCALED", "'scaled'").replace("WOBBLE", "'wobble'"))
    code, _, err = run(capsys, "run", str(tmp_path / "kernel.py"), "--topology", "tiny", "-q")
    assert code == 6
    assert f"error: {left_out('op', 'scaled')}" in err


def test_a_network_is_named_with_its_distribution(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it is used it is an error otherwise."""
    chosen = ("run", "vector-add", "--topology", "tiny", "-p", "n=64", "--set", "system.sips=2", "--json", "--set")
    assert result(run(capsys, *chosen, "system.network.topology=acme-one:acme.pair"))["total_ns"] > 0
    code, _, err = run(capsys, *chosen, "system.network.topology=acme.pair")
    assert code == 3
    assert left_out("network", "acme.pair") in err


def test_an_algorithm_is_named_with_its_distribution(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As --algo, and where it is checked."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "plugins_example")
    asked = ("ccl", "all_reduce", "--topology", "tiny", "--ranks", "2", "--network", "switch", "-b", "1K", "-e", "1K")
    found = result(run(capsys, *asked, "-j", "1", "--json", "--algo", "acme-two:acme.star_all_reduce"))
    assert found["wrong"] == 0
    assert {row["algorithm"] for row in found["rows"]} == {"acme-two:acme.star_all_reduce"}
    code, _, err = run(capsys, *asked, "-j", "1", "--algo", "acme.star_all_reduce")
    assert code == 6
    assert left_out("algorithm", "acme.star_all_reduce") in err


def test_a_machine_is_named_with_its_distribution(run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As the section that describes it; of three or six routers."""
    for vendor, routers in (("acme-one:", 3), ("acme-two:", 6), ("", 0)):
        parts = "{router: {impl: builtin.forwarding}, interface: {impl: builtin.forwarding}}"
        (tmp_path / "grid.yaml").write_text(f"{vendor}grid: {{}}\ncomponents: {parts}\n")
        code, out, err = run(capsys, "topology", "show", str(tmp_path / "grid.yaml"), "--json")
        if vendor:
            assert code == 0, err
            assert json.loads(out)["nodes"] == 2 * routers, "each has an interface"
        else:
            assert (code, left_out("machine", "grid") in err) == (6, True)


def test_formats_of_one_suffix_cannot_be_told_apart(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without a vendor before the file."""
    code, _, err = run(capsys, "run", "vector-add", "--topology", "tiny", "--trace", str(tmp_path / "a.dump"))
    assert code == 2
    assert (
        "error: trace file 'a.dump' must fit one exporter, not acme-one:dump of acme-one 1.0 and acme-two:dump of "
        f"acme-two 1.0; choose another suffix, or write 'acme-one:{tmp_path / 'a.dump'}' or "
        f"'acme-two:{tmp_path / 'a.dump'}'.\n"
    ) in err
    for vendor, wrote in (("acme-one", b"one"), ("acme-two", b"two")):
        chosen = f"{vendor}:{tmp_path / 'a.dump'}"
        assert run(capsys, "run", "vector-add", "--topology", "tiny", "--trace", chosen, "-q")[0] == 0
        assert (tmp_path / "a.dump").read_bytes() == wrote
    plain = f"builtin:{tmp_path / 'a.pftrace'}"
    assert run(capsys, "run", "vector-add", "--topology", "tiny", "--trace", plain, "-q")[0] == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.dump", "a.pftrace"]


def test_any_name_may_be_said_with_its_vendor(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a plug-in or of its distribution, whether another has the name, too, or none."""
    plain = result(run(capsys, *GEMM))
    for bench, preset, impl in (
        ("builtin:gemm", "builtin:tiny", "builtin:builtin.pe_gemm"),
        ("kernbench_builtin (source tree):gemm", "kernbench_builtin (source tree):tiny", "builtin:pe_gemm"),
    ):
        chosen = (*GEMM[4:], "--set", f"components.pe_gemm.impl={impl}")
        found = result(run(capsys, "run", bench, "--topology", preset, *chosen))
        assert (found["total_ns"], found["op_log_sha256"]) == (plain["total_ns"], plain["op_log_sha256"])
    assert run(capsys, "topology", "validate", "builtin:tiny")[0] == 0
    assert "builtin:tiny" in run(capsys, "topology", "list", "builtin:tiny")[1]
    proved = result(run(capsys, "ccl", "check", "ccl:direct_all_reduce", "--ranks", "2", "--json"))
    assert proved["proved"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("run", "acme:gemm"), 2, "bench must be a registered name or the path of a .py file, not 'acme:gemm'."),
        (("run", "gemm", "--topology", "acme:tiny"), 2, "topology must be a preset or a file, not 'acme:tiny'."),
        (("run", "builtin:gem"), 2, "bench must be a registered name or the path of a .py file, not 'builtin:gem'."),
    ],
)
def test_a_vendor_that_has_no_such_name_is_refused(
    run: Run, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, told: str
) -> None:
    """As any name that nobody has."""
    found = run(capsys, *arguments)
    assert found[0] == code
    assert f"error: {told}" in found[2]


def test_a_plugin_is_told_from_its_namesake_by_its_distribution(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it is shown, and where it is checked."""
    told = "error: plug-in 'acme' must name one, not 2; give the distribution: 'acme-one' or 'acme-two'.\n"
    for command in ("show", "check"):
        code, _, err = run(capsys, "plugins", command, "acme")
        assert (code, err.endswith(told)) == (2, True)
    shown = result(run(capsys, "plugins", "show", "acme-two", "--json"))["plugin"]
    assert (shown["distribution"], shown["version"]) == ("acme-two", "1.0")
    assert [each["name"] for each in shown["entries"]["components"]] == ["acme-two:acme.unit"]
    checked = result(run(capsys, "plugins", "check", "acme-two", "acme-two:scaled", "--json"))["results"]
    assert {each["entry"] for each in checked} == {"acme-two:scaled"}
    code, _, err = run(capsys, "plugins", "show", "kernbench_buildin (source tree)")
    assert code == 2 and "plug-in must be a registered name" in err
