"""What workers must have installed alike, and the sentence for what they have not."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import kernbench_core
from kernbench_core.package import __version__
from kernbench_core.plugins import load_plugins
from kernbench_core.sweeps.executors.cluster.sameness import differences, installed

HERE: dict[str, Any] = {
    "kernbench": "1.0",
    "plugins": {"acme": "acme-models 1.2", "builtin": "kernbench 1.0"},
    "files": {"acme/a.py": "0", "acme/b.py": "1", "kernbench_core/engine.py": "2"},
}


def _with(part: str, **changes: Any) -> dict[str, Any]:
    kept = {**HERE[part], **{name.replace("__", "/").replace("_py", ".py"): it for name, it in changes.items()}}
    return {**HERE, part: {name: it for name, it in kept.items() if it is not None}}


def test_the_same_is_the_same() -> None:
    assert differences("worker w", {**HERE}, HERE) is None


@pytest.mark.parametrize(
    ("there", "sentence"),
    [
        ({**HERE, "kernbench": "0.9"}, "worker w must have kernbench 1.0, as is here, not 0.9; install it there."),
        (
            _with("plugins", acme=None),
            "worker w must have plug-in 'acme' of acme-models 1.2, as is here, and does not have it; install the same.",
        ),
        (
            _with("plugins", acme="acme-models 1.1"),
            "worker w must have plug-in 'acme' of acme-models 1.2, as is here, not of acme-models 1.1; install the "
            "same.",
        ),
        (
            _with("plugins", more="more-models 3"),
            "worker w must have no plug-in 'more', as is here, and has it of more-models 3; install the same.",
        ),
        (
            _with("files", acme__b_py="9"),
            "worker w must have the same files installed as are here, and 'acme/b.py' differs; install the same there.",
        ),
        (
            _with("files", acme__b_py=None, acme__c_py="3"),
            "worker w must have the same files installed as are here, and 'acme/b.py' and 1 more differ; install the "
            "same there.",
        ),
        (
            Exception("ModuleNotFoundError(\"No module named 'kernbench_core'\")"),
            f"worker w must have kernbench {__version__} installed, and has no such version; install it there.",
        ),
        (
            OSError("No space left on device"),
            "worker w must be able to begin a sweep, and that failed with OSError: No space left on device; look at "
            "its log.",
        ),
    ],
)
def test_what_differs_is_named(there: object, sentence: str) -> None:
    assert differences("worker w", there, HERE) == sentence


def test_every_file_of_the_packages_counts() -> None:
    found = installed(load_plugins(installed=False))
    root = Path(kernbench_core.__file__).parent
    assert (found["kernbench"], found["plugins"]) == (__version__, {})
    assert {name.partition("/")[0] for name in found["files"]} == {"kernbench_core"}
    assert found["files"]["kernbench_core/package.py"] == hashlib.sha256((root / "package.py").read_bytes()).hexdigest()
    assert len(found["files"]) > 300
    assert not any("__pycache__" in name or name.endswith(".pyc") for name in found["files"])


def test_a_plug_in_counts_with_all_of_its_package_and_one_that_is_a_file_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sameness_models").mkdir()
    (tmp_path / "sameness_models" / "__init__.py").write_text("")
    (tmp_path / "sameness_models" / "plugin.py").write_text("kernbench_api = 1\n")
    (tmp_path / "sameness_models" / "table.csv").write_text("1,2\n")
    (tmp_path / "single_file_plugin.py").write_text("kernbench_api = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    extra = ["acme = sameness_models.plugin", str(tmp_path / "single_file_plugin.py")]
    found = installed(load_plugins(extra, installed=False))
    assert found["plugins"] == {"acme": "sameness_models (source tree)"}
    assert {name for name in found["files"] if not name.startswith("kernbench_core/")} == {
        "sameness_models/__init__.py",
        "sameness_models/plugin.py",
        "sameness_models/table.csv",
    }
