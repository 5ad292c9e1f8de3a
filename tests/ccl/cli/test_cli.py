"""`kernbench ccl` as a user calls it: options, the table, JSON, and what is refused."""

from __future__ import annotations

import json
import pickle

import pytest

from kernbench_ccl.cli.group import machine_sets
from kernbench_ccl.collectives import COLLECTIVES as KINDS
from kernbench_ccl.prove.processes import process_pool
from kernbench_core.runs import ProgressDisplay as Hidden
from tests.ccl.cli.machines import SMALL, SMALLEST
from tests.core.forked import command
from tests.core.screen import run_in_terminal, screen

ALL = [
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter", "sendrecv",
]  # fmt: skip


def test_the_table_has_a_line_for_each_size_with_exact_bandwidths(call):
    """algbw is size over time and busbw 2 (n - 1) / n of it; nothing is wrong."""
    code, out, err = call("all_reduce", *SMALL, "-b", "1K", "-e", "4K", "--algo", "ring")
    lines = out.splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    assert (code, err) == (0, "")
    assert lines[0] == "# all_reduce: 3 ranks, the SIPs of tiny"
    assert lines[1] == "# ring, 100 GB/s and 500 ns a link and direction"
    assert lines[2] == "# f16, sum; 1 KiB to 4 KiB; data checked"
    assert lines[3] == "# ccl.ring_all_reduce, pipelined, messages of 16 KiB"
    assert [row[:5] for row in rows] == [[str(n), str(n // 2), "f16", "sum", "-1"] for n in (1024, 2048, 4096)]
    for row in rows:
        for time, algbw, busbw, wrong in (row[5:9], row[9:13]):
            assert float(algbw) == pytest.approx(int(row[0]) / float(time) / 1000, abs=0.011)
            assert float(busbw) == pytest.approx(float(algbw) * 4 / 3, abs=0.011)
            assert wrong == "0"
    assert lines[-3] == "# Out of bounds values : 0 OK"


@pytest.mark.parametrize(("spelt", "shown"), [("half", "f16"), ("float", "f32"), ("double", "f64")])
def test_dtypes_and_reductions_are_spelt_as_in_nccl_tests_too(call, spelt, shown):
    """The row has our own words."""
    code, out, err = call("all_reduce", *SMALL, "-b", "1K", "-e", "1K", "--algo", "ring", "-d", spelt, "-o", "prod")
    assert (code, err) == (0, "")
    assert out.splitlines()[-4].split()[2:4] == [shown, "product"]


def test_columns_that_are_left_out_are_named(plugins):
    """On a terminal of 80 columns the table says what it goes without, and keeps what was asked for."""
    words = ["all_reduce", *SMALL, "-b", "1K", "-e", "1K", "--algo", "ring", "--no-check"]
    shown = screen(run_in_terminal(command("ccl", *words, plugins=plugins), 80)[0], 80)
    assert shown[4] == "# 80 columns are too few for redop and root; --json has them"
    assert shown[9].split()[:3] == ["1024", "512", "f16"]


@pytest.mark.parametrize("algo", ["ring", "all"])
def test_rows_stand_whole_on_a_terminal_that_shows_progress(plugins, algo, monkeypatch):
    """With progress the screen holds what it holds without, at 80 columns."""
    words = ["all_reduce", *SMALLEST, "--ranks", "3", "--network", "switch", "-b", "1K", "-e", "2K", "--algo", algo]
    program = command("ccl", *words, plugins=plugins)
    shown = screen(run_in_terminal(program, 80)[0], 80)
    monkeypatch.setattr("kernbench_ccl.cli.tables.ProgressDisplay", lambda title, **_: Hidden(title, enabled=False))
    plain = screen(run_in_terminal(program, 80)[0], 80)
    assert shown == plain
    assert [line.split()[0] for line in shown if line.split()[0].isdigit()] == ["1024", "2048"]


def test_links_that_differ_are_told_as_a_range_and_the_slow_one_binds(call, tmp_path):
    """With one link of a tenth of the bandwidth a ring takes the time of that link."""
    slow = "links: [{match: sip0-sip1, bandwidth: 10 GB/s, latency: 700 ns}]"
    (tmp_path / "slow.yaml").write_text(f"base: tiny\nsystem:\n  sips: 3\n  network:\n    {slow}\n")
    size = 1 << 18
    code, out, _ = call(
        "all_reduce", "--topology", "slow.yaml", "-b", "256K", "-e", "256K", "--algo", "ring", "--json", "--no-check",
        folder=tmp_path,
    )  # fmt: skip
    (row,) = json.loads(out)["rows"]
    assert code == 0 and row["out_of_place"]["binds"]["name"] == "sip0.io0.link_sip1->sip1.io0.link_sip0"
    assert 4 / 3 * size / 10 < row["out_of_place"]["time_ns"] < 1.1 * 4 * (size / 30 + 700)
    out = call("all_reduce", "--topology", "slow.yaml", "-b", "1", "-e", "1", "--algo", "ring", folder=tmp_path)[1]
    assert out.splitlines()[1] == "# ring, 10 GB/s to 100 GB/s and 500 ns to 700 ns a link and direction"


@pytest.mark.parametrize("name", ALL)
def test_every_collective_runs_checked_out_of_place_and_in_place(call, name):
    """The default algorithm of each is right, and reports no hazard."""
    code, out, _ = call(name, *SMALL, "-b", "3K", "-e", "3K", "--json")
    found = json.loads(out)
    (row,) = found["rows"]
    assert (code, found["wrong"], found["hazards"]) == (0, 0, 0)
    assert row["size"] == 3072
    assert row["out_of_place"]["wrong"] == 0
    assert row["out_of_place"]["time_ns"] >= row["bound_ns"] > 0
    kind = KINDS[found["collective"]]
    factor = row["out_of_place"]["busbw"] / row["out_of_place"]["algbw"]
    assert factor == pytest.approx(kind.factor(3))
    assert (row["in_place"] is None) == (name in ("all_to_all", "sendrecv"))


def test_nccl_names_of_collectives_are_understood(call):
    """alltoall, allreduce, all-gather: as people write them."""
    for name, known in (("alltoall", "all_to_all"), ("AllReduce", "all_reduce"), ("send-recv", "send_recv")):
        code, out, _ = call(name, *SMALL, "-b", "1K", "-e", "1K", "--json")
        assert (code, json.loads(out)["collective"]) == (0, known)


def test_options_change_the_machine_as_settings_do(call):
    """Network, links and ranks are overrides of the topology; half the bandwidth takes longer."""
    common = ("all_gather", "--topology", "tiny", "-j", "1", "-b", "64K", "-e", "64K", "--json")
    net = ("--network", "switch", "--link-latency", "1 us")
    fast = json.loads(call(*common, "--ranks", "4", *net, "--link-bw", "100GB/s")[1])
    slow = json.loads(call(*common, "--set", "system.sips=4", *net, "--link-bw", "50 GB/s")[1])
    assert fast["network"] == {
        "topology": "switch", "width": 4, "height": 1, "bandwidth": 100.0, "latency_ns": 1000.0,
    }  # fmt: skip
    assert slow["ranks"] == fast["ranks"] == 4
    assert slow["network"]["bandwidth"] == 50.0
    assert slow["rows"][0]["bound_ns"] - 2000 == pytest.approx(2 * (fast["rows"][0]["bound_ns"] - 2000))
    assert slow["rows"][0]["out_of_place"]["time_ns"] > fast["rows"][0]["out_of_place"]["time_ns"]


@pytest.mark.parametrize(
    ("spelt", "collective"),
    [("alltoall", "all_to_all"), ("sendrecv", "send_recv"), ("AllReduce", "all_reduce"), ("send-recv", "send_recv")],
)
def test_new_takes_collectives_as_the_table_does(call, tmp_path, spelt, collective):
    """What is written does the collective that is meant; its next steps name it so that the table takes it."""
    code, out, err = call("new", "mine", "--collective", spelt, folder=tmp_path)
    assert (code, err) == (0, "")
    assert out.startswith(f"wrote mine.py: {collective}, right for any number of ranks on any network\n")
    assert f'COLLECTIVE = "{collective}"' in (tmp_path / "mine.py").read_text()
    code, out, err = call("new", "yours", "--collective", "alltoal", folder=tmp_path)
    assert (code, out) == (2, "")
    assert err == (
        "error: option --collective must be one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, "
        "reduce, gather, scatter, send_recv, barrier, not 'alltoal'. Did you mean 'all_to_all'?\n"
    )


def test_wide_adds_the_bound_the_closed_form_and_what_binds(call):
    """In a pipe at full width; the efficiency is bound over time."""
    code, out, _ = call("all_reduce", *SMALL, "--algo", "passing", "-b", "64K", "-e", "64K", "--wide", "--no-check")
    titles = next(line for line in out.splitlines() if "busbw" in line).split()[1:]
    row = next(line for line in out.splitlines() if not line.startswith("#")).split()
    assert code == 0
    assert titles[13:] == ["bound", "formula", "eff", "binds", "events", "wall"]
    assert float(row[14]) == pytest.approx(2 * (500 + 65536 / 100) / 1000, abs=0.005)
    assert float(row[15]) == pytest.approx(100 * float(row[13]) / float(row[5]), abs=0.3)
    assert row[16].endswith("%")


def test_the_configuration_chooses_algorithm_and_settings(call, tmp_path):
    """An entry's name may be given; ccl.yaml says what serves a collective where the call names nothing."""
    path = tmp_path / "ccl.yaml"
    path.write_text(
        "algorithms: {mine: {algorithm: passing, chunk: 4 KiB, pipeline: off, pes: 2}}\n"
        "collectives: {all_reduce: mine}\n"
    )
    for extra in ((), ("--algo", "mine")):
        code, out, _ = call("all_reduce", *SMALL, "--config", str(path), "-b", "1K", "-e", "1K", *extra)
        assert code == 0
        assert out.splitlines()[3] == "# mine: acme.passing_all_reduce, step by step, messages of 4 KiB, 2 PEs a rank"
    _, out, _ = call(
        "all_reduce", *SMALL, "--config", str(path), "-b", "1K", "-e", "1K", "--pipeline", "on", "--pes", "1"
    )
    assert out.splitlines()[3] == "# mine: acme.passing_all_reduce, pipelined, messages of 4 KiB, 1 PE a rank"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("slots: 1, slot_bytes: 64 B, tier: sram", ", messages of 64 B, queues of 1 slot of 64 B in sram"),
        ("slots: 2", ", messages of 16 KiB, queues of 2 slots"),
        ("slot_bytes: 4 KiB", ", messages of 16 KiB, queues of slots of 4 KiB"),
        ("tier: hbm", ", messages of 16 KiB, queues in hbm"),
        ("chunk: 3 B", ", messages of 2 B"),
        ("chunk: 1 B", ", messages of 2 B"),
        ("topology: switch, pes: 1", ", messages of 16 KiB, laid over a switch, 1 PE a rank"),
        ("pipeline: on", ", messages of 16 KiB"),
    ],
)
def test_the_header_names_every_setting_that_is_not_the_default(call, tmp_path, settings, told):
    """What is left to the machine is not named; a message is told as it is sent: whole elements, that a queue holds."""
    (tmp_path / "ccl.yaml").write_text(f"defaults: {{{settings}}}\n")
    words = ("all_reduce", *SMALL, "--config", "ccl.yaml", "-b", "6", "-e", "6", "--algo", "passing", "--no-check")
    code, out, _ = call(*words, folder=tmp_path)
    assert (code, out.splitlines()[3]) == (0, f"# acme.passing_all_reduce, pipelined{told}")


def test_json_has_the_settings_of_every_row(call, tmp_path):
    """What was used: what ccl.yaml says, and what was left to the machine and the message."""
    entries = "mine: {algorithm: passing, slots: 1, slot_bytes: 2 KiB, tier: sram, chunk: 3 B, pipeline: off, pes: 2}"
    (tmp_path / "ccl.yaml").write_text(f"algorithms: {{{entries}}}\n")
    words = ("all_reduce", *SMALL, "-b", "1K", "-e", "1K", "--no-check", "--json")
    own = json.loads(call(*words, "--config", "ccl.yaml", "--algo", "mine", folder=tmp_path)[1])
    assert (own["config"], own["components"], own["sets"]) == ("ccl.yaml", None, ["system.sips=3"])
    assert own["rows"][0]["settings"] == {
        "entry": "mine", "chunk_bytes": 3, "message_bytes": 2, "pipeline": False, "slots": 1, "slot_bytes": 2048,
        "tier": "sram", "pes": 2, "topology": "ring",
        "window": {"bytes": 2 * 2048, "wanted_bytes": 2 * 512, "limit": None},
    }  # fmt: skip
    plain = json.loads(call(*words, "--algo", "passing", "--set", "components.pe_ipcq.params.slots=3")[1])
    assert (plain["config"], plain["sets"]) == (None, ["system.sips=3", "components.pe_ipcq.params.slots=3"])
    assert plain["rows"][0]["settings"] == {
        "entry": None, "chunk_bytes": 16384, "message_bytes": 16384, "pipeline": True, "slots": 3, "slot_bytes": 16384,
        "tier": "tcm", "pes": 4, "topology": "ring",
        "window": {"bytes": 2 * 3 * 16384, "wanted_bytes": 2 * 256, "limit": None},
    }  # fmt: skip


def test_the_ideal_machine_reaches_the_closed_form(call):
    """Nothing but the links takes time: passing whole vectors around takes (N - 1)(a + S / b)."""
    size = ("-b", "512K", "-e", "512K")
    code, out, err = call("all_reduce", *SMALL, "--algo", "passing", "--idealised", "--json", *size)
    (row,) = json.loads(out)["rows"]
    assert (code, err) == (0, "")
    assert row["out_of_place"]["time_ns"] == pytest.approx(row["formula_ns"], rel=0.01)
    assert row["out_of_place"]["link"]["utilisation"] > 0.85


def test_more_processes_give_the_same_numbers(call, monkeypatch):
    """Where and beside whom a run is simulated does not show."""
    monkeypatch.setattr("kernbench_ccl.measure.sweep._FEW", 0)
    seen = []
    monkeypatch.setattr(
        "kernbench_ccl.measure.sweep.process_pool", lambda *told: seen.append(told) or process_pool(*told)
    )
    args = ("all_gather", "--topology", "tiny", "--set", "cube.pes=1", "--ranks", "3", "--algo", "ring", "--json")
    args += ("-b", "1K", "-e", "2K")
    alone, beside = (json.loads(call(*args, "-j", jobs)[1]) for jobs in ("1", "2"))
    for found in (alone, beside):
        for row in found["rows"]:
            for half in ("out_of_place", "in_place"):
                del row[half]["wall_s"]
    assert alone == beside
    assert [workers for workers, _ in seen] == [2]


REFUSED = [
    ("all_reduce --algo auto --algo ring --algo direct", 2,
     "option --algo must be auto alone, or algorithms by their names, not also 'ring' and 'direct'."),
    ("all_redcue", 2, "kernbench ccl must be followed by a collective or a command, not 'all_redcue'. Did you mean "
     "'all_reduce'?"),
    ("all_reduce -b 1X", 2, "option -b must be a positive number of bytes, as '1K' or '64M', not '1X'."),
    ("all_reduce -b 2K -e 1K", 2, "option -e must be at least -b, 2048 B, not 1024 B; give a larger one."),
    ("all_reduce -f 1", 2, "option -f must be a factor above 1, as '2', not '1'."),
    ("all_reduce -f 2 -i 1K", 2, "options -f and -i exclude each other; give one of them."),
    ("all_reduce --ranks 0", 2, "option --ranks must be an integer of at least 2, not '0'."),
    ("all_reduce --ranks 1", 2, "option --ranks must be an integer of at least 2, not '1'."),
    ("all_reduce --topology tiny", 2, "a collective must have at least 2 ranks, and this topology has 1 SIP; give "
     "--ranks, or another --topology."),
    ("broadcast --ranks 3 --root 3", 2, "option --root must be a rank from 0 to 2, not 3; choose one of these."),
    ("all_reduce --network rnig", 2, "option --network must be one of fully_connected, mesh_2d, ring, switch, "
     "torus_2d, not 'rnig'. Did you mean 'ring'?"),
    ("all_reduce --redop mean", 2, "option --redop must be one of sum, avg, product, min, max, not 'mean'."),
    ("all_reduce -d int32 -o avg", 2, "option --redop: avg must be of a float dtype, not of int32, which cannot hold "
     "the quotient; use sum, or cast first."),
    ("all_reduce --algo passing --ranks 7 --topology tiny", 2,
     "acme.passing_all_reduce must have at most 6 ranks, not 7; give fewer."),
    ("all_reduce --pes 33", 2, "option --pes must be at most 32, the PEs of a SIP, not 33; give fewer."),
    ("all_reduce --topology mesh", 3, "is a mesh on its own, which has no PEs to run a collective on; drive it with "
     "'kernbench probe --traffic', or choose another --topology."),
    ("all_reduce --link-bw 12ns", 3, "option --link-bw: system.network.bandwidth must be a positive bandwidth, "
     "not '12ns'."),
    ("all_reduce --link-bw 50", 3, "option --link-bw: system.network.bandwidth must be a positive bandwidth, "
     "not 50. Did you mean '50 GB/s'?"),
    ("all_reduce --link-latency 1", 3, "option --link-latency: system.network.latency must be a positive time, "
     "not 1. Did you mean '1 ns'?"),
    ("all_reduce --ranks 1000", 3, "option --ranks: system.sips must be at most 512, not 1000;"),
    ("all_reduce --set system.network.latency=1", 3, "--set system.network.latency=1: system.network.latency "),
]  # fmt: skip


@pytest.mark.parametrize("line, code, sentence", REFUSED)
def test_what_is_asked_wrongly_is_refused_in_a_sentence(call, line, code, sentence):
    """Before anything runs, with the exit code of its kind."""
    found, out, err = call(*line.split(), "-j", "1")
    assert (found, out) == (code, "")
    assert sentence in err


def test_options_reach_other_processes_as_settings():
    """Each still knows its option there."""
    given = {"ranks": 3, "network": None, "link_bw": "37 GB/s", "link_latency": None, "sets": ("cube.pes=1",)}
    sets = pickle.loads(pickle.dumps(machine_sets(given)))
    assert sets == ("system.sips=3", "system.network.bandwidth=37 GB/s", "cube.pes=1")
    assert [each.place for each in sets[:2]] == ["option --ranks", "option --link-bw"]


def test_help_names_every_collective_and_command(call):
    """The group's help lists what there is."""
    code, out, _ = call("--help")
    assert code == 0
    for name in (*ALL, "list", "check", "new"):
        assert f"\n  {name} " in out
    code, out, _ = call("broadcast", "--help")
    assert code == 0
    assert "--root RANK" in out and "--redop" not in out


@pytest.mark.parametrize(("more", "told"), [
    (["--algo", "ring"], "data right"), (["--algo", "ring", "--algo", "direct", "--no-check"], "data not checked"),
])  # fmt: skip
def test_quiet_is_one_line(call, more, told):
    """Times out of place of the first and the last size, as the table and --json have them."""
    words = ("all_reduce", "--topology", "tiny", "--set", "cube.pes=1", "--ranks", "2", "-j", "1", "-b", "1K", "-e",
             "2K", *more)  # fmt: skip
    code, out, err = call(*words, "-q")
    found = json.loads(call(*words, "--json")[1])
    times = sorted(row["out_of_place"]["time_ns"] for row in found["rows"])
    span = " to ".join(f"{ns / 1e3:.3f} us" for ns in (times[0], times[-1]))
    mean = f"{found['average_busbw']:.4g} GB/s"
    assert (code, err) == (0, "")
    assert out == f"all_reduce, 2 ranks of tiny: 1 KiB to 2 KiB in {span}, average bus bandwidth {mean}, {told}\n"
