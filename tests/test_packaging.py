"""What is shipped: the packages keep to themselves, and a stranger's plug-in works from a clean environment."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from kernbench_core.plugins import load_plugins
from tests.conftest import SOURCE_TREE, loaded_tool

REPO = Path(__file__).parents[1]
OVERRIDE = "plugins_example/kernbench_example/slow_gemm.yaml"


def project(path: Path = REPO) -> dict[str, Any]:
    return tomllib.loads((path / "pyproject.toml").read_text(encoding="utf-8"))


def python_files(package: str) -> list[Path]:
    return sorted((REPO / package).rglob("*.py"))


def test_core_names_nothing_of_the_packages_that_register_with_it() -> None:
    """Its code has no `builtin.` and no `ccl.` name but in one list; docstrings may say where to look."""
    pattern = re.compile(r"\b(builtin|ccl)\.|kernbench_(builtin|ccl)")
    found = [path.name for path in python_files("kernbench_core") if any(map(pattern.search, texts_of(path)))]
    assert found == ["package.py"]


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts in the code of a file that are no docstrings, and what it imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value
        elif isinstance(node, ast.ImportFrom):
            yield f"{node.module}."


def test_every_dependency_is_pinned() -> None:
    """The constraints pin an exact version of everything that is declared, and name no registry."""
    lines = (REPO / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    declared = [*project()["project"]["dependencies"]]
    for extra in project()["project"]["optional-dependencies"].values():
        declared += extra
    names = {re.split(r"[<>=\[ ]", one)[0].lower().replace("_", "-") for one in declared} - {"kernbench"}
    assert names <= pinned


def test_every_package_says_that_it_is_typed_and_ships_its_data() -> None:
    """py.typed, the YAML presets and what was published are inside the packages that are found."""
    for package in ("kernbench_core", "kernbench_builtin", "kernbench_ccl"):
        assert (REPO / package / "py.typed").is_file()
    assert project()["tool"]["setuptools"]["package-data"] == {
        "*": [
            "*.cpp", "*.css", "*.csv", "*.hpp", "*.html", "*.js", "*.json", "*.log", "*.pxd", "*.pyx", "*.txt",
            "*.yaml", "py.typed",
        ]
    }


def test_the_licence_is_whole_and_the_changelog_leads_on() -> None:
    """Apache 2.0 to its last paragraph; one changelog, that of the manual, with a page in the root that names it."""
    licence = (REPO / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in licence and licence.rstrip().endswith("limitations under the License.")
    assert project()["project"]["license"] == "Apache-2.0"
    (page,) = re.findall(r"\]\((.*?)\)", (REPO / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert (REPO / page).read_text(encoding="utf-8").startswith("# Changelog\n")


def test_make_knows_its_targets() -> None:
    """The targets that the documentation names exist, and a dry run of the demo ends in the demo."""
    for target in ("compiled", "test", "test-all", "golden", "docs", "lint"):
        assert dry_run(target)
    assert dry_run("demo")[-1] == ".venv/bin/kernbench run gemm --verify-data"


def test_what_was_compiled_is_compiled_again_where_its_source_is_newer(tmp_path: Path) -> None:
    """As after an edit or a pull; without, what is tested would be Python. Of other modules, nothing is done."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "setup.py"):
        shutil.copy2(REPO / name, tmp_path / name)
    for name in (
        "kernbench_core/compiled/built.cpython-311-x86_64-linux-gnu.txt",
        "kernbench_core/wire.py",
        "kernbench_core/wire.pxd",
        "kernbench_core/cli.py",
        ".venv/bin/python",
        ".venv/.builds",
        ".venv/.installed",
        ".venv/.installed-test",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("kernbench_core.wire 0\n")

    def installs() -> bool:
        return any("pip install" in line for line in dry_run("test", folder=tmp_path))

    later = time.time() + 10
    assert not installs()
    os.utime(tmp_path / "kernbench_core/cli.py", (later, later))
    assert not installs()
    os.utime(tmp_path / "kernbench_core/wire.pxd", (later, later))
    assert installs()


def dry_run(*arguments: str, folder: Path = REPO) -> list[str]:
    """Return the lines that make would run."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    make = ["make", "--no-print-directory", "-n", *arguments]
    done = subprocess.run(make, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_the_demo_waits_for_no_compiler(tmp_path: Path) -> None:
    """It installs Python alone where nothing is installed, and nothing where the compiled form is."""
    installs = [line for line in dry_run("demo", f"VENV={tmp_path}") if "pip install" in line]
    assert len(installs) == 1 and installs[0].startswith("KERNBENCH_PURE=1 ")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    for stamp in (".builds", ".installed"):
        (tmp_path / stamp).touch()
    assert dry_run("demo", f"VENV={tmp_path}") == [f"{tmp_path}/bin/kernbench run gemm --verify-data"]
    installs = [line for line in dry_run("compiled", f"VENV={tmp_path / 'other'}") if "pip install" in line]
    assert len(installs) == 2 and not any("KERNBENCH_PURE" in line for line in installs)


def test_every_hook_is_documented() -> None:
    """docs/plugins.md has a row for every hook there is."""
    from kernbench_core.plugins.points import PREFIX

    text = (REPO / "docs/plugins.md").read_text(encoding="utf-8")
    hooks = [f"{PREFIX}{kind}" for kind in load_plugins(SOURCE_TREE, installed=False).points]
    assert [name for name in hooks if f"| `{name}` |" not in text] == []


#: What lies in the root of a checkout and belongs to the machine that it is on.
LOCAL = (
    "__pycache__", "*.egg-info", "build", "dist", "kernbench-out", ".git", ".venv", ".hypothesis", ".*_cache", "*.so",
    "*.c", "built.*.txt",
)  # fmt: skip


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what a checkout would hold."""
    return Path(shutil.copytree(REPO, tmp_path_factory.mktemp("copy") / "tree", ignore=shutil.ignore_patterns(*LOCAL)))


@pytest.fixture(scope="session")
def sdist(tree: Path) -> Path:
    """Build the source distribution, as `python -m build` does, from what is at hand: no registry is asked."""
    return built(tree, "sdist")


def built(tree: Path, what: str) -> Path:
    code = f"from setuptools import build_meta; print(build_meta.build_{what}('dist'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, env=outside(), capture_output=True, text=True, check=True
    )
    return tree / "dist" / done.stdout.splitlines()[-1]


def libraries() -> dict[str, metadata.Distribution]:
    """Return the distributions that the declared dependencies lead to, by their names."""
    found: dict[str, metadata.Distribution] = {}
    asked = [Requirement(each) for each in project()["project"]["dependencies"]]
    while asked:
        one = asked.pop()
        if one.name.lower() in found or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        found[one.name.lower()] = metadata.distribution(one.name)
        asked += [Requirement(each) for each in found[one.name.lower()].requires or ()]
    return found


def lend(library: metadata.Distribution, folder: Path) -> None:
    """Link what a distribution has installed into a folder of another environment; its programs stay behind."""
    for name in {file.parts[0] for file in library.files or ()} - {"..", "__pycache__"}:
        (folder / name).symlink_to(Path(str(library.locate_file(name))))


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory, sdist: Path) -> Path:
    """Install kernbench and the example, each as a wheel made of the source distribution; give the programs.

    The environment is new. It borrows the libraries that kernbench declares, and no others, from the present one.
    """
    folder = tmp_path_factory.mktemp("clean")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    wheels = [built(unpacked, "wheel"), built(unpacked / "plugins_example", "wheel")]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    for library in libraries().values():
        lend(library, site_packages(folder / "env" / "bin"))
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    done = subprocess.run(
        [*install, "--disable-pip-version-check", *wheels], env=outside(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "env" / "bin"


def site_packages(programs: Path) -> Path:
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([programs / "python", "-c", where], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip())


def outside() -> dict[str, str]:
    """Return an environment that leads to no source tree."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def kernbench(programs: Path, *args: str) -> Any:
    """Run the installed command, far from the source tree, and return the JSON that it prints; it warns of nothing."""
    done = subprocess.run(
        [programs / "kernbench", *args], cwd=programs.parent, env=outside(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_the_source_distribution_is_the_whole_tree(tree: Path, sdist: Path) -> None:
    """With tests, pages, licence and changelog; what setuptools adds is metadata."""
    with tarfile.open(sdist) as archive:
        packed = {"/".join(Path(each.name).parts[1:]) for each in archive.getmembers() if each.isfile()}
    ours = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file() and "dist" not in path.parts}
    ours = {name for name in ours if ".egg-info" not in name and "__pycache__" not in name}
    assert ours - packed == {".gitignore"}
    assert {name for name in packed - ours if ".egg-info/" not in name} == {"PKG-INFO", "setup.cfg"}


def test_what_is_installed_is_compiled_where_there_is_a_compiler(clean_environment: Path) -> None:
    """By a wheel of the source distribution; the same run gives the same op log as Python does."""
    logs = {}
    for setting in ("0", "1"):
        environment = {**outside(), "KERNBENCH_PURE": setting}
        program = clean_environment / "kernbench"
        told = [
            subprocess.run([program, *args], env=environment, capture_output=True, text=True, check=True)
            for args in (["--version"], ["run", "gemm", "--topology", "tiny", "--json"])
        ]
        logs[told[0].stdout.partition("(")[2].strip(" )\n")] = json.loads(told[1].stdout)["op_log_sha256"]
    form = "compiled core" if shutil.which("cc") else "pure Python: it was not compiled when it was installed"
    assert set(logs) == {form, "pure Python: KERNBENCH_PURE is set"}
    assert len(set(logs.values())) == 1


def test_without_a_compiler_it_is_python_and_says_so(tmp_path: Path) -> None:
    """In one line when it is built; nothing compiled is left, of before neither."""
    tree = Path(shutil.copytree(REPO, tmp_path / "tree", ignore=shutil.ignore_patterns(*LOCAL)))
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    environment = {**outside(), "CC": "/nowhere/cc"}
    done = subprocess.run(build, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == (
        "kernbench: its core could not be compiled ([Errno 2] No such file or directory: '/nowhere/cc'), so it is "
        "installed as pure Python, which gives the same results more slowly; install a C compiler, and install again."
    )
    assert not [*tree.rglob("*.so"), *tree.rglob("built.*")]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Lay out a checkout of which one module is to be compiled, and the native engine."""
    pytest.importorskip("Cython")
    head, _, rest = (REPO / "setup.py").read_text(encoding="utf-8").partition("COMPILED = (")
    text = f'{head}COMPILED = ("kernbench_core.units",){rest.partition(chr(10) + ")")[2]}'
    (tmp_path / "setup.py").write_text(text, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "kernbench"\nversion = "0"\n')
    (tmp_path / "kernbench_builtin" / "door").mkdir(parents=True)
    (tmp_path / "kernbench_builtin" / "door" / "__init__.py").write_text("")
    for name in ("units.py", "compiled/form.py", "__init__.py", "../tools/build_cache.py"):
        (tmp_path / "kernbench_core" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / "kernbench_core" / name, tmp_path / "kernbench_core" / name)
    native = tmp_path / "kernbench_builtin" / "native"
    (native / "engine").mkdir(parents=True)
    (native / "engine" / "engine.cpp").write_text("int one() { return 1; }\n")
    shutil.copy(REPO / "kernbench_builtin" / "native" / "sources.py", native)
    return tmp_path


def set_up(folder: Path, *command: str, **environment: str) -> str:
    """Run a command of setup.py; return what stands on stderr."""
    asked = [sys.executable, "setup.py", "-q", *command]
    kept = {name: value for name, value in outside().items() if not name.startswith("KERNBENCH_")}
    done = subprocess.run(asked, cwd=folder, env=kept | environment, capture_output=True, text=True, check=True)
    return done.stderr


def compiled_in(folder: Path) -> list[str]:
    """Return the names of what is compiled in the package of a folder, and of lists of that."""
    files = (folder / "kernbench_core").rglob("*")
    return sorted(file.name for file in files if file.suffix == ".so" or file.name.startswith("built."))


def test_what_cannot_be_made_c_of_is_python_and_says_so(small: Path) -> None:
    """As types that a Cython does not understand; the rest of an installation goes on."""
    (small / "kernbench_core" / "units.pxd").write_text("cdef class Broken(:\n")
    assert (
        "kernbench: its core could not be compiled (kernbench_core/units.py), so it is installed as pure Python, which "
        "gives the same results more slowly; tell its authors of what stands above, and install again.\n"
    ) in set_up(small, "build_ext", "--inplace")
    assert compiled_in(small) == []


def test_an_editable_install_as_python_leaves_nothing_compiled(small: Path) -> None:
    """Nor does a build leave what an older version compiled, and no longer does."""
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    suffix = EXTENSION_SUFFIXES[0]
    (small / "kernbench_core" / f"callsite{suffix}").write_bytes(b"of an older version")
    set_up(small, "build_ext", "--inplace")
    assert compiled_in(small) == [f"built{suffix.removesuffix('.so')}.txt", f"units{suffix}"]
    set_up(small, "editable_wheel", KERNBENCH_PURE="1")
    assert compiled_in(small) == []


def test_what_is_compiled_is_kept_where_a_folder_is_named(small: Path, tmp_path: Path) -> None:
    """A second checkout compiles nothing, unless flags differ or what was kept is harmed; the bytes are the same."""
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    (small / "kernbench_core" / "units.py").write_text("NUMBER = 1\n")
    second = Path(shutil.copytree(small, tmp_path / "second"))
    folder = tmp_path / "kept"
    module = Path("kernbench_core") / f"units{EXTENSION_SUFFIXES[0]}"

    def build(tree: Path, **environment: str) -> bytes:
        told.append(set_up(tree, "build_ext", "--inplace", KERNBENCH_BUILD_CACHE=str(folder), **environment))
        assert (tree / "build" / "built.txt").read_text() == told[-1].rpartition("kernbench: ")[2].replace(".\n", "\n")
        return (tree / module).read_bytes()

    told: list[str] = []
    ours = build(small)
    assert build(second) == ours and not [*second.rglob("*.[co]")]
    entries = [*folder.iterdir()]
    assert build(small, CFLAGS="-DCYTHON_USE_TYPE_SLOTS=0") != ours
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:-1])
    assert build(small) == ours
    (small / "kernbench_builtin" / "native" / "engine" / "engine.cpp").write_text("int one() { return 2; }\n")
    assert build(small) == ours
    (small / "kernbench_builtin" / "native" / "engine" / "engine.cpp").write_text("int one() {\n")
    assert build(small) == ours
    lines = {n: f"kernbench: {n} of 2 modules came from {folder}; compiled: {2 - n}.\n" for n in range(3)}
    assert told[:5] == [lines[0], lines[2], lines[0], lines[0], lines[1]]
    failed, last = told[5].splitlines()[-2:]
    assert failed.startswith("kernbench: its native engine could not be compiled (")
    assert last == f"kernbench: 1 of 1 modules came from {folder}; compiled: 0."


def test_without_cython_it_is_python_and_says_so(small: Path) -> None:
    without = small / "without" / "Cython"
    without.mkdir(parents=True)
    (without / "__init__.py").write_text("raise ImportError('there is no Cython')\n")
    assert set_up(small, "build_ext", "--inplace", PYTHONPATH=str(without.parent)) == (
        "kernbench: its core could not be compiled (there is no Cython), so it is installed as pure Python, which "
        "gives the same results more slowly; install Cython, and install again.\n"
    )
    assert compiled_in(small) == []


def test_what_is_installed_is_small_and_says_its_licence(clean_environment: Path) -> None:
    """Less than 110 MB with numpy and all libraries; `__pycache__` does not count, pip and setuptools are not there."""
    folder = site_packages(clean_environment)
    files = [Path(top) / name for top, _, names in os.walk(folder, followlinks=True) for name in names]
    assert any("numpy" in file.parts for file in files)
    assert sum(file.stat().st_size for file in files if "__pycache__" not in file.parts) < 110e6
    (installed,) = metadata.distributions(name="kernbench", path=[str(folder)])
    assert (installed.metadata["License-Expression"], installed.version) == ("Apache-2.0", "0.1.0")
    (licence,) = folder.glob("kernbench-*.dist-info/licenses/LICENSE")
    assert licence.read_text() == (REPO / "LICENSE").read_text()
    for package in ("kernbench", "kernbench_core", "kernbench_builtin", "kernbench_ccl"):
        assert (folder / package / "py.typed").is_file()
    assert not (folder / "kernbench_builtin" / "door").exists()


def test_installed_configurations_lead_to_their_schemas(clean_environment: Path) -> None:
    """Ours, those of the collective package and of the example, by the paths in their first lines."""
    line = "# yaml-language-server: $schema="
    found = set()
    for file in site_packages(clean_environment).glob("kernbench_*/**/*.yaml"):
        first = file.read_text(encoding="utf-8").partition("\n")[0]
        if first.startswith(line):
            found.add(file.name)
            assert json.loads((file.parent / first.removeprefix(line)).read_text(encoding="utf-8"))["$defs"]
    assert found >= {"base.yaml", "mesh.yaml", "idealised.yaml", "chain.yaml", "sfu.yaml"}


def test_the_example_is_listed_with_its_provider(clean_environment: Path) -> None:
    """`kernbench components` shows the stranger's model beside ours, with distribution and version."""
    listed = kernbench(clean_environment, "components", "--json")["components"]
    providers = {entry["name"]: (entry["provider"], entry["version"]) for entry in listed}
    assert providers["example.slow_gemm"] == ("kernbench-example", "0.1.0")
    assert providers["builtin.pe_gemm"] == ("kernbench", "0.1.0")


def test_the_example_is_used_by_configuration(clean_environment: Path) -> None:
    """A YAML file puts the stranger's model into the machine: other times, the same right data."""
    run = ["run", "gemm", "--topology", "tiny", "--verify-data", "--json"]
    run += ["-p", "M=64", "-p", "N=64", "-p", "K=64"]
    ours = kernbench(clean_environment, *run)
    theirs = kernbench(clean_environment, *run, "--components", str(REPO / OVERRIDE))
    assert ours["verified"] is theirs["verified"] is True
    assert ours["phases"]["kernel"] < theirs["phases"]["kernel"]
    sentence = "Operands are always there: the array never stalls for the scratchpad."
    assert [entry["count"] for entry in theirs["not_modelled"] if entry["sentence"] == sentence] == [4]
    assert {"plugin": "example", "distribution": "kernbench-example", "version": "0.1.0"} in theirs["manifest"][
        "plugins"
    ]


def test_the_example_may_serve_some_nodes_only(clean_environment: Path) -> None:
    """A path pattern chooses it for one PE."""
    pattern = '[{match: "sip0.cube0.pe1.pe_gemm", impl: example.slow_gemm, params: {rows: 8, cols: 8}}]'
    args = ["run", "gemm", "--topology", "tiny", "--json", "-p", "M=64", "-p", "N=64", "-p", "K=64"]
    chosen = ("--set", f"overrides={pattern}")
    found = kernbench(clean_environment, *args, *chosen)
    counts = {entry["component"]: entry["count"] for entry in found["not_modelled"]}
    assert (counts["example.slow_gemm"], counts["builtin.pe_gemm"]) == (1, 3)


def test_the_example_adds_a_unit_an_op_and_a_bench(clean_environment: Path) -> None:
    """A kernel asks a unit that core has never heard of, and its op is computed by the stranger's function.

    At 8 lanes as at one it takes longer than the PE takes to issue the store that waits for it.
    """
    args = ["run", "example-silu", "--topology", "tiny", "--verify-data", "--json", "-p", "block=64"]
    unit = str(REPO / "plugins_example/kernbench_example/sfu.yaml")
    times = [
        kernbench(clean_environment, *args, "--components", unit, "--set", f"pe.units.pe_sfu.params.lanes={lanes}")
        for lanes in (8, 1)
    ]
    assert [found["verified"] for found in times] == [True, True]
    assert times[1]["phases"]["kernel"] - times[0]["phases"]["kernel"] == 56.0
    (counted,) = times[0]["statistics"]
    told = [counted[key] for key in ("component", "name", "value", "of")]
    assert told == ["example.sfu", "elements", 256, 4]


@pytest.mark.parametrize(("batch", "loads"), [(1, 4), (8, 2)])
def test_the_reactive_example_serves_what_waits_at_once(clean_environment: Path, batch: int, loads: int) -> None:
    """Of four commands three come while the table is loaded for the first: each load counts once in the total."""
    unit = str(REPO / "plugins_example/kernbench_example/batching_sfu.yaml")
    args = ["run", "example-silu", "--topology", "tiny", "--verify-data", "--json", "-p", "block=64", "-p", "parts=4"]
    args += ["--components", unit, "--set", f"pe.units.pe_sfu.params.batch={batch}"]
    quick, slow = (
        kernbench(clean_environment, *args, "--set", f"pe.units.pe_sfu.params.load={us} us") for us in (1, 2)
    )
    assert quick["verified"] is slow["verified"] is True
    assert slow["total_ns"] - quick["total_ns"] == loads * 1000.0
    assert [each["value"] for each in slow["statistics"] if each["name"] == "batches"] == [4 * loads]


def test_the_pipelined_example_delays_each_crossing(clean_environment: Path) -> None:
    """The host asks seven times, one after another: maps of three tensors, two copies, a launch and a copy back."""
    port = str(REPO / "plugins_example/kernbench_example/retimed_port.yaml")
    args = ["run", "vector-add", "--topology", "tiny", "--verify-data", "--json", "-p", "n=64"]
    built_in = kernbench(clean_environment, *args)
    for retimers in (0, 1, 3):
        count = f"components.io_ucie.params.retimers={retimers}"
        found = kernbench(clean_environment, *args, "--components", port, "--set", count)
        assert found["verified"] is True
        assert found["total_ns"] - built_in["total_ns"] == 7 * 2 * retimers * 10.0
        assert found["phases"]["kernel"] == built_in["phases"]["kernel"], "no kernel's data cross it"


def test_the_algorithm_of_the_example_is_listed(clean_environment: Path) -> None:
    """With who brought it."""
    listed = kernbench(clean_environment, "ccl", "list", "all_reduce", "--json")["algorithms"]
    (star,) = [each for each in listed if each["method"] == "star"]
    assert (star["name"], star["provider"]) == ("example.star_all_reduce", "kernbench-example 0.1.0")


def test_the_algorithm_of_the_example_is_proved_by_its_name(clean_environment: Path) -> None:
    """For every number of ranks that it does, on both networks; the refusal is the example's own sentence."""
    found = kernbench(clean_environment, "ccl", "check", "star", "--ranks", "2-5,18", "--json")
    assert found["proved"]
    assert [(each["algorithm"], each["topology"]) for each in found["topologies"]] == [
        ("example.star_all_reduce", "fully_connected"), ("example.star_all_reduce", "switch"),
    ]  # fmt: skip
    for each in found["topologies"]:
        assert [(ranks["ranks"], ranks["proved"]) for ranks in each["ranks"]] == [
            (2, True), (3, True), (4, True), (5, True), (18, False),
        ]  # fmt: skip
        assert each["ranks"][-1]["refusal"] == (
            "star_all_reduce must have at most 17 ranks, not 18; choose direct, which shares the work."
        )


def test_the_algorithm_of_the_example_is_timed_beside_ours(clean_environment: Path) -> None:
    """Its data is right, and direct, which shares the work among ranks, is faster for a large vector."""
    args = "ccl all_reduce --topology tiny --ranks 5 --network switch -b 256K -e 256K --algo star --algo direct --json"
    table = kernbench(clean_environment, *args.split())
    times = {row["algorithm"]: row["out_of_place"]["time_ns"] for row in table["rows"]}
    assert table["wrong"] == table["hazards"] == 0
    assert times["example.star_all_reduce"] > 2 * times["ccl.direct_all_reduce"]


def test_the_collective_of_the_example_is_proved_and_timed(clean_environment: Path) -> None:
    """By its algorithm, in processes that know it too; its size is that of two vectors."""
    found = kernbench(clean_environment, "ccl", "check", "example.ring_neighbour_exchange", "--ranks", "2-9", "--json")
    assert found["proved"] and {each["collective"] for each in found["topologies"]} == {"neighbour_exchange"}
    args = "ccl neighbour_exchange --topology tiny --ranks 3 -b 2K -e 2M -f 32 --no-check --json -j 2"
    rows = kernbench(clean_environment, *args.split())["rows"]
    assert [(row["size"], row["count"]) for row in rows] == [(2 << n, 1 << (n - 1)) for n in (10, 15, 20)]
    for row in rows:
        found = row["out_of_place"]
        assert found["busbw"] == found["algbw"] == row["size"] / found["time_ns"]


def test_the_network_of_the_example_joins_packages(clean_environment: Path) -> None:
    """It is listed with who brought it; a bench runs on it, and a collective in processes of its own, data right."""
    listed = kernbench(clean_environment, "topology", "networks", "--json")["networks"]
    assert {each["name"]: each["provider"] for each in listed}["example.hypercube"] == "kernbench-example 0.1.0"
    chosen = ("--set", "system.sips=8", "--set", "system.network.topology=example.hypercube")
    ran = kernbench(clean_environment, "run", "vector-add", "--verify-data", "--json", *chosen)
    assert ran["verified"] is True
    asked = "ccl all_reduce --topology tiny --ranks 8 --network example.hypercube -b 4K -e 16K -j 2 --json"
    table = kernbench(clean_environment, *asked.split())
    assert table["wrong"] == table["hazards"] == 0
    proof = kernbench(
        clean_environment, "ccl", "check", "direct", "--topology", "example.hypercube", "--ranks", "8", "--json"
    )
    assert proof["proved"] and {each["topology"] for each in proof["topologies"]} == {"example.hypercube"}
    assert [row["bound_ns"] for row in table["rows"]] == [1500.0] * 3, "three links of 500 ns to the far corner"
    assert all(row["out_of_place"]["time_ns"] > row["bound_ns"] for row in table["rows"])


def test_a_kernel_that_asks_for_a_unit_that_is_not_there_says_how_to_add_it(clean_environment: Path) -> None:
    """Without the configuration the run ends in a sentence."""
    args = [clean_environment / "kernbench", "run", "example-silu", "--topology", "tiny", "-q"]
    done = subprocess.run(
        args, cwd=clean_environment.parent, env=outside(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 6
    assert (
        "error: sip0.cube0.pe0.pe_cpu: a UnitCmd must be served by a unit of kind 'pe_sfu', and this PE has none; add "
        "it under pe.units in the configuration."
    ) in done.stderr


def test_the_ten_minute_tutorial_is_true_of_what_is_installed(clean_environment: Path, tmp_path: Path) -> None:
    """Followed from its first file to its last command, in a folder of its own, by the installed programs alone."""
    environment, shown = {**outside(), "COLUMNS": "112"}, 0
    options: dict[str, Any] = {"cwd": tmp_path, "env": environment, "text": True, "check": False}
    with loaded_tool("check_docs") as docs:
        for block in docs.blocks("docs/tutorials/00_ten_minutes.md"):
            if block.file is not None:
                (tmp_path / block.file).write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                subprocess.run([clean_environment / "python", "-c", block.text], **{**options, "check": True})
            for command in docs.commands(block) if block.language == "console" else ():
                asked = [clean_environment / "kernbench", *command.line.split()[1:]]
                done = subprocess.run(asked, **options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                printed = docs.comparable(done.stdout.replace(f"{tmp_path}{os.sep}", ""))
                # Lines break elsewhere, as the folder has another name; a line … stands for what is left out.
                parts = re.split("^…$", docs.comparable(command.shown), flags=re.MULTILINE)
                told = ".*".join(re.escape(" ".join(part.split())) for part in parts)
                assert re.fullmatch(told, " ".join(printed.split()))
                shown += 1
    assert shown >= 6
    assert (tmp_path / "leaky.html").stat().st_size > 100_000 and (tmp_path / "leaky.json.gz").is_file()
