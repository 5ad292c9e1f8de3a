"""`kernbench ccl tune`: the table of a machine, written, used, gone on with, and exported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from kernbench_ccl.measure import time_collective
from kernbench_ccl.measure.trials import AlgorithmTrial
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.spread import NOT_KNOWN
from tests.conftest import SOURCE_TREE
from tests.core.forked import Forked, command

MACHINE = ("--topology", "tiny", "--set", "cube.pes=1", "--link-bw", "37 GB/s", "-j", "1")
SMALL = (*MACHINE, "--ranks", "3", "--sizes", "2K,64K")
Call = Callable[..., tuple[int, str, str]]
HASTY = """
from kernbench_core import AlgorithmEntry

kernbench_api = 1
COLLECTIVE = "all_gather"


def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    for part in range(world):
        tl.store(out_ptr + part * count, tl.load(in_ptr, shape=(count,)))


def kernbench_algorithms():
    return [AlgorithmEntry("hasty.copy_all_gather", f"{__name__}:kernel", "Copy.", "all_gather")]
"""


@pytest.fixture
def call(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command of `kernbench ccl` in a folder; return its exit code, stdout and stderr."""

    def run(folder: Path, *args: str) -> tuple[int, str, str]:
        with chdir(folder):
            code = main(["ccl", *args], plugins)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, plugins: Plugins) -> Iterator[Path]:
    """Tune a machine once; the folder has t.json and n.csv."""
    folder = tmp_path_factory.mktemp("tuned")
    with chdir(folder):
        words = ["tune", *SMALL, "--collective", "all_gather", "--collective", "gather"]
        assert main(["ccl", *words, "-o", "t.json", "--nccl-csv", "n.csv"], plugins) == 0
    yield folder


def test_the_table_has_the_time_of_every_algorithm_as_it_is_measured(tuned: Path) -> None:
    """Each as `kernbench ccl` times it; a collective of one algorithm has no entry."""
    entries = json.loads((tuned / "t.json").read_text())["entries"]
    assert [(each["collective"], each["network"], each["world"]) for each in entries] == [("all_gather", "ring", 3)]
    rows = entries[0]["times"]
    assert [size for size, _ in rows] == [2046, 65532]
    for size, times in rows:
        assert {"ccl.ring_all_gather", "ccl.direct_all_gather", "ccl.ring_bidirectional_all_gather"} == set(times)
        for name, ns in times.items():
            sets = ["cube.pes=1", "system.network.bandwidth=37GB/s"]
            (row,) = time_collective("all_gather", [size], "tiny", algo=name, ranks=3, set=sets, check=False)
            assert row.out_of_place.time_ns == ns


def test_the_table_and_its_csv_are_two_files(tmp_path: Path, call: Call) -> None:
    """The second would be written over the first, and the measurements lost."""
    code, out, err = call(tmp_path, "tune", *SMALL, "--collective", "gather", "-o", "t", "--nccl-csv", "./t")
    assert (code, out) == (2, "")
    assert err == "error: option --nccl-csv must be another file than the table, 't'; give two.\n"


def test_auto_goes_by_the_table_and_says_so(tuned: Path, call: Call) -> None:
    """By --tuning and by ccl.yaml, whose path is seen from that file; the fastest of the table is taken."""
    rows = json.loads((tuned / "t.json").read_text())["entries"][0]["times"]
    best = min(rows[0][1], key=lambda name: rows[0][1][name])
    config = tuned / "sub" / "ccl.yaml"
    config.parent.mkdir()
    config.write_text("auto: {tuning: ../t.json}\n")
    words = ("all_gather", *MACHINE, "--ranks", "3", "-b", "2K", "-e", "2K", "--no-check")
    for more, source in ((("--tuning", "t.json"), "t.json"), (("--config", "sub/ccl.yaml"), "sub/../t.json")):
        code, out, err = call(tuned, *words, *more)
        assert (code, err) == (0, "")
        assert out.splitlines()[3:5] == [
            f"# auto (by the measurements of {source}):", f"#   all sizes: {best}, pipelined, messages of 16 KiB"
        ]  # fmt: skip


def test_a_table_of_another_machine_is_refused_or_left_with_a_sentence(tuned: Path, call: Call) -> None:
    """Refused where the command names it, left where a ccl.yaml does; of other ranks it is of this machine."""
    words = ("all_gather", "--topology", "tiny", "--ranks", "3", "-b", "2K", "-e", "2K", "--no-check", "-j", "1")
    (tuned / "named.yaml").write_text("auto: {tuning: t.json}\n")
    assert call(tuned, *words, "--tuning", "t.json")[::2] == (2, (
        "error: option --tuning must be a table of this machine, not 't.json', which was measured on tiny with links "
        "of 37 GB/s, 500 ns; measure this one with kernbench ccl tune.\n"
    ))  # fmt: skip
    code, out, err = call(tuned, *words, "--config", "named.yaml")
    tried = "by closed forms, checked by 3 short simulations of up to 2 KiB"
    assert (code, out.splitlines()[3]) == (0, f"# auto ({tried}):")
    assert err == (
        "warning: t.json is not used: it was measured on another machine (tiny with links of 37 GB/s, 500 ns); "
        "kernbench ccl tune measures this one.\n"
    )
    asked = ("all_gather", *MACHINE, "--ranks", "5", *words[5:10], "--tuning", "t.json", "--json")
    code, out, err = call(tuned, *asked)
    assert (code, err) == (0, "")
    assert json.loads(out)["auto"] == tried
    assert json.loads(call(tuned, *asked, "--algo", "ring")[1])["auto"] is None


def test_a_table_holds_for_the_settings_of_its_ccl_yaml(tuned: Path, call: Call) -> None:
    """With options or a file that say otherwise it is left, with a sentence; tuned with them it is used."""
    words = ("all_gather", *MACHINE, "--ranks", "3", "-b", "2K", "-e", "2K", "--no-check")
    (tuned / "slow.yaml").write_text("defaults: {pipeline: off, slots: 2}\n")
    for more, told in (
        (("--pipeline", "off"), "pipeline=off"), (("--pes", "1"), "pes=1"),
        (("--config", "slow.yaml"), "slots=2, pipeline=off"),
    ):  # fmt: skip
        code, out, err = call(tuned, *words, *more, "--tuning", "t.json")
        assert (code, out.splitlines()[3][:24]) == (0, "# auto (by closed forms,")
        assert err == (
            "warning: t.json is not used: it was measured with other settings of ccl.direct_all_gather, the defaults "
            f"and not {told}; kernbench ccl tune --config measures with those of a ccl.yaml.\n"
        )
    made = ("tune", *SMALL, "--collective", "all_gather", "--config", "slow.yaml", "-o", "slow.json")
    assert call(tuned, *made)[0] == 0
    code, out, err = call(tuned, *words, "--config", "slow.yaml", "--tuning", "slow.json")
    assert (code, err, out.splitlines()[3]) == (0, "", "# auto (by the measurements of slow.json):")


def test_what_a_table_holds_stays_and_what_was_simulated_is_not_again(
    tuned: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted in the middle it goes on where it was, with the same table in the end."""
    (tuned / "more.json").write_text((tuned / "t.json").read_text())
    words = ("tune", *SMALL, "--collective", "all_to_all")
    ran, run, most = list[object](), AlgorithmTrial.run, 3

    def counted(*given: object) -> object:
        if len(ran) == most:
            raise KeyboardInterrupt
        ran.append(given)
        return run(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(AlgorithmTrial, "run", counted)
    assert call(tuned, *words, "-o", "more.json")[0] == 130
    most, first = 99, len(ran)
    code, out, _ = call(tuned, *words, "-o", "more.json")
    assert (code, first, len(ran)) == (0, 3, 4)
    assert out.splitlines()[0] == "all_to_all, 3 ranks, ring"
    assert out.splitlines()[-2] == "wrote more.json; kernbench ccl COLLECTIVE --tuning more.json goes by it"
    assert out.splitlines()[-1] == f"it compares single times: {NOT_KNOWN}"
    old, new = (json.loads((tuned / name).read_text())["entries"] for name in ("t.json", "more.json"))
    assert [each["collective"] for each in new] == ["all_gather", "all_to_all"] and new[0] == old[0]
    code, out, _ = call(tuned, *words, "-o", "fresh.json", "--json")
    found = json.loads(out)
    assert (code, len(ran), found["output"]) == (0, 4, "fresh.json")
    assert json.loads((tuned / "fresh.json").read_text())["entries"] == new[1:]
    assert [each["collective"] for each in found["best"]] == ["all_to_all"]


def test_the_csv_says_what_nccl_has_a_name_for(tuned: Path) -> None:
    """The ring for all sizes; what is faster is a comment."""
    lines = (tuned / "n.csv").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["allgather,0,4294967295,ring,simple,-1,-1,3"]


WRONG = {
    ("--collective", "alreduce"): "option --collective must be one of all_reduce, all_gather, reduce_scatter, "
    "all_to_all, broadcast, reduce, gather, scatter, send_recv, not 'alreduce'.",
    ("--sizes", "1K,none"): "option --sizes must be a positive number of bytes, as '1K' or '64M', not 'none'.",
    ("--ranks", "1"): "a collective must have at least 2 ranks, and this topology has 1 SIP; give --ranks, or another "
    "--topology.",
    ("--network", "star"): "option --network must be one of fully_connected, mesh_2d, ring, switch, torus_2d, not "
    "'star'.",
    ("-d", "f17"): "option --dtype: a dtype must be one of bool, int8, ",
    ("--collective", "gather"): "there must be at least two algorithms to choose from for what is asked.",
    ("-o", "other.json"): "option -o must be a new file, or a table of this machine and f16, not 'other.json', which "
    "is of tiny with links of 37 GB/s, 500 ns and f16; give another one.",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_measured_is_told(tuned: Path, call: Call, words: tuple[str, str]) -> None:
    """In a sentence, before anything is simulated."""
    (tuned / "other.json").write_text((tuned / "t.json").read_text())
    code, out, err = call(tuned, "tune", "--topology", "tiny", "--ranks", "3", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {WRONG[words]}")


def test_an_algorithm_of_a_plug_in_that_is_wrong_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that just copies its input is the fastest all-gather of all, and was the best at every size."""
    (tmp_path / "hasty.py").write_text(HASTY)
    words = ["tune", *SMALL, "--collective", "all_gather", "-o", "t.json"]
    with chdir(tmp_path):
        assert main(["ccl", *words], load_plugins([*SOURCE_TREE, "hasty.py"], installed=False)) == 0
    (entry,) = json.loads((tmp_path / "t.json").read_text())["entries"]
    assert all(name.startswith("ccl.") for _, times in entry["times"] for name in times)
    told = "warning: hasty.copy_all_gather of 3 ranks is left out, as kernbench ccl check finds it wrong: element "
    assert capsys.readouterr().err.startswith(told)


def test_an_output_that_cannot_be_gone_on_with_is_told(tuned: Path, call: Call) -> None:
    """A folder by what the system says of it, a file that is no table by what is wrong with it."""
    (tuned / "nowhere").mkdir(exist_ok=True)
    (tuned / "plain.json").write_text("{")
    for output, told in (
        ("nowhere", "must be a file that can be read: Is a directory."),
        ("plain.json", "must be a table that kernbench ccl tune wrote, and 'plain.json' is no JSON."),
    ):
        code, out, err = call(tuned, "tune", "--topology", "tiny", "--ranks", "3", "-o", output)
        assert (code, out) == (2, "")
        assert err.startswith(f"error: option -o {told} Give a new file.")


def test_killed_at_any_time_it_ends_with_the_same_table(tmp_path: Path, plugins: Plugins) -> None:
    """By SIGKILL, again and again, each time a little later; then the table is that of a run that nobody stopped."""
    words = ("ccl", "tune", *SMALL, "--collective", "all_reduce")
    for name in ("whole", "killed"):
        env = {**os.environ, "KERNBENCH_CACHE": str(tmp_path / name)}
        program, wait = command(*words, "-o", f"{name}.json", plugins=plugins), 0.05
        while True:
            with Forked(program, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL) as child:
                try:
                    assert child.wait(None if name == "whole" else wait) == 0
                    break
                except subprocess.TimeoutExpired:
                    child.send_signal(signal.SIGKILL)
            wait += 0.05
    assert wait > 0.05
    assert (tmp_path / "killed.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
