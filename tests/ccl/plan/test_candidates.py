"""A stranger's algorithm that cannot be used keeps nobody from using the others."""

from __future__ import annotations

import json
import sys

import pytest

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.contract import Network
from kernbench_ccl.plan import load_ccl
from kernbench_ccl.plan.candidates import find_able
from kernbench_ccl.plugin import ALGORITHMS
from kernbench_core.cli import main
from kernbench_core.plugins import load_plugins, own_plugins

GOOD = '''\
"""Wait for what nobody sends, or do what the test wants."""

from kernbench_ccl.contract import kernel_args

COLLECTIVE = "all_reduce"
TOPO_NAME_TO_KIND = {"ring": 0}


def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    BODY


def refuses(world, network):
    REFUSES
'''
PAIR = """if pe == 0:
        tl.send(tl.load(in_ptr, shape=(count,)), 1 - rank)
        tl.store(out_ptr, tl.recv((count,), 'f16', 1 - rank))"""
MODULES = {
    "acme_hanging": GOOD.replace("BODY", "tl.recv((1,), 'f16', (rank + 1) % world)").replace("REFUSES", "return None"),
    "acme_crashing": GOOD.replace("BODY", "1 / 0").replace("REFUSES", "return None"),
    "acme_asking": GOOD.replace("BODY", "pass").replace("REFUSES", "raise ValueError('no idea')"),
    "acme_forming": GOOD.replace("BODY", PAIR).replace("refuses(world, network)", "formula(cost)").replace(
        "REFUSES", "return 'abc'"
    ),
    "acme_importing": "import acme_libfoo\n",
    "acme_bare": GOOD.replace('COLLECTIVE = "all_reduce"\n', "").replace("BODY", "pass").replace("REFUSES", "pass"),
}


@pytest.fixture
def plugins_of(tmp_path, monkeypatch):
    """Give the plug-ins of this tree and one of a stranger who registers modules by these names."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def load(*names):
        for name in names:
            (tmp_path / f"{name}.py").write_text(MODULES[name])
            monkeypatch.delitem(sys.modules, name, raising=False)
        entries = ", ".join(
            f"AlgorithmEntry('acme.{name[5:]}_all_reduce', '{name}:kernel', 'One.', 'all_reduce')" for name in names
        )
        source = "from kernbench_core.plugins import AlgorithmEntry\nkernbench_api = 1\ndef kernbench_algorithms():\n"
        (tmp_path / "acme_plug.py").write_text(f"{source}    return [{entries}]\n")
        monkeypatch.delitem(sys.modules, "acme_plug", raising=False)
        return load_plugins(
            [*own_plugins(), "acme = acme_plug"], installed=False
        )

    return load


IMPORTING = (
    "algorithm 'acme.importing_all_reduce' of acme_plug (source tree) must be importable from 'acme_importing:kernel', "
    "but that raised ModuleNotFoundError: No module named 'acme_libfoo'; repair or reinstall acme_plug (source tree)."
)
TWO = ("--set", "system.sips=2")
SMALL = ("--topology", "tiny", "--ranks", "2", "-b", "1K", "-e", "1K", "-j", "1", "--no-check")


def test_what_cannot_be_used_is_told_from_what_refuses(plugins_of, tmp_path):
    """A failing import, a broken contract, and a `refuses` that raises; the shipped ones are there."""
    plugins = plugins_of("acme_importing", "acme_bare", "acme_asking")
    ring = Network("ring", 4, 4)
    found = find_able(Catalogue.of(plugins), load_ccl(), "all_reduce", lambda name: ring)
    assert dict(found.broken) == {
        "acme.asking_all_reduce": f"{tmp_path}/acme_asking.py:14: refuses of acme.asking_all_reduce raised ValueError: "
        "no idea.",
        "acme.bare_all_reduce": f"{tmp_path}/acme_bare.py: COLLECTIVE must be one of all_reduce, all_gather, "
        "reduce_scatter, all_to_all, broadcast, reduce, gather, scatter, send_recv, barrier, and the module has no "
        "such name; say which one it does.",
        "acme.importing_all_reduce": IMPORTING,
    }
    assert found.warnings[2] == f"acme.importing_all_reduce is left out: {IMPORTING}"
    assert "ccl.ring_all_reduce" in found.chosen and "ccl.torus_all_reduce" in found.refusals
    assert all(name.startswith("ccl.") for name in (*found.chosen, *found.refusals))


def test_auto_goes_on_with_a_warning(plugins_of, capsys):
    """The table has its row; only naming the broken one is an error."""
    plugins = plugins_of("acme_importing")
    assert main(["ccl", "all_reduce", *SMALL], plugins) == 0
    out, err = capsys.readouterr()
    assert out.count("\n        1024") == 1
    assert err == f"warning: acme.importing_all_reduce is left out: {IMPORTING}\n"
    assert main(["ccl", "all_reduce", *SMALL, "--algo", "acme.importing"], plugins) == 6
    assert capsys.readouterr().err == f"error: {IMPORTING}\n"


def test_ranks_of_a_program_warn_once(plugins_of, capsys):
    """`auto` of dist chooses anew for every call of every rank; the sentence comes once."""
    assert main(["run", "tp-mlp", "--topology", "tiny", *TWO, "--no-data"], plugins_of("acme_importing")) == 0
    assert capsys.readouterr().err == f"warning: acme.importing_all_reduce is left out: {IMPORTING}\n"


def test_all_lists_the_broken_one_and_marks_those_that_fail(plugins_of, capsys):
    """A deadlock and a crash are words in cells; the others are timed, and the end says what happened."""
    plugins = plugins_of("acme_importing", "acme_hanging", "acme_crashing")
    args = ["ccl", "all_reduce", *SMALL, "-e", "2K", "--algo", "all"]
    assert main(args, plugins) == 6
    out, err = capsys.readouterr()
    assert f"# left out: {IMPORTING}\n" in out
    heads = next(line for line in out.splitlines() if line.startswith("#       size")).split()[2:]
    for size in ("1024", "2048"):
        cells = next(line for line in out.splitlines() if line.strip().startswith(size)).split()[1:]
        found = dict(zip(heads, cells, strict=True))
        assert (found["hanging"], found["crashing"]) == ("deadlock", "error")
        assert all(float(cell.rstrip("*")) > 0 for name, cell in found.items() if name not in ("hanging", "crashing"))
    crashed, hung = err.splitlines()
    assert crashed.startswith("error: 1 KiB by acme.crashing_all_reduce: ")
    assert crashed.endswith("; 1 more size failed.") and "ZeroDivisionError: division by zero" in crashed
    assert hung.startswith("error: 1 KiB by acme.hanging_all_reduce: ")
    assert hung.endswith("; 1 more size failed.")
    assert main([*args, "--json"], plugins) == 6
    failed = json.loads(capsys.readouterr().out)["failed"]
    assert [(one["size"], one["algorithm"], one["exit_code"]) for one in failed] == [
        (size, f"acme.{name}_all_reduce", code)
        for size in (1024, 2048)
        for name, code in (("crashing", 6), ("hanging", 4))
    ]


def test_a_wrong_closed_form_ends_its_own_table_only(plugins_of, capsys, tmp_path):
    """Before anything is simulated; beside others it is one that failed."""
    plugins = plugins_of("acme_forming")
    told = (
        f"{tmp_path}/acme_forming.py:15: formula must return a finite time in ns from 0, or None or a sentence "
        "where it has no closed form, not 'abc'."
    )
    assert main(["ccl", "all_reduce", *SMALL, "--algo", "forming"], plugins) == 6
    assert capsys.readouterr().err == f"error: {told}\n"
    assert main(["ccl", "all_reduce", *SMALL, "--algo", "all"], plugins) == 6
    out, err = capsys.readouterr()
    assert err == f"error: 1 KiB by acme.forming_all_reduce: {told}\n"
    assert " is best at every size." in out


def test_check_all_counts_the_broken_one(plugins_of, capsys, monkeypatch):
    """It is proved of the others; the exit code is that of what raised."""
    plugins = plugins_of("acme_importing")
    args = ["ccl", "check", "all", "--ranks", "2", "--topology", "ring", "--count", "3", "--pes", "1", "-j", "1"]
    assert main(args, plugins) == 6
    out = capsys.readouterr().out
    assert "\ncannot be used: acme.importing_all_reduce\n" in out
    flat = " ".join(out.split())
    assert IMPORTING in flat
    number = len(plugins.of(ALGORITHMS))
    assert "proved, but for these: every rank ends with every contribution once, and nobody waits for ever" in flat
    assert f"{number - 6} algorithms, {number - 7} of them right:" in flat
