"""`kernbench calibrate`: what it prints, writes and refuses; the machine that it writes is one that runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernbench_builtin.calibrate import open_logs
from kernbench_core.calibration import LogOptions
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins
from kernbench_core.runs import configure

COPIES = "kind,bytes,time_us\nh2d,64,2.0\nh2d,1048576,40\nh2d,16777216,600\nd2h,16777216,620\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (path := tmp_path / "copies.csv").write_text(COPIES)
    return path


def told(plugins: Plugins, capsys: pytest.CaptureFixture[str], code: int, *words: object) -> tuple[str, str]:
    capsys.readouterr()
    assert main(["calibrate", *map(str, words)], plugins) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_rows_and_parameters_are_printed_and_the_machine_is_written(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    """The file is an overlay with what each value rests on, the same each time, and a machine as any other."""
    fitted = tmp_path / "fitted.yaml"
    out, _ = told(plugins, capsys, 0, log, "--topology", "tiny", "-o", fitted)
    lines = out.splitlines()
    assert lines[0].split() == ["row", "what", "measured", "simulated", "error"]
    assert lines[3].split()[1:7] == ["h2d", "16", "MiB", "600", "us", lines[3].split()[6]]
    assert lines[3].split()[-2].endswith("us*")  # larger than what is simulated
    assert [line.split()[0] for line in lines[7:9]] == ["dma-overhead", "pcie-bandwidth"]
    assert lines[-1] == f"written to {fitted}"
    first = fitted.read_text()
    assert first.startswith("# Fitted by kernbench calibrate to 4 rows of copies.csv.\n# Simulated on this machine ")
    assert "base: tiny\ntitle: fitted\n" in first
    assert "    bandwidth: " in first and "  # pcie-bandwidth, +- " in first
    told(plugins, capsys, 0, log, "--topology", "tiny", "-o", fitted, "--force")
    assert fitted.read_text() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copies.csv", "fitted.yaml"]
    capsys.readouterr()
    assert main(["topology", "validate", str(fitted)], plugins) == 0
    assert main(["run", "vector-add", "--topology", str(fitted), "-p", "n=256"], plugins) == 0


def test_json_has_all_of_it(plugins: Plugins, capsys: pytest.CaptureFixture[str], log: Path) -> None:
    out, _ = told(plugins, capsys, 0, log, "--topology", "tiny", "--json", "--set", "cube.pes=2")
    found = json.loads(out)
    assert found["schema"] == "kernbench.calibrate/1" and found["logs"] == [str(log)] and found["output"] is None
    overhead, bandwidth = found["parameters"]
    assert (overhead["name"], bandwidth["name"]) == ("dma-overhead", "pcie-bandwidth")
    assert found["sets"] == ["cube.pes=2", overhead["setting"], bandwidth["setting"]]
    assert overhead["low"] <= overhead["value"] <= overhead["high"] and overhead["limit"] is None
    for row, line in zip(found["rows"], range(2, 6), strict=True):
        assert row["place"] == f"{log}:{line}"
        assert row["error"] == pytest.approx(row["simulated_ns"] / row["measured_ns"] - 1)
    assert found["mean_error"] == pytest.approx(sum(abs(row["error"]) for row in found["rows"]) / 4)


def test_a_base_that_is_a_file_is_named_from_where_the_overlay_stands(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    """So that the overlay is found from anywhere; what was set stands in it."""
    (base := tmp_path / "mine.yaml").write_text("base: tiny\n")
    (folder := tmp_path / "deeper").mkdir()
    fitted = folder / "fitted.yaml"
    told(plugins, capsys, 0, log, "--topology", base, "--set", "cube.pes=2", "-o", fitted)
    assert "base: ../mine.yaml\n" in fitted.read_text() and "cube:\n  pes: 2\n" in fitted.read_text()
    assert main(["topology", "validate", str(fitted)], plugins) == 0


@pytest.mark.parametrize("stem", ["fitted", "null", "2026", "a: b #"])
def test_whatever_was_set_and_however_it_is_called_the_file_is_the_machine_that_was_fitted(
    stem: str, plugins: Plugins, capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    """A mapping that was set holds the key that is fitted, and a list stands twice; `--json` tells the settings."""
    sets = [
        "components.host.params={overhead: 300 ns}",
        "overrides=[{match: sip0.cube0.pe0.pe_cpu, params: {dispatch_overhead: 5 ns}}]",
        "overrides=[{match: sip0.cube0.pe1.pe_cpu, params: {dispatch_overhead: 7 ns}}]",
    ]
    fitted = tmp_path / f"{stem}.yaml"
    out, _ = told(
        plugins, capsys, 0, log, "--topology", "tiny", *(f"--set={one}" for one in sets), "--json", "-o", fitted
    )
    of_file = configure(plugins, str(fitted), None, ()).data
    of_settings = configure(plugins, "tiny", None, json.loads(out)["sets"]).data
    assert of_file["title"] == stem
    assert {**of_file, "title": None} == {**of_settings, "title": None}


def test_a_value_on_its_limit_is_told(plugins: Plugins, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In the table, in a sentence and in the file."""
    (log := tmp_path / "slow.csv").write_text("kind,bytes,time_us\nh2d,64,16\nh2d,65536,18\nh2d,1048576,45\n")
    fitted = tmp_path / "fitted.yaml"
    out, _ = told(plugins, capsys, 0, log, "--topology", "tiny", "-o", fitted)
    assert "dma-overhead lies on its high limit: it may lie beyond." in out
    assert "# dma-overhead, on the high limit of 0 ns to 13000 ns; it may lie beyond" in fitted.read_text()


def test_a_fit_that_explains_nothing_is_refused_and_not_written(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Times in ms in a column of us; the rows are still shown, and what is there stays."""
    rows = "h2d,64,0.0024\nh2d,65536,0.0041\nh2d,1048576,0.0315\nd2h,1048576,0.0309\n"
    (log := tmp_path / "wrong.csv").write_text("kind,bytes,time_us\n" + rows)
    (fitted := tmp_path / "fitted.yaml").write_text("mine")
    out, err = told(plugins, capsys, 1, log, "--topology", "tiny", "-o", fitted, "--force")
    sentence = (
        "a fit must be within 5% of its rows on average where every parameter lies on a limit, not 33,948% off "
        "(dma-overhead on its low limit, pcie-bandwidth on its high limit); times 1,000 times as long would fit: check "
        "their unit."
    )
    assert err == f"error: {sentence} Nothing was written.\n"
    assert out.startswith("row ") and "written to" not in out and fitted.read_text() == "mine"
    out, err = told(plugins, capsys, 1, log, "--topology", "tiny", "--json")
    assert json.loads(out)["refusal"] == sentence and err == f"error: {sentence}\n"
    log.write_text("kind,bytes,time_ms\n" + rows)
    out, err = told(plugins, capsys, 0, log, "--topology", "tiny", "--json")
    assert json.loads(out)["refusal"] is None and err == ""


def test_times_far_beyond_the_limits_are_told_as_such(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Not as rows that would not tell: ms in a column of us, before anything is simulated."""
    (log := tmp_path / "ms.csv").write_text("kind,bytes,time_us\nh2d,64,2400\nh2d,65536,4100\nh2d,1048576,31500\n")
    _, err = told(plugins, capsys, 2, log, "--topology", "tiny")
    assert err == (
        "error: parameters must lie within their limits, but these rows need dma-overhead at 2.373e+06 ns, "
        "beyond 0 ns to 13000 ns and pcie-bandwidth at 0.03976 GB/s, beyond 0.25 GB/s to 118.2 GB/s; times 1,000 "
        "times as short would fit: check their unit.\n"
    )


def test_nothing_is_written_where_a_file_is_or_anything_fails(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    """And nothing is simulated first."""
    (there := tmp_path / "fitted.yaml").write_text("mine")
    _, err = told(plugins, capsys, 2, log, "-o", there)
    assert err == (
        f"error: option --output must name a file that is not there yet, not {str(there)!r}; or give --force.\n"
    )
    assert there.read_text() == "mine"
    measured = log.read_bytes()
    _, err = told(plugins, capsys, 2, log, "-o", log, "--force")
    assert err == f"error: option --output must name a file of its own, not {str(log)!r}, which is one of the logs.\n"
    assert log.read_bytes() == measured
    _, err = told(plugins, capsys, 2, log, "-o", log / "fitted.yaml")
    assert err == f"error: option --output must be in a folder, and {str(log)!r} is none; give another one.\n"
    _, err = told(plugins, capsys, 2, log, "-o", tmp_path, "--force")
    assert err.startswith("error: option --output must name a file that can be written, not a folder: ")
    log.write_text("kind,bytes,time_us\nh2d,64,2.0\n")
    told(plugins, capsys, 2, log, "-o", there, "--force")
    assert there.read_text() == "mine" and len(list(tmp_path.iterdir())) == 2


def test_all_faults_of_all_logs_are_told_at_once(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What is in no known format is told with all formats, and with the line that belongs to none."""
    (first := tmp_path / "a.csv").write_text("kind,bytes,time_us\nh2d,0,2\nup,1,2\n")
    (second := tmp_path / "b.txt").write_text("# notes\n\nping 10.0.0.1: 64 bytes, 0.3 ms\n")
    third = tmp_path / "c.log"
    _, err = told(plugins, capsys, 3, first, second, third)
    assert err.splitlines() == [
        f"{first}:2: bytes must be a positive integer, not '0'.",
        f"{first}:3: kind must be one of h2d, d2h, d2d, not 'up'.",
        f"{second}:3: a log must be in a known format (collectives, a CSV of collectives with the columns collective, "
        "ranks, bytes and time; copies, a CSV of copies with the columns bytes, time and kind (h2d, d2h, d2d); gemm, a "
        "CSV of matrix products (M x K by K x N) with the columns M, N, K, dtype and time; memory, a CSV of memory "
        "accesses with the columns pattern (row_hit, row_closed, row_conflict, stream), bytes and time; nccl, "
        "nccl-tests' text output, with the header of its table), and this one begins with 'ping 10.0.0.1: 64 bytes, "
        "0.3 ms'; name the format with --format to see what is wrong with it.",
        f"{third}: a log must be a file that can be read: No such file or directory.",
    ]
    _, err = told(plugins, capsys, 3, second, "--format", "copies")
    assert err.splitlines()[0] == (
        f"{second}:3: a column kind must be there, not only ping 10.0.0.1: 64 bytes, 0.3 ms; add it."
    )


@pytest.mark.parametrize(("words", "sentence"), [
    ([], "kernbench calibrate must be given at least one LOG, or --check NAME; see --help."),
    (["LOG", "--format", "copy"],
     "option --format must be one of collectives, copies, gemm, memory, nccl, not 'copy'. Did you mean 'copies'?"),
    (["LOG", "--fit", "dma"],
     "option --fit must be one of dma-overhead, pcie-bandwidth, which these logs cover, not 'dma'."),
    (["LOG", "--simulate-to", "1 B"], "option --simulate-to must be a size of at least 4 B, not '1 B'."),
    (["LOG", "--simulate-to", "far"], "option --simulate-to must be a positive size, not 'far'."),
    (["LOG", "--ranks", "1"], "option --ranks must be an integer of at least 2, not '1'."),
    (["LOG", "--check", "u280_hbm"], "option --check must be given without a LOG; leave one of them out."),
    (["--check", "u280"],
     "option --check must be one of a100_node, tpu7x_slice, u280_hbm, not 'u280'. Did you mean 'u280_hbm'?"),
])  # fmt: skip
def test_words_that_do_not_fit_are_refused(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], log: Path, words: list[str], sentence: str
) -> None:
    _, err = told(plugins, capsys, 2, *(log if word == "LOG" else word for word in words))
    assert err == f"error: {sentence}\n"


def test_what_the_fitted_machine_warns_of_is_told_once(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Not what those did that were tried on the way."""
    (log := tmp_path / "a.csv").write_text(
        "collective,ranks,bytes,time\nall_reduce,2,1024,1.7 us\nall_reduce,2,16384,2.5 us\nall_reduce,2,65536,5.1 us\n"
    )
    narrow = ("--set", "sip.noc.bandwidth=20 GB/s", "--set", "cube.pes=1", "--fit", "link-latency")
    _, err = told(plugins, capsys, 0, log, "--topology", "tiny", "--algo", "ring", *narrow)
    assert err.count("warning: scale-up link sip0.io0.link_sip1 of 100 GB/s should have an on-die path") == 1


def test_only_what_is_named_is_fitted(plugins: Plugins, capsys: pytest.CaptureFixture[str], log: Path) -> None:
    """The other parameters stay as the machine has them."""
    out, _ = told(plugins, capsys, 0, log, "--topology", "tiny", "--fit", "pcie-bandwidth", "--json")
    assert [one["name"] for one in json.loads(out)["parameters"]] == ["pcie-bandwidth"]


def test_a_large_file_is_no_log(plugins: Plugins, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (big := tmp_path / "big.log").write_bytes(b"\n" * ((4 << 20) + 1))
    _, err = told(plugins, capsys, 3, big)
    assert err == f"{big}: a log must be at most 4 MiB, not 4,194,305 B; give a part of it.\n"


@pytest.mark.parametrize(
    "data", [b"\x7fELF\x02\x01\x01\0\0" + b"\x1b[2J" * 9, bytes(range(128, 256)) * 4, b"\x01\x02\x03"]
)
@pytest.mark.parametrize("more", [[], ["--format", "copies"]])
def test_a_binary_file_is_told_as_such_and_not_shown(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], tmp_path: Path, data: bytes, more: list[str]
) -> None:
    (log := tmp_path / "a.out").write_bytes(data)
    _, err = told(plugins, capsys, 3, log, *more)
    assert err == f"{log}: a log must be text, not binary data; give what was printed, or a CSV of it.\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_text_is_read_as_a_shell_wrote_it(plugins: Plugins, tmp_path: Path, encoding: str) -> None:
    """With or without a mark; what cannot be read of a remark does not matter."""
    (log := tmp_path / "a.csv").write_text("# gemessen für mich\n" + COPIES, encoding=encoding)
    assert [row.ns for row in open_logs([log], plugins, LogOptions()).rows] == [2e3, 40e3, 600e3, 620e3]


def test_thousands_with_commas_are_hinted_at_without(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], log: Path
) -> None:
    _, err = told(plugins, capsys, 2, log, "--simulate-to", "1,048,576 B")
    assert err == "error: option --simulate-to must be a positive size, not '1,048,576 B'. Did you mean '1048576 B'?\n"
