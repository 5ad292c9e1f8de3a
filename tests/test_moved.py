"""Modules that moved: logs that name functions by old places execute, and plug-ins are told the new ones."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from kernbench_builtin.moved import MOVED as BUILTIN_MOVED
from kernbench_builtin.moved import NAMES as BUILTIN_NAMES
from kernbench_ccl.moved import MOVED as CCL_MOVED
from kernbench_ccl.moved import NAMES as CCL_NAMES
from kernbench_core import compute
from kernbench_core.compute.functions import CORE_FUNCTIONS, GEMM
from kernbench_core.compute.saved_run import load_run, save_run
from kernbench_core.errors import ExecutionError
from kernbench_core.moved import MOVED, NAMES, current, hint
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpLog
from kernbench_core.plugins import load_plugins
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, ResultValue

OLD = "kernbench_core.compute"
"""Where core's functions lay when the first logs were saved."""


TABLES = (MOVED, BUILTIN_MOVED, CCL_MOVED)
"""What each package says of its modules."""

CHANGELOG = Path(__file__).parents[1] / "docs" / "changelog.md"


def test_every_new_place_is_there() -> None:
    """None leads on to another, and no two packages speak of one module."""
    old = [name for table in TABLES for name in table]
    new = [name for table in TABLES for name in table.values()]
    assert [name for name in new if find_spec(name) is None] == []
    assert len(old) == len(set(old))
    assert set(new) & set(old) == set()


@pytest.mark.parametrize("table", [NAMES, BUILTIN_NAMES, CCL_NAMES])
def test_every_name_that_moved_is_at_its_new_place_and_gone_from_its_old(table: Mapping[str, str]) -> None:
    """Where the old module is still there; places are those of now."""
    assert [new for new in table.values() if not has(new)] == []
    assert [old for old in table if has(old)] == []
    assert [old for old in table if old.partition(":")[0] in OLD_PLACES] == []


OLD_PLACES = {old for table in TABLES for old in table if find_spec(old.rpartition(".")[0]) and not find_spec(old)}


def has(target: str) -> bool:
    """Tell whether a "module:name" can be got."""
    module, _, name = target.partition(":")
    try:
        return hasattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("old", [old for table in TABLES for old in table])
def test_no_place_is_told_for_a_name_that_is_not_there(old: str) -> None:
    """A name that nobody has, asked for at an old place; the module alone, and what it has, are told of."""
    new = {**MOVED, **BUILTIN_MOVED, **CCL_MOVED}[old]
    assert told(f"from {old} import never_there") == ""
    public = [name for name in vars(importlib.import_module(new)) if not name.startswith("_")]
    if importable(old) or not public:
        return
    assert told(f"import {old}") == f"; {old} is now {new}"
    assert told(f"from {old} import {public[0]} as x, {public[-1]} as y") == f"; {old} is now {new}"


def told(line: str) -> str:
    """Return what is said of a line that imports what is not there."""
    with pytest.raises((ImportError, AttributeError)) as caught:
        exec(line, {})
    return hint(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from kernbench_core.address import AddressResolver",
         "AddressResolver of kernbench_core.address is now AddressResolver of kernbench_core.topology.resolver"),
        ("from kernbench_core.registry import Failure",
         "Failure of kernbench_core.registry is now PluginFailure of kernbench_core.registry"),
        ("from kernbench_core.testing import Machine",
         "Machine of kernbench_core.testing is now Harness of kernbench_core.testing"),
        ("from kernbench_core.graph import Design",
         "Design of kernbench_core.graph is now Design of kernbench_core.topology.design"),
        ("from kernbench_core.fabric import Layout",
         "Layout of kernbench_core.fabric is now MachineLayout of kernbench_core.fabric"),
        ("from kernbench_core.compute.ops import Cost",
         "Cost of kernbench_core.compute.ops is now LaneCost of kernbench_core.compute.ops"),
        ("from kernbench_core.topology import ScaleUpLink, Shape, Network",
         "Shape of kernbench_core.topology is now NetworkShape of kernbench_core.topology"),
        ("from kernbench_core.networks import ScaleUpLink, Shape, Network, never",
         "ScaleUpLink of kernbench_core.networks is now ScaleUpLink of kernbench_core.topology.networks; Shape of "
         "kernbench_core.networks is now NetworkShape of kernbench_core.topology.networks; Network of "
         "kernbench_core.networks is now ScaleUpNetwork of kernbench_core.topology.networks"),
        ("from kernbench_ccl.measure import Row",
         "Row of kernbench_ccl.measure is now SweepRow of kernbench_ccl.measure"),
        ("from kernbench_ccl.collectives import REDOPS",
         "REDOPS of kernbench_ccl.collectives is now REDOPS of kernbench_ccl.reductions"),
        ("from kernbench_ccl.contract import read_algorithm",
         "read_algorithm of kernbench_ccl.contract is now read_algorithm of kernbench_ccl.catalogue"),
        ("from kernbench_core import context", "kernbench_core.context is now kernbench_core.fabric"),
        ("import kernbench_core\nkernbench_core.context.RunContext",
         "kernbench_core.context is now kernbench_core.fabric"),
        ("import kernbench_core.registry as registry\nregistry.Failure",
         "Failure of kernbench_core.registry is now PluginFailure of kernbench_core.registry"),
        ("import kernbench_core.topology as room\nroom.Shape",
         "Shape of kernbench_core.topology is now NetworkShape of kernbench_core.topology"),
        ("from kernbench_core.topology import compile_topologi", ""),
        ("from kernbench_core.waits import *", "kernbench_core.waits is now kernbench_core.wire"),
    ],
)  # fmt: skip
def test_a_name_that_went_elsewhere_or_is_called_anew_is_told(line: str, said: str) -> None:
    """What is told can be imported: `test_every_name_that_moved…` has all targets."""
    assert told(line) == (f"; {said}" if said else "")


@pytest.mark.parametrize("table", [BUILTIN_MOVED, CCL_MOVED])
def test_no_other_package_speaks_of_what_is_still_there(table: Mapping[str, str]) -> None:
    """A module that can be imported did not move; what a room gives by the name of a module is another matter."""
    rooms = {"kernbench_ccl.measure"}
    assert [old for old in table if old not in rooms and importable(old)] == []


def importable(name: str) -> bool:
    """Tell whether there is a module of that name."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def listed() -> dict[str, str]:
    """Return new places by old ones as users read them, but for the rows that say in words what became of a module."""
    found = {}
    for row in CHANGELOG.read_text().splitlines():
        match = re.fullmatch(r"\| `(kernbench_(?:builtin|ccl)\.[\w.]+)` \| ([^:]*) \|", row)
        for old, new in re.findall(r"`([\w.]+)`(?: → `(\w+)`)?", match[2]) if match else ():
            full = old if old.startswith("kernbench_") else f"{match[1].partition('.')[0]}.{old}"
            found[full] = f"{match[1]}.{new or old.rpartition('.')[2]}"
    return found


def test_what_the_changelog_says_plugins_are_told() -> None:
    """Of each module in its table."""
    table = listed()
    told = {**BUILTIN_MOVED, **CCL_MOVED}
    assert len(table) > 80
    assert {old: told.get(old) for old in table} == table


def saved(folder: Path) -> np.ndarray:
    """Save a log of one product, with its functions named as logs of old name them; return the product."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, (8, 8)).astype(np.float32) for _ in range(2))
    store, log = MemoryStore(True), OpLog()
    read = [Access("hbm", (Region(at << 12, 256),), ArrayValue(x)) for at, x in ((1, a), (2, b))]
    made = ResultValue((0, 0), (8, 8), "f32")
    store.write("hbm", 3 << 12, made)
    params = {"m": 8, "n": 8, "k": 8, "dtype_in": "f32", "dtype_acc": "f32", "dtype_out": "f32"}
    written = Access("hbm", (Region(3 << 12, 256),), made)
    described = OpDescription("gemm", "gemm_f32", params, tuple(read), written, (0, 0))
    log.append(0.0, 1.0, "sip0.cube0.pe0.pe_gemm", described)
    save_run(folder, log, store)
    head = json.loads((folder / "run.json").read_text())
    assert head["functions"] == {"gemm_f32": GEMM}
    head["functions"] = {"gemm_f32": f"{OLD}:gemm"}
    (folder / "run.json").write_text(json.dumps(head))
    return a @ b


def test_a_log_that_names_functions_by_their_old_place_executes(tmp_path: Path) -> None:
    """To the right numbers; and it is told apart which function it is, as comparisons of single ops need it."""
    wanted = saved(tmp_path / "run")
    executor = load_run(tmp_path / "run").executor()
    assert executor.verify({"c": (Access("hbm", (Region(3 << 12, 256),)), wanted)}).failures == ()
    (record,) = executor.op_log
    assert executor.function(record)[0] == GEMM


def test_a_saved_op_whose_module_imports_an_old_place_is_told_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is executed; the log is loaded as docs say."""
    saved(tmp_path / "run")
    head = json.loads((tmp_path / "run" / "run.json").read_text())
    head["functions"] = {"gemm_f32": "acme_old_gemm:gemm"}
    (tmp_path / "run" / "run.json").write_text(json.dumps(head))
    (tmp_path / "acme_old_gemm.py").write_text("from kernbench_core.address import AddressResolver\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    executor = compute.load_run(tmp_path / "run").executor()
    with pytest.raises(ExecutionError) as caught:
        executor.function(next(iter(executor.op_log)))
    assert str(caught.value).endswith(
        " must be computed by 'acme_old_gemm:gemm', which cannot be had: No module named 'kernbench_core.address'; "
        "AddressResolver of kernbench_core.address is now AddressResolver of kernbench_core.topology.resolver."
    )


def test_docs_name_no_file_that_moved() -> None:
    """By its old name alone, where there is no file of that name; and whole paths are those of files."""
    root = CHANGELOG.parents[1]
    names = {path.name for package in ("core", "builtin", "ccl") for path in root.glob(f"kernbench_{package}/**/*.py")}
    gone = {f"{old.rpartition('.')[2]}.py" for table in TABLES for old in table} - names
    for page in [*root.glob("docs/*.md"), root / "README.md"]:
        if page != CHANGELOG:
            found = re.findall(r"`((?:kernbench_\w+/[\w/]*)?\w+\.py)`", page.read_text())
            assert [name for name in found if name in gone or ("/" in name and not (root / name).is_file())] == [], page


def test_each_function_of_core_had_an_old_place() -> None:
    """A name that an old log may hold leads to the present one."""
    names = set(CORE_FUNCTIONS.values())
    assert {current(f"{OLD}:{name.partition(':')[2]}") for name in names} == names


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "import kernbench_builtin.hbm_bank_channel",
            "ModuleNotFoundError: No module named 'kernbench_builtin.hbm_bank_channel'; "
            "kernbench_builtin.hbm_bank_channel is now kernbench_builtin.components.banks.channel",
        ),
        (
            "from kernbench_ccl.chooser import Choice",
            "ModuleNotFoundError: No module named 'kernbench_ccl.chooser'; "
            "kernbench_ccl.chooser is now kernbench_ccl.measure.choice",
        ),
        (
            "from kernbench_core.cli.probe import probe",
            "ModuleNotFoundError: No module named 'kernbench_core.cli.probe'; "
            "kernbench_core.cli.probe is now kernbench_builtin.probe.command",
        ),
        ("import kernbench_core.never", "ModuleNotFoundError: No module named 'kernbench_core.never'"),
        ("raise ImportError('no', name=['odd'])", "ImportError: no"),
        (
            "from kernbench_core.tcm_map import TcmRecorder",
            "ModuleNotFoundError: No module named 'kernbench_core.tcm_map'; "
            "kernbench_core.tcm_map is now kernbench_core.memory.scratchpad_map",
        ),
        (
            "from kernbench_core.memory import VIRTUAL_BYTES",
            "ImportError: cannot import name 'VIRTUAL_BYTES' from 'kernbench_core.memory' (PATH); "
            "kernbench_core.memory is now kernbench_core.memory.device_memory",
        ),
    ],
)
def test_a_plugin_that_imports_an_old_place_is_told_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    """In the warning that says why it was left out."""
    (tmp_path / "moved_plug.py").write_text(line + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (failure,) = load_plugins(["moved = moved_plug"], installed=False).failures
    sys.modules.pop("moved_plug", None)
    path = importlib.import_module("kernbench_core.memory").__file__
    assert failure.reason.replace(str(path), "PATH") == said


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("MOVED = {'own_room.old': 'own_room.new'}", "; own_room.old is now own_room.new"),
        ("MOVED = None", ""),
        ("raise SystemExit(3)", ""),
    ],
)
def test_a_package_of_others_is_asked_where_its_modules_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, said: str
) -> None:
    """A plug-in that no entry point names counts as well; a table that will not do changes nothing."""
    room = tmp_path / "own_room"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "moved.py").write_text(table + "\n")
    (room / "plugin.py").write_text("import own_room.old\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (failure,) = load_plugins(["own = own_room.plugin"], installed=False).failures
    for name in ("own_room", "own_room.plugin", "own_room.moved"):
        sys.modules.pop(name, None)
    assert failure.reason == f"ModuleNotFoundError: No module named 'own_room.old'{said}"
