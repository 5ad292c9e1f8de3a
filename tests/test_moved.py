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
from kernbench_ccl.moved import MOVED as CCL_MOVED
from kernbench_core.compute.functions import CORE_FUNCTIONS, GEMM
from kernbench_core.compute.saved_run import load_run, save_run
from kernbench_core.moved import MOVED, current
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
            "from kernbench_ccl.chooser import choose",
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
