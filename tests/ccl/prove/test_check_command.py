"""`kernbench ccl check`: its rows, faults and exit codes, and the spellings of names and files that it opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernbench_ccl.catalogue import Catalogue, read_file
from kernbench_core.errors import KernelError, UsageError
from kernbench_core.plugins import Plugins
from tests.ccl.prove.proofs import run_command
from tests.ccl.ring_source import ring


def test_the_command_prints_a_row_for_each_network(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Proved: exit code 0, and every line fits 80 columns."""
    ring(tmp_path)
    assert run_command(plugins, str(tmp_path / "ring.py"), "--ranks", "2-3") == 0
    title, row, tried, verdict = capsys.readouterr().out.splitlines()
    assert title == "ring.py (all_reduce)"
    assert row.startswith("  ring            proved 2-3 ")
    assert verdict == "proved: every rank ends with every contribution once, and nobody waits for ever"
    assert tried == "  tried: counts of 1 to 4,099, 1, 3 and 4 PEs a rank, f16 and f32"
    assert len(row) <= 80


def test_what_was_tried_is_told(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one count only that; with roots where there are any; a barrier moves nothing."""
    end = " proved: "
    for words, told in (
        (("ccl.direct_gather", "--ranks", "2-3", "--pes", "1"),
         "counts of 1 to 4,099, 1 PE a rank, f16 and f32, the first, middle and last rank as root"),
        (("ccl.direct_gather", "--ranks", "2", "--count", "7", "--pes", "1"),
         "a count of 7, 1 PE a rank, f16, the first and last rank as root"),
        (("ccl.dissemination_barrier", "--ranks", "2"), "1, 3 and 4 PEs a rank"),
    ):  # fmt: skip
        assert run_command(plugins, *words, "--topology", "ring") == 0
        assert f" tried: {told}{end}" in " ".join(capsys.readouterr().out.split())


def test_what_takes_what_comes_first_is_not_proved(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is tried in several orders, which is a test."""
    (tmp_path / "any.py").write_text(
        'COLLECTIVE = "barrier"\n'
        "def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):\n"
        '    others, token = [each for each in range(world) if each != rank], tl.zeros((1,), "int32")\n'
        "    for other in others if pe == 0 else ():\n"
        "        tl.send(token, other)\n"
        "    for _ in others if pe == 0 else ():\n"
        '        tl.recv_any((1,), "int32", others)\n'
        "    for other in range(1, n_pe):\n"
        "        if pe == 0:\n"
        "            tl.send(token, (rank, other))\n"
        "        elif pe == other:\n"
        '            tl.recv((1,), "int32", (rank, 0))\n'
    )
    assert run_command(plugins, str(tmp_path / "any.py"), "--ranks", "3") == 0
    told = "no fault found, in some orders of running: not proved, as tl.recv_any takes what comes first"
    assert capsys.readouterr().out.splitlines()[-1] == told


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ("-5.0", "formula must return a finite time in ns from 0, or None or a sentence where it has no closed form, "
                 "not -5.0."),
        ("cost.bytes", "raised AttributeError: 'Cost' object has no attribute 'bytes'."),
    ],
)  # fmt: skip
def test_a_formula_that_the_table_would_end_with_is_a_fault(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, sentence: str
) -> None:
    """The data is right, and the kernel did not raise; the line is that of the formula."""
    ring(tmp_path, ("def kernel(", f"def formula(cost):\n    return {form}\n\n\ndef kernel("))
    assert run_command(plugins, str(tmp_path / "ring.py"), "--ranks", "2", "--count", "4") == 6
    out = " ".join(capsys.readouterr().out.split())
    assert "AN ERROR for 2 ranks" in out and sentence in out


def test_the_command_tells_faults_and_their_exit_codes(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 for wrong data, 4 for a deadlock; --json has the fields of every fault."""
    ring(tmp_path, ("tiles(rank - step), tiles(rank - step - 1)", "tiles(rank - step), tiles(rank - step)"))
    path = str(tmp_path / "ring.py")
    assert run_command(plugins, path, "--ranks", "2", "--count", "2") == 1
    assert "WRONG for 2 ranks" in capsys.readouterr().out
    assert run_command(plugins, path, "--ranks", "3", "--count", "1", "--json") == 4
    found = json.loads(capsys.readouterr().out)
    (fault,) = found["topologies"][0]["ranks"][0]["faults"]
    assert (found["schema"], found["proved"], fault["kind"], fault["rank"]) == (
        "kernbench.ccl.check/1", False, "deadlock", 0,
    )  # fmt: skip


def test_refusals_of_several_numbers_of_ranks_are_told_once(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the number left out, and every comma and semicolon where it was; one number is told as it is."""
    sentence = 'f"mine must have an even number, not {world}; add one." if world % 2 else None'
    ring(tmp_path, ("def kernel(", f"def refuses(world, network):\n    return {sentence}\n\n\ndef kernel("))
    assert run_command(plugins, str(tmp_path / "ring.py"), "--ranks", "2-5", "--count", "1") == 0
    assert "    refused N = 3, 5: mine must have an even number, not N; add one.\n" in capsys.readouterr().out
    assert run_command(plugins, str(tmp_path / "ring.py"), "--ranks", "2-4", "--count", "1") == 0
    assert "    refused 3: mine must have an even number, not 3; add one.\n" in capsys.readouterr().out


def test_networks_on_which_all_is_refused_alike_share_a_row(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is told once, with its number."""
    refuses = "def refuses(world, network):\n    return f'mine must not have {world} ranks.'\n\n\n"
    ring(tmp_path, ('{"ring": 0}', '{"ring": 0, "switch": 1}'), ("def kernel(", f"{refuses}def kernel("))
    with pytest.raises(UsageError) as refused:
        run_command(plugins, str(tmp_path / "ring.py"), "--ranks", "3")
    assert capsys.readouterr().out.splitlines()[2:] == [
        "    alike on switch", "    refused 3: mine must not have 3 ranks.",
    ]  # fmt: skip
    assert str(refused.value) == (
        "option --ranks must have a number of ranks that the algorithm does; mine must not have 3 ranks."
    )


def test_a_row_says_deadlock_and_needs_no_slots_for_it(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """How many slots were tried until then is no need of the algorithm."""
    ring(tmp_path, ("tiles(rank - step), tiles(rank - step - 1)", "tiles(rank - step), tiles(rank - step)"))
    assert run_command(plugins, str(tmp_path / "ring.py"), "--ranks", "3", "--count", "1") == 4
    out = capsys.readouterr().out
    assert "    DEADLOCK for 3 ranks\n" in out and "queues must hold" not in out


def test_what_queues_must_hold_is_told(plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who sends three messages before a receipt needs room for three of them, and not for four."""
    (tmp_path / "three.py").write_text(
        'COLLECTIVE = "all_gather"\n'
        "def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):\n"
        "    mine = range(0, count if pe == 0 else 0, tl.collective.tile)\n"
        "    for at in mine:\n"
        "        n = min(tl.collective.tile, count - at)\n"
        "        tl.store(out_ptr + rank * count + at, tl.load(in_ptr + at, shape=(n,)))\n"
        "        for distance in range(1, world):\n"
        "            for _ in range(3):\n"
        "                tl.send(tl.load(in_ptr + at, shape=(n,)), (rank + distance) % world)\n"
        "            for _ in range(3):\n"
        "                got = tl.recv((n,), tl.collective.dtype, (rank - distance) % world)\n"
        "            tl.store(out_ptr + (rank - distance) % world * count + at, got)\n"
    )
    assert run_command(plugins, str(tmp_path / "three.py"), "--ranks", "2-3") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "    queues must hold 3 messages at least" in lines
    assert " ".join(line.strip() for line in lines[-2:]) == (
        "proved: every rank ends with every contribution once, and nobody waits for ever where queues hold 3 messages"
    )


def test_every_spelling_of_a_registered_name_is_opened(plugins: Plugins, tmp_path: Path, monkeypatch: Any) -> None:
    """In full, without vendor, without collective; a file that is meant without its ending is guessed."""
    for name in ("ccl.direct_gather", "direct_gather"):
        assert [each.name for each in Catalogue.of(plugins).open_all(name)] == ["ccl.direct_gather"]
    assert "ccl.direct_gather" in [each.name for each in Catalogue.of(plugins).open_all("ccl.direct")]
    monkeypatch.chdir(tmp_path)
    ring(tmp_path)
    for name, guess in (("ring.p", "ring"), ("rign", "ring")):
        with pytest.raises(UsageError) as refused:
            Catalogue.of(plugins).open_all(name)
        assert str(refused.value) == (
            f"algorithm must be a registered name, a method, the path of a .py file, or 'all', not {name!r}. "
            f"Did you mean {guess!r}?"
        )
    (tmp_path / "mine.py").write_text("")
    with pytest.raises(UsageError) as refused:
        Catalogue.of(plugins).open_all("mine")
    assert str(refused.value).endswith("not 'mine'. Did you mean './mine.py'?")


def test_what_a_file_raises_is_told_by_its_own_lines(tmp_path: Path) -> None:
    """None of kernbench's."""
    path = tmp_path / "broken.py"
    path.write_text("import no_such_module\n")
    with pytest.raises(KernelError) as raised:
        read_file(path)
    assert str(raised.value) == (
        f"algorithm file {str(path)!r} must run to its end, but it raised ModuleNotFoundError: No module named "
        f"'no_such_module'.\n  File \"{path}\", line 1, in <module>\n    import no_such_module"
    )
