"""`kernbench ccl new` writes an algorithm that is right at once, and never overwrites a file."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from kernbench_ccl.catalogue import read_file
from kernbench_ccl.cli.scaffold import algorithm_text, next_steps, write_algorithm
from kernbench_ccl.collectives import COLLECTIVES, CallShape, CollectiveKind
from kernbench_ccl.prove import Wanted, check
from kernbench_core.errors import PluginError, UsageError


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_template_is_proved(tmp_path: Path, collective: str) -> None:
    """On every network, for one rank, two, an odd number and more than a few."""
    path = write_algorithm("my_own", collective, tmp_path)
    algorithm = read_file(path)
    assert (algorithm.name, algorithm.collective, algorithm.kernel.__name__) == (str(path), collective, "my_own")
    assert algorithm.sentence.startswith("my_own: ")
    every, few = Wanted([1, 2], ["ring"]), Wanted([5], ["ring"], counts=(7,))
    for wanted in (every, few, Wanted([3], counts=(7,))):
        for found in check(algorithm, wanted):
            assert [fault.sentence for fault in found.faults] == [], found.network


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_template_is_proved_for_five_ranks_in_full(tmp_path: Path, collective: str) -> None:
    """In every case of a check: each count, each number of PEs, each root."""
    algorithm = read_file(write_algorithm("my_own", collective, tmp_path))
    (found,) = check(algorithm, Wanted([5], ["ring"]))
    assert [fault.sentence for fault in found.faults] == []
    assert [ranks.world for ranks in found.ranks] == [5]


def test_templates_name_nothing_but_the_algorithm() -> None:
    """No placeholder is left."""
    for collective in COLLECTIVES:
        assert "my_algorithm" not in algorithm_text("chain", collective)


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    """The second call is refused, and the first file is as it was."""
    path = write_algorithm("chain", folder=tmp_path)
    path.write_text("mine")
    with pytest.raises(UsageError) as refused:
        write_algorithm("chain.py", folder=tmp_path)
    assert str(refused.value) == f"'{path}' must not be there yet; choose another name, or move the file away."
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["My_ring", "2d", "class", "a-b", "", "a/b"])
def test_a_name_must_be_one_of_python(tmp_path: Path, name: str) -> None:
    """The file is a module, and its function has the same name."""
    with pytest.raises(UsageError) as refused:
        write_algorithm(name, folder=tmp_path)
    assert str(refused.value) == (
        "the name of a new algorithm must be a Python name in lower-case letters, digits and '_', not "
        f"{name!r}; call it my_ring, say."
    )


def test_a_collective_must_be_known(tmp_path: Path) -> None:
    """A close name is suggested."""
    with pytest.raises(UsageError) as refused:
        write_algorithm("chain", "allreduce", tmp_path)
    known = f"option --collective must be one of {', '.join(COLLECTIVES)}, not"
    assert str(refused.value) == f"{known} 'allreduce'. Did you mean 'all_reduce'?"
    with pytest.raises(UsageError) as unlike:
        write_algorithm("chain", "xyz", tmp_path)
    assert str(unlike.value) == f"{known} 'xyz'."


def test_what_comes_next_is_three_commands() -> None:
    """Prove, time, register."""
    assert next_steps(Path("chain.py"), "all_reduce") == [
        "prove it, after every change:",
        "  kernbench ccl check ./chain.py",
        "time it, with its data checked:",
        "  kernbench ccl all_reduce --algo ./chain.py -b 1K -e 1M",
        "register it, so that everyone finds it by its name: in the pyproject.toml of your package",
        "  [project.entry-points.kernbench]",
        '  acme = "acme.plugin"',
        "and in acme/plugin.py, with AlgorithmEntry of kernbench_core.plugins",
        "  kernbench_api = 1",
        "  def kernbench_algorithms():",
        '      return [AlgorithmEntry("acme.chain_all_reduce", "acme.chain:kernel", "What it does.", "all_reduce")]',
    ]


def test_a_full_disk_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    """The next try would find it in the way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(UsageError) as caught:
            write_algorithm("mine", folder=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    path = str(tmp_path / "mine.py")
    assert str(caught.value) == f"{path!r} must be writable, but that failed with 'File too large'."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("template", "error", "sentence"),
    [
        ("", UsageError,
         "option --collective must be one that has a template, as all_reduce, and 'swap' has none; begin with a copy "
         "of an algorithm that does it."),
        ("kernbench_ccl.nowhere:swap.py", PluginError,
         "the template of collective 'swap' must be readable from 'kernbench_ccl.nowhere:swap.py', but that raised "
         "ModuleNotFoundError: No module named 'kernbench_ccl.nowhere'; repair the package."),
    ],
)  # fmt: skip
def test_a_collective_without_a_template_is_a_sentence(
    template: str, error: type[Exception], sentence: str, tmp_path: Path
) -> None:
    """It has none, or it is not where its record says; nothing is written."""
    known = {"all_reduce": COLLECTIVES["all_reduce"], "swap": CollectiveKind("swap", own, own, template=template)}
    with pytest.raises(error) as caught:
        write_algorithm("mine", "swap", tmp_path, known)
    assert str(caught.value) == sentence and not list(tmp_path.iterdir())


def own(call: CallShape, rank: int) -> None:
    """Bring and end with nothing: the record is not used."""
