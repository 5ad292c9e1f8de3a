"""What is loaded with what: the contract of a model stands alone, and so does the bare engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kernbench_core

REPO = Path(kernbench_core.__file__).parents[1]
FLAT = sorted(path.stem for path in (REPO / "kernbench_core").glob("*.py") if path.stem != "__init__")
LIBRARIES = ("greenlet", "ml_dtypes", "numpy", "pluggy", "rich", "rich_click", "simpy", "yaml")


def loaded_with(program: str) -> tuple[set[str], set[str]]:
    """Return the rooms, but for that of the form, and our libraries but attrs that a process has in the end."""
    told = (
        f"{program}\nimport sys\n"
        "print(*{name.split('.')[1] for name in sys.modules if name.startswith('kernbench_core.')})\n"
        f"print(*(name for name in {LIBRARIES!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    *_, modules, libraries = done.stdout.split("\n")[:-1]
    return set(modules.split()) - {*FLAT, "compiled"}, set(libraries.split())


@pytest.mark.parametrize(
    ("module", "rooms", "libraries"),
    [
        ("component", {"events", "workers"}, {"simpy"}),
        ("plugins.loading", {"plugins", "process"}, {"pluggy"}),
        ("values.memory_store", {"values"}, {"numpy"}),
        ("engine.hardware", {"engine", "events", "process", "workers"}, {"simpy"}),
        ("engine.engine", {"engine", "events", "process", "workers"}, {"simpy"}),
        ("engine.watchdog", {"engine", "events", "process", "workers"}, {"simpy"}),
        ("testing", {"testing"}, set()),
        ("testing.rig", {"engine", "events", "process", "testing", "workers"}, {"simpy"}),
    ],
)
def test_no_more_is_loaded_than_is_needed(module: str, rooms: set[str], libraries: set[str]) -> None:
    """Of a component its contract, of a machine no memory, kernel or host, of a run its options."""
    found = loaded_with(f"import kernbench_core.{module}")
    assert (found[0] - {"wording"}, found[1]) == (rooms, libraries)  # what sentences show of values is below all


def test_the_narrow_floats_are_loaded_when_one_is_used() -> None:
    """Not with the language, which takes their names and numpy's own types; a type of theirs brings them along."""
    takes = (
        "from kernbench_core.kernel.tl.unit_op import checked_keywords\nimport numpy as np\n"
        "kept = checked_keywords('tl.f', {'a': np.float16, 'b': np.dtype('>i4')}, None)\n"
        "assert kept == {'a': 'f16', 'b': 'int32'}, kept"
    )
    assert "ml_dtypes" not in loaded_with(f"import kernbench_core.kernel.tl.language\n{takes}")[1]


def test_help_loads_the_command_line_and_what_plugins_register() -> None:
    """Of no command more than its line, and no library that simulates or computes."""
    rooms, libraries = loaded_with("from kernbench_core.cli import main\nmain(['--help'])")
    assert rooms == {"cli", "plugins", "process"}
    assert libraries == {"pluggy", "rich", "rich_click"}


def test_the_flat_files_load_no_room_but_those_below() -> None:
    """All of them together; how a limit interrupts is below every one, workers below the base of components."""
    rooms, _ = loaded_with("\n".join(f"import kernbench_core.{name}" for name in FLAT))
    assert rooms == {"events", "plugins", "process", "workers"}
