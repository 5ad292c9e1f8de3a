"""ccl.yaml: entries, what they inherit, and every fault in one go with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.plan import Settings, load_ccl
from kernbench_ccl.plan.configuration import SETTINGS
from kernbench_core.cli import main
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.plugins import AlgorithmEntry, Provider, Registry

NAMES = (
    "ccl.ring_all_reduce", "ccl.ring_all_gather", "ccl.double_tree_all_reduce", "acme.magic_all_reduce",
    "acme.magic_broadcast",
)
KNOWN = Catalogue(
    Registry("algorithm", [(AlgorithmEntry(name, "a:b", ""), Provider("a", "a", "")) for name in NAMES])
)


def write(tmp_path, text):
    path = tmp_path / "ccl.yaml"
    path.write_text(text)
    return path


def problems(tmp_path, text):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_ccl(path, catalogue=KNOWN)
    return [problem.replace(str(path), "ccl.yaml") for problem in caught.value.problems]


def test_without_a_file_the_defaults_leave_everything_to_measurement_and_machine():
    """Auto algorithm, queues as pe_ipcq says, messages of 16 KiB, pipelined."""
    config = load_ccl(catalogue=KNOWN)
    assert config.defaults == Settings("defaults", "auto", None, None, None, 16384, True, None, None)
    assert config.entries == {}
    assert config.chosen("all_reduce") == "auto"
    assert config.settings("ccl.ring_all_reduce") == Settings(
        "ccl.ring_all_reduce", "ccl.ring_all_reduce", None, None, None, 16384, True, None, None
    )


def test_the_file_of_the_package_says_the_same_as_the_declared_defaults():
    """One place declares a default; the YAML repeats it for its readers."""
    declared = {setting.name: setting.default_value for setting in SETTINGS}
    defaults = load_ccl().defaults
    assert {name: getattr(defaults, name) for name in declared} == declared


def test_an_entry_inherits_what_it_leaves_out(tmp_path):
    """Its own keys, then those of defaults in the file, then the package's."""
    config = load_ccl(
        write(
            tmp_path,
            "defaults: {chunk: 8 KiB, pipeline: off}\n"
            "algorithms:\n"
            "  wide: {algorithm: ring, slots: 8, tier: sram, pes: 4, topology: torus_2d}\n"
            "  acme.magic_all_reduce: {pipeline: on, slot_bytes: 1 MiB}\n"
            "collectives: {all_reduce: wide, all_gather: ring, reduce: auto}\n",
        ),
        catalogue=KNOWN,
    )
    assert config.entries["wide"] == Settings("wide", "ring", 8, None, "sram", 8192, False, 4, "torus_2d")
    assert config.settings("acme.magic_all_reduce") == Settings(
        "acme.magic_all_reduce", "acme.magic_all_reduce", None, 1 << 20, None, 8192, True, None, None
    )
    assert [config.chosen(name) for name in ("all_reduce", "all_gather", "reduce", "scatter")] == [
        "wide", "ring", "auto", "auto",
    ]  # fmt: skip


def test_an_algorithm_has_the_settings_of_the_entry_that_runs_it(tmp_path):
    """By the entry's name, else by the only entry that names it; of several, none is meant."""
    text = "algorithms:\n  ring: {chunk: 4 KiB}\n  a: {algorithm: double_tree}\n  b: {algorithm: double_tree}\n"
    config = load_ccl(write(tmp_path, text), catalogue=KNOWN)
    assert config.settings("ccl.ring_all_reduce").name == "ring"
    assert config.settings("ccl.ring_all_gather").chunk == 4096
    assert config.settings("ccl.double_tree_all_reduce").name == "ccl.double_tree_all_reduce"


def test_settings_on_top_of_the_file(tmp_path):
    """KEY=VALUE texts are merged last and are checked alike."""
    config = load_ccl(write(tmp_path, "defaults: {chunk: 8 KiB}\n"), sets=("defaults.chunk=32 KiB", "defaults.pes=2"))
    assert (config.defaults.chunk, config.defaults.pes) == (32768, 2)
    with pytest.raises(ConfigError) as caught:
        load_ccl(sets=("defaults.chunk=0 B",))
    assert caught.value.problems == ("--set defaults.chunk=0 B: defaults.chunk must be a positive size, not '0 B'.",)


def test_every_fault_is_reported_at_once_with_its_place(tmp_path):
    """Sections, keys, units, choices, names: one sentence each, with line and column."""
    text = """\
defualts: {chunk: 1 KiB}
defaults:
  chunk: 64
  pipeline: maybe
  slots: 0
  algorithm: rnig
algorithms:
  ring:
    tier: tmc
    slot: 4
    pes: many
    topology: circle
  other: {}
  third: {algorithm: auto}
  fourth: 7
collectives:
  all_redcue: ring
  all_gather: 5
  broadcast: nothing
"""
    assert problems(tmp_path, text) == [
        "ccl.yaml:1:1: defualts must be a known key. Did you mean 'defaults'?",
        "ccl.yaml:3:3: defaults.chunk must be a positive size, not 64. Did you mean '64 B'?",
        "ccl.yaml:4:3: defaults.pipeline must be on or off, not 'maybe'.",
        "ccl.yaml:5:3: defaults.slots must be an integer of at least 1 or auto, not 0.",
        "ccl.yaml:6:3: defaults.algorithm must be a registered algorithm, an entry of 'algorithms' or auto, not "
        "'rnig'. Did you mean 'ring'?",
        "ccl.yaml:9:5: algorithms.ring.tier must be one of 'auto', 'tcm', 'sram', 'hbm', not 'tmc'.",
        "ccl.yaml:10:5: algorithms.ring.slot must be a known key. Did you mean 'slots'?",
        "ccl.yaml:11:5: algorithms.ring.pes must be an integer of at least 1 or auto, not 'many'.",
        "ccl.yaml:12:5: algorithms.ring.topology must be one of 'auto', 'fully_connected', 'mesh_2d', 'ring', "
        "'switch', 'torus_2d', not 'circle'.",
        "ccl.yaml:13:3: algorithms.other must have the key 'algorithm', as 'other' is no registered algorithm itself.",
        "ccl.yaml:14:11: algorithms.third.algorithm must be a registered algorithm, not 'auto'; name the one that the "
        "entry is for.",
        "ccl.yaml:15:3: algorithms.fourth must be a mapping of keys to values, not 7.",
        "ccl.yaml:17:3: collectives.all_redcue must be a collective. Did you mean 'all_reduce'?",
        "ccl.yaml:18:3: collectives.all_gather must be text, not 5.",
        "ccl.yaml:19:3: collectives.broadcast must be a registered algorithm, an entry of 'algorithms' or auto, not "
        "'nothing'. Known: magic.",
    ]


def test_files_of_algorithms_are_found_from_the_file_that_names_them(tmp_path):
    """Whatever the working directory is; one that is not there is told."""
    (tmp_path / "mine.py").write_text("")
    text = "algorithms: {own: {algorithm: ./mine.py}}\ncollectives: {all_reduce: own, broadcast: mine.py}\n"
    config = load_ccl(write(tmp_path, text), catalogue=KNOWN)
    assert config.entries["own"].algorithm == config.chosen("broadcast") == str(tmp_path / "mine.py")
    missing = tmp_path / "sub" / "no.py"
    assert problems(tmp_path, "algorithms: {own: {algorithm: sub/no.py}}\n") == [
        "ccl.yaml:1:20: algorithms.own.algorithm must be a registered algorithm or a .py file, and there is no file "
        f"{str(missing)!r}."
    ]


def test_a_misspelt_key_is_one_fault(tmp_path):
    """That its entry names no algorithm follows from it."""
    assert problems(tmp_path, "algorithms:\n  narrow:\n    algoritm: ring\n") == [
        "ccl.yaml:3:5: algorithms.narrow.algoritm must be a known key. Did you mean 'algorithm'?"
    ]


def test_slots_are_whole_lines(tmp_path):
    """Known while the file is read."""
    text = "defaults:\n  slot_bytes: 1 B\nalgorithms:\n  narrow:\n    algorithm: ring\n    slot_bytes: 100 B\n"
    assert problems(tmp_path, text) == [
        "ccl.yaml:2:3: defaults.slot_bytes must be a multiple of 64 B, a line of a scratchpad, not '1 B'.",
        "ccl.yaml:6:5: algorithms.narrow.slot_bytes must be a multiple of 64 B, a line of a scratchpad, not '100 B'.",
    ]


def test_an_algorithm_serves_its_own_collective(tmp_path):
    """An entry, or an algorithm itself, that does another one; `ring` does several."""
    text = """\
algorithms:
  narrow: {algorithm: ring_all_gather}
  wide: {algorithm: ring}
collectives:
  all_reduce: narrow
  all_gather: wide
  broadcast: ccl.ring_all_reduce
  reduce: wide
"""
    assert problems(tmp_path, text) == [
        "ccl.yaml:5:3: collectives.all_reduce must be an algorithm that does all_reduce, not 'narrow', which runs "
        "ring_all_gather and does all_gather.",
        "ccl.yaml:7:3: collectives.broadcast must be an algorithm that does broadcast, not 'ccl.ring_all_reduce', "
        "which does all_reduce.",
        "ccl.yaml:8:3: collectives.reduce must be an algorithm that does reduce, not 'wide', which runs ring and does "
        "all_gather and all_reduce.",
    ]


def test_an_unknown_algorithm_lists_what_there_is(tmp_path):
    """Of the collective, where it is known; a name that is close is told alone."""
    text = "defaults: {algorithm: xyzzy}\ncollectives: {all_gather: xyzzy, all_reduce: rnig}\n"
    assert problems(tmp_path, text) == [
        "ccl.yaml:1:12: defaults.algorithm must be a registered algorithm, an entry of 'algorithms' or auto, not "
        "'xyzzy'. Known: double_tree, magic, ring.",
        "ccl.yaml:2:15: collectives.all_gather must be a registered algorithm, an entry of 'algorithms' or auto, not "
        "'xyzzy'. Known: ring.",
        "ccl.yaml:2:34: collectives.all_reduce must be a registered algorithm, an entry of 'algorithms' or auto, not "
        "'rnig'. Did you mean 'ring'?",
    ]


def test_more_pes_than_there_are_have_their_place(tmp_path):
    """That of the entry, or of the defaults that it inherits from; it counts in no comparison."""
    text = "defaults:\n  pes: 100\nalgorithms:\n  narrow:\n    algorithm: ring\n    pes: 9\n  wide: {algorithm: ring}\n"
    path = write(tmp_path, text)
    config = load_ccl(path, catalogue=KNOWN)
    for name, told in (
        ("narrow", "6:5: algorithms.narrow.pes must be at most 8, the PEs of a SIP, not 9; give fewer."),
        ("wide", "2:3: defaults.pes must be at most 8, the PEs of a SIP, not 100; give fewer."),
        ("acme.magic_all_reduce", "2:3: defaults.pes must be at most 8, the PEs of a SIP, not 100; give fewer."),
    ):
        with pytest.raises(ConfigError) as caught:
            config.settings(name).check_pes(8)
        assert caught.value.problems == (f"{path}:{told}",)
    config.settings("narrow").check_pes(9)
    load_ccl(None).defaults.check_pes(1)
    assert evolve(config.settings("narrow"), pes_at="elsewhere") == config.settings("narrow")


def test_duplicate_keys_and_wrong_sections_are_told_beside_other_faults(tmp_path):
    """What reading can go on after does not hide the rest."""
    assert problems(tmp_path, "defaults: {chunk: 1 KiB, chunk: 2 KiB}\nalgorithms: [ring]\n") == [
        "ccl.yaml:1:26: key 'chunk' must appear once, but it is also at ccl.yaml:1:12.",
        "ccl.yaml:2:1: algorithms must be a mapping of keys to values, not ['ring'].",
    ]


def test_a_file_that_is_not_there():
    """--config names a file."""
    with pytest.raises(UsageError) as caught:
        load_ccl(Path("/nowhere/ccl.yaml"))
    assert str(caught.value) == (
        "--config must be a ccl.yaml file, not '/nowhere/ccl.yaml'; 'docs/collectives.md' shows one."
    )



@given(st.integers(1, 1 << 30), st.sampled_from([1, 2, 4, 8]))
def test_a_message_has_at_least_one_element(chunk, itemsize):
    """A tile is what fits the bytes of a message, never nothing."""
    settings = Settings("a", "a", None, None, None, chunk, True, None, None)
    tile = settings.tile(itemsize)
    assert tile >= 1
    assert tile == 1 or tile * itemsize <= chunk < (tile + 1) * itemsize


@pytest.mark.parametrize("algo", [(), ("--algo", "narrow"), ("--algo", "ring"), ("--algo", "auto"), ("--algo", "all")])
def test_a_command_refuses_too_many_pes_before_it_simulates(tmp_path, capsys, algo):
    """Whatever chooses the entry; nothing is printed but its place."""
    entry = "algorithms:\n  narrow:\n    algorithm: ring\n    pes: 9\n"
    path = write(tmp_path, f"{entry}collectives: {{all_reduce: narrow}}\n")
    args = ["ccl", "all_reduce", "--topology", "tiny", "--ranks", "2", "--config", str(path), "-e", "1K", "-j", "1"]
    assert main([*args, *algo]) == 3
    told = f"{path}:4:5: algorithms.narrow.pes must be at most 4, the PEs of a SIP, not 9; give fewer.\n"
    assert capsys.readouterr() == ("", told)
