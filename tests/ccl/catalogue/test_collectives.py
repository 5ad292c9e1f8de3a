"""A collective that a plug-in adds: listed, begun, proved, timed and data-checked as those that come with kernbench."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import time_collective
from kernbench_core.cli import main
from kernbench_core.errors import PluginError
from kernbench_core.plugins import Plugins, load_plugins, own_plugins

RECORD = '''\
from kernbench_ccl.collectives import CollectiveKind, combined, moved


def ends(call, rank):
    after, before = (rank + 1) % call.world, (rank - 1) % call.world
    return [combined((rank, after), 0, call.count), moved(before, 0, call.count)]


PAIR_SUM = CollectiveKind(
    "pair_sum", lambda call, rank: call.count, ends, lambda world: world / 8, reduces=True, spelling="pairsum",
    template="acme_pairs:template.py",
)
'''
"""Every rank gets the sum of its vector and the next rank's, and behind it the vector of the rank before."""

ALGORITHM = '''\
"""my_algorithm: each tile goes both ways around the ring."""

from kernbench_ccl.contract import kernel_args as kernel_args, share

COLLECTIVE = "pair_sum"
TOPO_NAME_TO_KIND = {"ring": 0, "switch": 1}


def my_algorithm(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    c = tl.collective
    before, after = (rank - 1) % world, (rank + 1) % world
    start, end = share(count, n_pe, pe)
    for at in range(start, end, c.tile):
        n = min(c.tile, end - at)
        x = tl.load(in_ptr + at, shape=(n,))
        tl.send(x, before)
        theirs = tl.recv((n,), c.dtype, after)
        tl.send(x, after)
        tl.store(out_ptr + at, c.finish(tl, c.combine(tl, x, theirs)))
        tl.store(out_ptr + count + at, tl.recv((n,), c.dtype, before))


kernel = my_algorithm
'''
WRONG = {
    "doubled": ("c.combine(tl, x, theirs)", "c.combine(tl, x, x)"),
    "lonely": ("c.combine(tl, x, theirs)", "x"),
    "mistaken": ("tl.recv((n,), c.dtype, before))", "(tl.recv((n,), c.dtype, before), theirs)[1])"),
}
"""Algorithms that do it wrong: what they have in place of what is right."""

PLUGIN = '''\
from kernbench_core.plugins import AlgorithmEntry, CollectiveEntry


kernbench_api = 1
def kernbench_collectives():
    return [
        CollectiveEntry("pair_sum", "acme_pairs.record:PAIR_SUM", "Sums of neighbours."),
        CollectiveEntry("halved", "acme_pairs.broken:HALVED", "Half of a vector."),
        CollectiveEntry("absent", "acme_pairs.nowhere:ABSENT", "Nobody knows."),
    ]


def kernbench_algorithms():
    return [
        AlgorithmEntry(f"acme.{name}_pair_sum", f"acme_pairs.{name}:kernel", "Both ways.")
        for name in ("right", "doubled", "lonely", "mistaken")
    ]
'''

BROKEN = '''\
from kernbench_ccl.collectives import CollectiveKind, moved

HALVED = CollectiveKind("halved", lambda call, rank: call.count, lambda call, rank: [moved(rank, 1, call.count)])
'''


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugins]:
    """Load kernbench's collectives and those of a stranger."""
    folder = tmp_path_factory.mktemp("pairs")
    package = folder / "acme_pairs"
    package.mkdir()
    sources = {"__init__": "", "record": RECORD, "plugin": PLUGIN, "broken": BROKEN, "right": ALGORITHM}
    for name, source in sources.items():
        (package / f"{name}.py").write_text(source)
    (package / "template.py").write_text(ALGORITHM)
    for name, (right, wrong) in WRONG.items():
        assert ALGORITHM.count(right) == 1
        (package / f"{name}.py").write_text(ALGORITHM.replace(right, wrong))
    sys.path.insert(0, str(folder))
    own = own_plugins()
    yield load_plugins([*own, "acme = acme_pairs.plugin"], installed=False)
    sys.path.remove(str(folder))


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(plugins: Plugins, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command line; return its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> tuple[int, str, str]:
        code = main(["ccl", *args], plugins)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


SMALL = ("--topology", "tiny", "--ranks", "3", "-j", "1", "-b", "4K", "-e", "4K", "--json")


def test_its_right_algorithm_is_proved_on_both_networks(call: Call) -> None:
    """For every number of ranks, with all reductions, from two ranks on, where both neighbours are one."""
    code, out, err = call("check", "acme.right", "-j", "1", "--json")
    found = json.loads(out)
    assert (code, err, found["proved"]) == (0, "", True)
    assert [(each["collective"], each["topology"]) for each in found["topologies"]] == [
        ("pair_sum", "ring"), ("pair_sum", "switch")
    ]  # fmt: skip
    assert all(ranks["cases"] > 4 for each in found["topologies"] for ranks in each["ranks"])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("doubled", "the sum of element 0 of ranks 0 and 1, and holds rank 0 twice and lacks rank 1"),
        ("lonely", "the sum of element 0 of ranks 0 and 1, and lacks rank 1"),
        ("mistaken", "element 0 of rank 2, and holds element 0 of rank 1"),
    ],
)
def test_its_wrong_algorithms_are_found_wrong_by_the_proof(call: Call, name: str, sentence: str) -> None:
    """With who should be there and who is."""
    code, out, _ = call("check", f"acme.{name}_pair_sum", "--ranks", "3", "--topology", "ring", "--json")
    (found,) = json.loads(out)["topologies"][0]["ranks"]
    element = 1 if name == "mistaken" else 0
    assert (code, found["proved"]) == (1, False)
    assert found["faults"][0]["sentence"].startswith(f"element {element} of rank 0's output must be {sentence}; rank 0")


def test_its_table_has_sizes_and_factors_of_the_record(call: Call) -> None:
    """The size is that of the output, of two vectors; busbw is three eighths of algbw, as the record has it."""
    code, out, err = call("pair-sum", *SMALL, "--algo", "right", "-o", "avg", "-d", "f32")
    (row,) = json.loads(out)["rows"]
    assert (code, err) == (0, "")
    assert (row["size"], row["count"], row["redop"], row["root"], row["in_place"]) == (4096, 512, "avg", -1, None)
    measured = row["out_of_place"]
    assert measured["wrong"] == 0
    assert measured["algbw"] == pytest.approx(4096 / measured["time_ns"])
    assert measured["busbw"] == pytest.approx(measured["algbw"] * 3 / 8)
    assert 500 < row["bound_ns"] < measured["time_ns"]


@pytest.mark.parametrize(("name", "wrong"), [("doubled", 3072), ("lonely", 3072), ("mistaken", 3072)])
def test_its_wrong_algorithms_are_found_wrong_by_the_data(call: Call, name: str, wrong: int) -> None:
    """On reals nearly every element is off, of one of the two vectors of 1024 elements that each rank gets."""
    code, out, _ = call("pairsum", *SMALL, "--algo", name)
    (row,) = json.loads(out)["rows"]
    assert code == 1 and 0.9 * wrong < row["out_of_place"]["wrong"] <= wrong
    assert row["out_of_place"]["failures"][0].startswith("rank 0, integers: ")


def test_all_and_auto_know_its_algorithms(call: Call, plugins: Plugins) -> None:
    """Auto takes the first by rule, `all` times each; a configuration may choose one."""
    code, out, _ = call("pairsum", *SMALL, "--algo", "all", "--no-check")
    assert (code, [row["algorithm"] for row in json.loads(out)["rows"]]) == (
        0, [f"acme.{name}_pair_sum" for name in ("doubled", "lonely", "mistaken", "right")]
    )  # fmt: skip
    Path("ccl.yaml").write_text("collectives: {pair_sum: right}\n")
    code, out, _ = call("pairsum", *SMALL, "--config", "ccl.yaml")
    assert (code, json.loads(out)["rows"][0]["algorithm"]) == (0, "acme.right_pair_sum")
    (row,) = time_collective("pair_sum", [4096], "tiny", ranks=3, algo="right", plugins=plugins)
    assert row.wrong == 0
    assert list(Catalogue.of(plugins).methods_of("pair_sum")) == ["doubled", "lonely", "mistaken", "right"]


def test_an_algorithm_of_it_is_begun_from_its_template(call: Call) -> None:
    """The file is proved as it is."""
    code, out, _ = call("new", "mine", "--collective", "pairsum")
    assert (code, out.splitlines()[0]) == (0, "wrote mine.py: pair_sum, right for any number of ranks on any network")
    assert Path("mine.py").read_text() == ALGORITHM.replace("my_algorithm", "mine")
    code, out, _ = call("check", "mine.py", "--ranks", "2,5")
    assert code == 0 and out.startswith("mine.py (pair_sum): each tile goes both ways around the ring.\n")


def test_it_is_listed_behind_those_that_come_with_kernbench(call: Call) -> None:
    """As a command with its sentence, and with its algorithms; a record that will not do is left out with a warning."""
    code, out, err = call("--help")
    commands = re.findall(r"^  (\S+)", out.partition("Commands:")[2], re.MULTILINE)
    assert code == 0 and commands[-6:] == ["sendrecv", "pairsum", "list", "check", "new", "tune"]
    assert re.search(r"^  pairsum +Sums of neighbours\. *$", out, re.MULTILINE)
    assert err.splitlines() == [f"warning: collective {name!r} is left out: {told}" for name, told in LEFT_OUT.items()]
    code, out, _ = call("list", "pair_sum")
    assert (code, out.splitlines()[0], len(out.splitlines())) == (0, "pair_sum", 5)


LEFT_OUT = {
    "absent": (
        "collective 'absent' of acme_pairs (source tree) must be importable from 'acme_pairs.nowhere:ABSENT', but that "
        "raised ModuleNotFoundError: No module named 'acme_pairs.nowhere'; repair or reinstall acme_pairs (source "
        "tree)."
    ),
    "halved": (
        "collective 'halved' of acme_pairs (source tree) must give as ends elements that ranks bring, and "
        "rank 0 brings 6, not Piece(count=6, first=1, ranks=(0,), reduced=False), for rank 0 of 2 (count 6); repair or "
        "reinstall acme_pairs (source tree)."
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_record_that_will_not_do_is_an_error_where_it_is_named(call: Call, name: str) -> None:
    """With exit code 6, as a fault of the plug-in."""
    assert call(name) == (6, "", f"error: {LEFT_OUT[name]}\n")


@pytest.mark.parametrize(
    ("record", "must"),
    [
        ("CollectiveKind('other', one, own)", "must be a CollectiveKind of that name, not CollectiveKind(name='other'"),
        ("'odd'", "must be a CollectiveKind of that name, not 'odd'"),
        ("CollectiveKind('odd', one, lambda c, r: [moved(0, 0, 1)])", "must have inputs and outputs in proportion to"),
        ("CollectiveKind('odd', one, lambda c, r: [moved(9, 0, c.count)])", "must give as ends pieces of ranks from 0"),
        ("CollectiveKind('odd', one, both)", "must say reduces=True to give as ends a reduction, Piece("),
        ("CollectiveKind('odd', one, twice, reduces=True)", "must give as ends pieces of one rank, or reductions"),
        ("CollectiveKind('odd', none, none)", "must either move data or be a barrier"),
        ("CollectiveKind('odd', one, own, barrier=True)", "must either move data or be a barrier"),
        ("CollectiveKind('odd', one, lambda c, r: 2 * own(c, r), in_place=True)", "must not be in place, as neither"),
        ("CollectiveKind('odd', one, lambda c, r: c.nothing)", "must give an answer as ends, but that raised Attr"),
    ],
)
def test_what_a_record_must_be(record: str, must: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault is a sentence that names the collective and who brought it."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "odd_record.py").write_text(
        "from kernbench_ccl.collectives import CollectiveKind, combined, moved\n"
        "from kernbench_core.plugins import CollectiveEntry\n"
        "def one(c, r): return c.count\n"
        "def none(c, r): return None\n"
        "def own(c, r): return [moved(r, 0, c.count)]\n"
        "def both(c, r): return [combined(range(c.world), 0, c.count)]\n"
        "def twice(c, r): return [combined((r, r), 0, c.count)]\n"
        f"ODD = {record}\n"
        "kernbench_api = 1\ndef kernbench_collectives(): return [CollectiveEntry('odd', 'odd_record:ODD', 'Odd.')]\n"
    )
    monkeypatch.delitem(sys.modules, "odd_record", raising=False)
    known = Catalogue.of(load_plugins([*own_plugins("ccl"), "odd = odd_record"], installed=False)).collectives
    with pytest.raises(PluginError) as caught:
        known["odd"]
    assert str(caught.value).startswith(f"collective 'odd' of odd_record (source tree) {must}")
    monkeypatch.delitem(sys.modules, "odd_record", raising=False)


FIELDS = {
    "spelling=3": "must have letters, digits, '_' and '-' as spelling, or \"\" for none, not 3",
    "spelling='-q'": "must have letters, digits, '_' and '-' as spelling, or \"\" for none, not '-q'",
    "template=3": "must have text as template, or \"\" for none, not 3",
    "factor=2": "must have as factor a function of the number of ranks, not 2",
    "factor=lambda world: 'two'": "must give as factor a finite number of at least 0, not 'two', for 2 ranks",
    "factor=lambda world: 6 if world == 2 else float('nan')":
        "must give as factor a finite number of at least 0, not nan, for 3 ranks",
    "factor=lambda world: -1": "must give as factor a finite number of at least 0, not -1, for 2 ranks",
    "traffic=3": "must have as traffic a function of the call and a size in bytes, not 3",
    "traffic=lambda call, size: 3":
        "must give as traffic a Traffic of kernbench_ccl.collectives, not 3, for 2 ranks (count 6)",
    "traffic=lambda call, size: Traffic([(0, 1)], lambda r: size, lambda r: 'much', lambda inside: size)":
        "must give as receive of its traffic bytes, finite and at least 0, not 'much', for rank 0 of 2 (count 6)",
    "in_place='maybe'": "must have True or False as in_place, not 'maybe'",
    "barrier=1": "must have True or False as barrier, not 1",
    "spelling='all_reduce'":
        "must have a command of its own, not 'all_reduce', which is that of collective 'all_reduce' of VERSION",
    "spelling='AllReduce'":
        "must have a command of its own, not 'AllReduce', which is that of collective 'all_reduce' of VERSION",
    "spelling='list'": "must have a command of its own, not 'list', which is another command of kernbench ccl",
    "spelling='aa'":
        "must have a command of its own, not 'aa', which is that of collective 'aa' of acme_zz (source tree)",
    "spelling='firsts'":
        "must have a command of its own, not 'firsts', which is that of collective 'aa' of acme_zz (source tree)",
}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_will_not_do_leaves_the_record_out(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other commands keep their names, the group shows its help, and the command of the record is an error."""
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("acme_zz", None)
    (tmp_path / "acme_zz.py").write_text(
        "from kernbench_ccl.collectives import CollectiveKind, moved\n"
        "from kernbench_ccl.collectives.traffic import Traffic\n"
        "from kernbench_core.plugins import CollectiveEntry\n"
        "def brings(c, r): return c.count\n"
        "def ends(c, r): return [moved(r, 0, c.count)]\n"
        "AA = CollectiveKind('aa', brings, ends, spelling='firsts')\n"
        f"ZZ = CollectiveKind('zz', brings, ends, {field})\n"
        "kernbench_api = 1\ndef kernbench_collectives():\n"
        "    return [CollectiveEntry(name, f'acme_zz:{name.upper()}', 'Odd.') for name in ('zz', 'aa')]\n"
    )
    own = own_plugins()
    plugins = load_plugins([*own, "acme = acme_zz"], installed=False)
    version = str(plugins.registries["collectives"].provider("all_reduce"))
    must = FIELDS[field].replace("of VERSION", f"of {version}")
    told = f"collective 'zz' of acme_zz (source tree) {must}; repair or reinstall acme_zz (source tree)."
    assert main(["ccl", "zz"], plugins) == 6
    assert capsys.readouterr() == ("", f"error: {told}\n")
    assert main(["ccl", "--help"], plugins) == 0
    out, err = capsys.readouterr()
    assert err == f"warning: collective 'zz' is left out: {told}\n"
    assert "  all_reduce " in out and "  firsts " in out and "  list " in out
    assert main(["ccl", "all_reduce", "--help"], plugins) == 0
    assert "Time all_reduce." in capsys.readouterr().out


def test_a_collective_may_not_be_named_like_another_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor like an earlier one in other letters."""
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("acme_names", None)
    (tmp_path / "acme_names.py").write_text(
        "from kernbench_ccl.collectives import CollectiveKind, moved\n"
        "from kernbench_core.plugins import CollectiveEntry\n"
        "def ends(c, r): return [moved(r, 0, c.count)]\n"
        "NEW, ALLREDUCE = [CollectiveKind(n, lambda c, r: c.count, ends) for n in ('new', 'allreduce')]\n"
        "kernbench_api = 1\ndef kernbench_collectives():\n"
        "    return [CollectiveEntry(name, f'acme_names:{name.upper()}', 'Odd.') for name in ('new', 'allreduce')]\n"
    )
    plugins = load_plugins([*own_plugins("ccl"), "acme = acme_names"], installed=False)
    version = plugins.registries["collectives"].provider("all_reduce")
    usable, broken = Catalogue.of(plugins).collectives.usable()
    must, remedy = "of acme_names (source tree) must have a command of its own", "repair or reinstall acme_names"
    assert broken == {
        "new": f"collective 'new' {must}, not 'new', which is another command of kernbench ccl; {remedy} "
               "(source tree).",
        "allreduce": f"collective 'allreduce' {must}, not 'allreduce', which is that of collective 'all_reduce' of "
                     f"{version}; {remedy} (source tree).",
    }  # fmt: skip
    assert list(usable) == list(COLLECTIVES)
