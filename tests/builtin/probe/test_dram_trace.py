"""`kernbench probe --dram --trace`: a file's requests are sent at its times, and its faults are told by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernbench_builtin.probe.dram_driver import DramProbe
from kernbench_builtin.probe.dram_workload import read_trace
from kernbench_core.cli import main
from kernbench_core.errors import UsageError
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core.plugins import Plugins
from kernbench_core.values import Region

BANK = "builtin.hbm_ctrl_bank"
SLICE = 1 << 31


@pytest.fixture
def probe(plugins: Plugins) -> DramProbe:
    given = {"refresh": "none", "channel_hash": "off"}
    values, problems = resolve_params(plugins.components.declared(BANK), given, str)
    assert problems == []
    return DramProbe(Node("hbm_ctrl0", "hbm_ctrl", BANK, values), plugins.components)


def test_a_trace_is_sent_line_by_line_at_its_times(probe: DramProbe, tmp_path: Path) -> None:
    file = tmp_path / "some.trace"
    file.write_text("# a comment\n0 R 0 32\n\n100 R 0x400 32 # another\n300.5 W 64 64\n")
    requests = read_trace(str(file), probe.geometry, SLICE)
    assert requests == [
        (0.0, "read", (Region(0, 32),)), (100.0, "read", (Region(1024, 32),)), (300.5, "write", (Region(64, 64),)),
    ]  # fmt: skip
    point = probe.trace(requests)
    closed, hit = 10 + 19.375 + 12.5 + 1.25, 10 + 12.5 + 1.25
    assert point.mean_ns == pytest.approx((closed + hit) / 2, abs=0.7)
    assert point.achieved == pytest.approx(128 / (300.5 + 10 + 9.375 + 6.25 + 2.5), rel=0.02)


def test_the_faults_of_a_trace_are_told_by_line_all_at_once(probe: DramProbe, tmp_path: Path) -> None:
    file = tmp_path / "bad.trace"
    file.write_text("5 R 0 32\n6 X 0 32\nfoo\n4 R 0 32\n7 R -1 32\n8 W 0 0\nnan R 0 1\n9 R 0.5 1\n")
    with pytest.raises(UsageError) as caught:
        read_trace(str(file), probe.geometry, SLICE)
    assert str(caught.value).split("\n") == [
        f"{file}:2: the operation must be R or W, not 'X'.",
        f"{file}:3: a request must be four words, 'ns R|W address bytes', not 'foo'.",
        f"{file}:4: ns must not fall from request to request, not 4 after 5; sort the lines.",
        f"{file}:5: the address must be a whole number of at least 0, as 0x1f40, not '-1'.",
        f"{file}:6: bytes must be from 1 to 16777216, not 0.",
        f"{file}:7: ns must be a number of at least 0, as 12.5, not 'nan'.",
        f"{file}:8: the address must be a whole number of at least 0, as 0x1f40, not '0.5'.",
    ]
    file.write_text("\n".join(["foo"] * 25))
    with pytest.raises(UsageError) as caught:
        read_trace(str(file), probe.geometry, SLICE)
    assert str(caught.value).split("\n")[-2:] == [
        f"{file}:20: a request must be four words, 'ns R|W address bytes', not 'foo'.", "and 5 more",
    ]  # fmt: skip
    file.write_text("# nothing\n")
    with pytest.raises(UsageError) as caught:
        read_trace(str(file), probe.geometry, SLICE)
    assert str(caught.value) == (
        f"--trace must have at least one request, 'ns R|W address bytes' a line, but {file} has none."
    )


def test_a_request_of_a_trace_ends_inside_the_slice_and_every_fault_of_a_line_is_told(
    probe: DramProbe, tmp_path: Path
) -> None:
    file = tmp_path / "far.trace"
    file.write_text("0 R 0x7fffffe0 32\n0 R 0x7fffffe1 32\n0 W 0xffffffffffff 64\nx X -3 0\n")
    with pytest.raises(UsageError) as caught:
        read_trace(str(file), probe.geometry, SLICE)
    assert str(caught.value).split("\n") == [
        f"{file}:2: the address must be at most 0x7fffffe0 for 32 bytes of a slice of 2 GiB, not 0x7fffffe1.",
        f"{file}:3: the address must be at most 0x7fffffc0 for 64 bytes of a slice of 2 GiB, not 0xffffffffffff.",
        f"{file}:4: ns must be a number of at least 0, as 12.5, not 'x'.",
        f"{file}:4: the operation must be R or W, not 'X'.",
        f"{file}:4: the address must be a whole number of at least 0, as 0x1f40, not '-3'.",
        f"{file}:4: bytes must be from 1 to 16777216, not 0.",
    ]
    with pytest.raises(UsageError) as caught:  # a slice that is smaller than a request may be
        read_trace(str(file), probe.geometry, 16)
    assert str(caught.value).split("\n")[0] == f"{file}:1: bytes must be from 1 to 16, not 32."


@pytest.mark.parametrize("content", [b"\x7fELF\x00\x00\x01", b"0 R 0 32\n\xff\xfe", b"\x00" * 8])
def test_a_trace_that_is_no_text_is_refused(probe: DramProbe, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "binary.trace"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_trace(str(file), probe.geometry, SLICE)
    assert str(caught.value) == f"--trace must be a file that can be read, not {str(file)!r}: it is no text."


def test_what_a_trace_may_address_is_the_slice_of_the_machine(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 4 PEs with 8 GiB, and of a stack that was made smaller."""
    monkeypatch.chdir(tmp_path)
    Path("last.trace").write_text("0 R 0x7fffffe0 32\n10 R 0 32\n")
    command = ["probe", "--dram", "--topology", "tiny", "--trace", "last.trace"]
    assert main([*command, "--json"], plugins) == 0
    assert json.loads(capsys.readouterr().out)["points"][0]["offered"] == 6.4
    assert main([*command, "--set", "cube.hbm.capacity=4 GiB"], plugins) == 2
    assert capsys.readouterr().err == (
        "error: last.trace:1: the address must be at most 0x3fffffe0 for 32 bytes of a slice of 1 GiB, not "
        "0x7fffffe0.\n"
    )
