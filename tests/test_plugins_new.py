"""`kernbench plugins new` writes a distribution that passes its own tests at once, and never overwrites anything."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from jsonschema import Draft202012Validator

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins
from tests.conftest import SOURCE_TREE

REPO = Path(__file__).parents[1]
FILES = {
    "README.md", "kernbench_acme/__init__.py", "kernbench_acme/matrix_unit.py", "kernbench_acme/matrix_unit.yaml",
    "kernbench_acme/parts_all_reduce.py", "kernbench_acme/plugin.py", "pyproject.toml", "tests/test_acme.py",
}  # fmt: skip


def texts(folder: Path) -> dict[str, str]:
    """Return what the files below a folder hold, but for what Python compiled of them."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)): path.read_text() for path in files}


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_plugins(SOURCE_TREE, installed=False)


@pytest.fixture(scope="module")
def written(plugins: Plugins, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a plug-in called acme, and return its folder."""
    folder = tmp_path_factory.mktemp("new")
    assert main(["plugins", "new", "acme", "--dir", str(folder / "deep")], plugins) == 0
    return folder / "deep" / "kernbench-acme"


@pytest.fixture
def acme(written: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    """Load what was written, as if it were installed."""
    point = tomllib.loads((written / "pyproject.toml").read_text())["project"]["entry-points"]["kernbench"]
    monkeypatch.syspath_prepend(written)
    loaded = load_plugins([*SOURCE_TREE, *(f"{name} = {module}" for name, module in point.items())], installed=False)
    for module in ("kernbench_builtin.checks.conformance", "kernbench_core.runs.bench_run"):
        monkeypatch.setattr(f"{module}.load_plugins", lambda: loaded)
    yield loaded
    for name in [name for name in sys.modules if name.startswith("kernbench_acme")]:
        del sys.modules[name]


def own_tests(written: Path) -> ModuleType:
    """Import the tests that were written."""
    spec = importlib.util.spec_from_file_location("test_of_acme", written / "tests" / "test_acme.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_says_what_it_wrote_and_what_comes_next(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder where one is, unless another is said."""
    monkeypatch.chdir(tmp_path)
    assert main(["plugins", "new", "two_words"], plugins) == 0
    assert capsys.readouterr().out.splitlines() == [
        "wrote kernbench-two-words, 8 files",
        "next: cd kernbench-two-words",
        '  pip install -e ".[test]"',
        "  pytest",
        "  kernbench plugins show two_words",
        "README.md there says what its files are, and how runs use them.",
    ]
    found = texts(tmp_path / "kernbench-two-words")
    assert {name.replace("two_words", "acme") for name in found} == FILES
    assert not [name for name, text in found.items() if re.search(r"\$(?! |schema=)|my_algorithm", text)]


def test_all_of_it_is_loaded_by_its_entry_point(acme: Plugins, written: Path) -> None:
    """With nothing left out, and targets that are there; the README names all files."""
    assert set(texts(written)) >= FILES
    assert acme.failures == ()
    of_acme = [
        (sort, name)
        for sort in ("components", "algorithms")
        for name in acme.registries[sort]
        if acme.registries[sort].provider(name).plugin == "acme"
    ]
    assert of_acme == [("components", "acme.matrix_unit"), ("algorithms", "acme.parts_all_reduce")]
    for sort, name in of_acme:
        assert acme.registries[sort].load(name).__doc__ or sort == "algorithms"
    readme = (written / "README.md").read_text()
    assert [name for name in FILES if name not in readme and "__init__" not in name and name != "README.md"] == []


def test_its_own_tests_pass(acme: Plugins, written: Path) -> None:
    """Those of its model; pytest carries out all of them in a clean environment, in a slower test."""
    module = own_tests(written)
    module.test_a_product_takes_what_the_docstring_says()
    module.test_a_run_uses_it_and_computes_the_same()


def test_its_configuration_names_the_schema_that_its_readme_writes(
    acme: Plugins, written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the file, and with the plug-in's own model in it; the file fits."""
    file = written / "kernbench_acme" / "matrix_unit.yaml"
    assert file.read_text().startswith("# yaml-language-server: $schema=topology.schema.json\n")
    (command,) = re.findall(r"^kernbench (.*) > (\S+)$", (written / "README.md").read_text(), re.MULTILINE)
    assert (written / command[1]).parent == file.parent and command[1].endswith("/topology.schema.json")
    capsys.readouterr()
    assert main(command[0].split(), acme) == 0
    schema = json.loads(capsys.readouterr().out)
    configuration = yaml.safe_load(file.read_text())
    assert list(Draft202012Validator(schema).iter_errors(configuration)) == []
    configuration["components"]["pe_gemm"]["params"]["macs"] = "many"
    assert len(list(Draft202012Validator(schema).iter_errors(configuration))) == 1


def test_a_model_that_lost_its_time_fails_its_own_tests(acme: Plugins, written: Path) -> None:
    """A cycle less is found."""
    module = own_tests(written)
    module.MatrixUnit.service_ns, kept = lambda self, msg: 12.0, module.MatrixUnit.service_ns
    try:
        with pytest.raises(AssertionError):
            module.test_a_product_takes_what_the_docstring_says()
    finally:
        module.MatrixUnit.service_ns = kept


NAMED = (
    "the vendor name of a new plug-in must be of lower-case letters, digits and '_', begin with a letter and "
    "not end with '_', not {!r}; call it acme, say."
)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Acme", NAMED.format("Acme")),
        ("2nd", NAMED.format("2nd")),
        ("../up", NAMED.format("../up")),
        ("acme_", NAMED.format("acme_")),
        ("a-b", NAMED.format("a-b")),
        ("", NAMED.format("")),
        ("kernbench_x", "the vendor name of a new plug-in must not begin with 'kernbench', which kernbench adds "
         "itself, as 'kernbench_x' does; call it x, say."),
        ("ccl", "the vendor name of a new plug-in must be unused, but 'ccl' is that of kernbench_ccl (source tree); "
         "choose another."),
        ("core", "the vendor name of a new plug-in must be unused, but package 'kernbench_core' exists already; choose "
         "another than 'core'."),
    ],
)  # fmt: skip
def test_a_name_that_cannot_be_is_refused(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, told: str
) -> None:
    """Before anything is written."""
    assert main(["plugins", "new", "--dir", str(tmp_path / "into"), name], plugins) == 2
    assert capsys.readouterr() == ("", f"error: {told}\n")
    assert not (tmp_path / "into").exists()


def test_nothing_is_overwritten(plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither what was written, nor a file that is in the way."""
    there = tmp_path / "kernbench-acme"
    there.mkdir()
    assert main(["plugins", "new", "acme", "--dir", str(tmp_path)], plugins) == 2
    assert capsys.readouterr().err == (
        f"error: '{there}' must not be there yet; choose another name or --dir, or move it away.\n"
    )
    assert list(there.iterdir()) == []
    file = tmp_path / "file"
    file.write_text("mine")
    assert main(["plugins", "new", "acme", "--dir", str(file)], plugins) == 2
    assert capsys.readouterr().err == f"error: '{file}' must be a folder; choose another --dir.\n"
    assert file.read_text() == "mine"


def test_what_fails_midway_leaves_nothing(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a disk that is full."""
    write = Path.write_text

    def full(path: Path, text: str, **options: str) -> int:
        if path.name == "plugin.py":
            raise OSError(28, "No space left on device")
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", full)
    assert main(["plugins", "new", "acme", "--dir", str(tmp_path)], plugins) == 2
    assert capsys.readouterr().err == (
        f"error: '{tmp_path / 'kernbench-acme'}' must be writable, but that failed with 'No space left on device'.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_without_collectives_there_is_no_algorithm(tmp_path: Path) -> None:
    """A model is left, and a plug-in that says so."""
    alone = load_plugins([each for each in SOURCE_TREE if not each.startswith("ccl ")], installed=False)
    assert main(["plugins", "new", "acme", "--dir", str(tmp_path)], alone) == 0
    found = texts(tmp_path / "kernbench-acme")
    assert set(found) == FILES - {"kernbench_acme/parts_all_reduce.py"}
    assert "lgorithm" not in "".join(found.values())


def test_what_was_written_is_clean(written: Path) -> None:
    """As strict as kernbench itself: its types, its style."""
    programs = Path(sys.executable).parent
    if not (programs / "ruff").exists():
        pytest.skip("ruff and mypy are of the extra dev, which make lint installs")
    types = [programs / "mypy", "--strict", "--config-file", "", "--follow-imports", "silent"]
    for command in ([programs / "ruff", "check", "--config", REPO / "pyproject.toml"], types):
        sources = [written / "kernbench_acme" / name for name in ("plugin.py", "matrix_unit.py")]
        done = subprocess.run([*command, *sources], cwd=REPO, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_pytest_passes_in_a_clean_environment(written: Path, tmp_path: Path) -> None:
    """Where it is installed as its README says, but that libraries come from here, and no registry is asked."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    purelib = subprocess.run([python, "-c", where], check=True, capture_output=True, text=True).stdout.strip()
    here = sysconfig.get_path("purelib")  # with its .pth files: one of them finds `kernbench`
    (Path(purelib) / "libraries.pth").write_text(f"import site; site.addsitedir({here!r})\n{REPO}\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-build-isolation"]
    for command in ([*install, "--quiet", "-e", "."], [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]):
        done = subprocess.run(command, cwd=written, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ passed", done.stdout.splitlines()[-1]), done.stdout
