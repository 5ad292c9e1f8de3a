"""What a process imports, and in which form, when it runs what the package of models brings."""

from __future__ import annotations

import os
import subprocess
import sys


def test_python_is_taken_though_models_are_imported_first() -> None:
    """The package of the models says so itself."""
    program = "import kernbench_builtin.components.forwarding as f; print(f.__file__[-3:])"
    asked = {**os.environ, "KERNBENCH_PURE": "1"}
    said = subprocess.run([sys.executable, "-c", program], env=asked, capture_output=True, text=True, check=True).stdout
    assert said == ".py\n"


def test_a_quiet_run_imports_neither_a_library_of_terminals_nor_phase_2() -> None:
    """Either takes about as long to import as a small run takes."""
    program = (
        "import sys\nfrom kernbench_core.cli import main\n"
        "assert main(['run', 'gemm', '--topology', 'tiny', '-q']) == 0\n"
        "lazy = {'rich.console', 'rich.table', 'rich.text', 'pdb', 'kernbench_core.compute.executor'}\n"
        "print(sorted(lazy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"
