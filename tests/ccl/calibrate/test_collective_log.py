"""Links are found again from the table that `kernbench ccl` prints of a machine that is known."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kernbench_builtin.calibrate import Calibrated, calibrate, open_logs
from kernbench_ccl.catalogue import Algorithm
from kernbench_core.calibration import LogOptions, MachineChoice
from kernbench_core.cli import main
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from tests.ccl.calibrate.printed_tables import SMALL, printed


def fitted(plugins: Plugins, log: Path, *chosen: str, **options: object) -> Calibrated:
    given = LogOptions(**options)  # type: ignore[arg-type]
    return calibrate(open_logs([log], plugins, given), MachineChoice("tiny", SMALL), chosen)


@settings(max_examples=4, phases=[Phase.generate])
@given(st.floats(5, 90), st.integers(100, 4000), st.sampled_from([("all_reduce", 3), ("all_gather", 4)]))
def test_a_link_is_found_again_from_its_own_table(
    plugins: Plugins, tmp_path_factory: pytest.TempPathFactory, bandwidth: float, latency: int, what: tuple[str, int]
) -> None:
    """Within half a per cent, as the table has two decimals of a us, or within twice the error that the fit states.

    Five of a hundred fits are beyond that error.

    What stands above the table says what it is.
    """
    folder = tmp_path_factory.mktemp("log")
    (config := folder / "ccl.yaml").write_text("defaults: {pipeline: off}\n")
    (log := folder / "a.log").write_text(table(plugins, *what, bandwidth, latency, "--config", str(config)))
    found = fitted(plugins, log, algo="ring", config=str(config))
    values = {one.unknown.name: (one.value, max(5e-3, 2 * (one.error or 0))) for one in found.values}
    (rate, rate_off), (delay, delay_off) = values["link-bandwidth"], values["link-latency"]
    assert rate == pytest.approx(bandwidth, rel=rate_off) and rate_off < 0.5
    assert delay == pytest.approx(latency, rel=delay_off, abs=5)
    assert found.mean_error < 3e-3


@pytest.mark.parametrize(("bandwidth", "latency"), [(26.4, 969), (12.8, 1578), (86.3, 3982)])
def test_pipelined_it_is_found_as_well_as_windows_let_it(
    plugins: Plugins, tmp_path: Path, bandwidth: float, latency: int
) -> None:
    """What is under way is counted in messages, by bandwidth and latency: times have small steps in both."""
    (log := tmp_path / "a.log").write_text(table(plugins, "all_reduce", 3, bandwidth, latency))
    found = fitted(plugins, log, algo="ring")
    assert [one.value for one in found.values] == [
        pytest.approx(bandwidth, rel=0.02), pytest.approx(latency, rel=0.01),
    ]  # fmt: skip
    assert found.mean_error < 5e-3


def table(plugins: Plugins, collective: str, ranks: int, bandwidth: float, latency: int, *more: str) -> str:
    """Return the table of a ring over such links, from 4 KiB to 1 MiB."""
    sizes = ("--algo", "ring", "-d", "f32", "-b", "4K", "-e", "1M", "-f", "16")
    links = ("--link-bw", f"{bandwidth} GB/s", "--link-latency", f"{latency} ns")
    return printed(plugins, collective, ranks, *sizes, *links, *more)


def test_what_the_machine_itself_hides_is_refused(plugins: Plugins, tmp_path: Path) -> None:
    """A way to the memory that is narrower than any link."""
    (log := tmp_path / "a.csv").write_text(
        "collective,ranks,bytes,time\nall_reduce,2,65536,45 us\nall_reduce,2,1 MiB,400 us\nall_reduce,2,4 MiB,1.6 ms\n"
    )
    narrow = ("cube.hbm.link.bandwidth=1 GB/s", "cube.pes=1", "components.hbm_ctrl.params.channels=16")
    with pytest.raises(UsageError) as caught:
        calibrate(open_logs([log], plugins, LogOptions(algo="ring")), MachineChoice("tiny", narrow))
    assert str(caught.value) == (
        "link-bandwidth and link-latency cannot be fitted on this machine, because another resource limits these "
        "rows; make that one faster (kernbench ccl --wide and kernbench run --explain name it)."
    )


def test_noise_is_told_by_the_errors_and_the_residuals(plugins: Plugins, tmp_path: Path) -> None:
    """Of 3 %, which every time got by hand."""
    options = ("--algo", "ring", "-d", "f32", "-b", "1K", "-e", "512K", "-f", "8", "--link-bw", "20 GB/s")
    lines = []
    noise = np.random.default_rng(7).normal(1, 0.03, 100).tolist()
    for line in printed(plugins, "all_reduce", 4, *options).splitlines():
        words = line.split()
        if words and words[0].isdigit():
            for at in (5, 9):
                words[at] = f"{float(words[at]) * noise.pop():.2f}"
                words[at + 1] = f"{int(words[0]) / float(words[at]) / 1e3:.2f}"
                words[at + 2] = f"{1.5 * int(words[0]) / float(words[at]) / 1e3:.2f}"
        lines.append(" ".join(words))
    (log := tmp_path / "noisy.log").write_text("\n".join(lines))
    found = fitted(plugins, log, collective="all_reduce", ranks=4, algo="ring")
    bandwidth, latency = found.values
    assert bandwidth.value == pytest.approx(20, rel=0.1) and latency.value == pytest.approx(500, rel=0.1)
    assert bandwidth.error is not None and 0.01 < bandwidth.error < 0.15
    assert 0.01 < found.mean_error < 0.05


def test_rows_beyond_what_is_simulated_are_continued_and_say_so(plugins: Plugins, tmp_path: Path) -> None:
    """As far off as a simulation of all of it is from the line: two per cent at four times the size."""
    options = ("--algo", "ring", "-d", "f32", "-b", "8K", "-e", "2M", "-f", "16", "--link-bw", "30 GB/s")
    (log := tmp_path / "a.log").write_text(printed(plugins, "all_reduce", 3, *options))
    found = fitted(plugins, log, collective="all_reduce", ranks=3, algo="ring", simulate_to=512 << 10)
    assert [row.simulated.extended for row in found.rows] == [False] * 4 + [True] * 2
    assert all(abs(row.error) < 0.02 for row in found.rows)


def test_one_size_identifies_no_link(plugins: Plugins, tmp_path: Path) -> None:
    """In place or not: latency and bandwidth are one sum."""
    row = "65536 16384 float sum -1 10 6.55 9.83 0 11 5.96 8.94 0\n"
    header = "size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    (log := tmp_path / "a.log").write_text(header + row)
    with pytest.raises(UsageError) as caught:
        fitted(plugins, log, collective="all_reduce", ranks=4, algo="ring")
    assert str(caught.value) == (
        "link-bandwidth and link-latency are not determined by these rows: very different values fit equally well; "
        "measure for link-bandwidth also large vectors, of many MiB a rank, where bandwidth decides; measure for "
        "link-latency also small vectors, of some KiB, where latency decides, or keep the machine's value of one of "
        "them by naming the others with --fit."
    )
    only = fitted(plugins, log, "link-latency", collective="all_reduce", ranks=4, algo="ring")
    assert [one.unknown.name for one in only.values] == ["link-latency"]
    assert max(abs(row.error) for row in only.rows) == pytest.approx(0.05, abs=0.01)


def test_an_algorithm_without_a_closed_form_is_refused(plugins: Plugins, tmp_path: Path) -> None:
    text = "collective,ranks,bytes,time\nall_gather,4,64,9 us\nall_gather,4,1e6,90 us\n"
    (log := tmp_path / "a.csv").write_text(text)
    (own := tmp_path / "own_all_gather.py").write_text(
        "'''Ring without a form.'''\n"
        "from kernbench_ccl.algorithms.ring_all_gather import *\n"
        "from kernbench_ccl.algorithms.ring_all_gather import COLLECTIVE, kernel\n"
        "def formula(cost):\n    return None\n"
    )
    with pytest.raises(UsageError) as caught:
        fitted(plugins, log, algo=str(own))
    assert str(caught.value).endswith(
        "must have a closed form to be fitted, and has none: its module has none for this on ring; "
        "choose another with --algo."
    )


def test_the_form_of_another_points_the_way_where_autos_choice_has_none(plugins: Plugins, tmp_path: Path) -> None:
    """The fastest of those with a form, here one of fewer steps than the six of a ring."""
    (log := tmp_path / "a.csv").write_text("collective,ranks,bytes,time\nall_reduce,4,4096,9 us\n")

    def slopes(algo: str | None) -> list[dict[str, float]]:
        ((calibrator, rows),) = open_logs([log], plugins, LogOptions(algo=algo)).groups
        values = {"link-bandwidth": 100.0, "link-latency": 5000.0}
        return [dict(one) for one in calibrator.slopes(rows, MachineChoice("tiny", SMALL), values)]

    with pytest.raises(UsageError, match=r"^ccl\.direct_all_reduce must have a closed form"):
        slopes("direct")
    (ring,) = slopes("ring")
    (auto,) = slopes(None)
    assert ring["link-latency"] == pytest.approx(6)
    assert 0 < auto["link-latency"] < ring["link-latency"]


def test_what_auto_chooses_is_fitted_without_a_form_of_its_own(plugins: Plugins, tmp_path: Path) -> None:
    """direct on a ring has none; another one points the way, and what is simulated is still what auto runs."""
    links = ("--link-bw", "30 GB/s", "--link-latency", "800 ns")
    text = printed(plugins, "all_reduce", 4, "-d", "f32", "-b", "4K", "-e", "256K", "-f", "64", *links)
    assert "up to 4 KiB: ccl.direct_all_reduce" in text
    (log := tmp_path / "a.log").write_text(text)
    found = fitted(plugins, log)
    assert [one.value for one in found.values] == [pytest.approx(30, rel=0.02), pytest.approx(800, rel=0.02)]
    assert found.mean_error < 5e-3


def test_where_no_algorithm_has_a_form_auto_is_named(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (log := tmp_path / "a.csv").write_text(
        "collective,ranks,bytes,time\nall_reduce,4,64,9 us\nall_reduce,4,1e6,90 us\n"
    )
    monkeypatch.setattr(Algorithm, "closed_form", lambda self, cost: "nobody knows")
    with pytest.raises(UsageError) as caught:
        fitted(plugins, log)
    assert str(caught.value) == (
        "ccl.direct_all_reduce, which auto chose, must have a closed form to be fitted, and has none: nobody knows; "
        "choose another with --algo."
    )


def test_two_large_sizes_do_not_identify_a_pipelined_ring(plugins: Plugins, tmp_path: Path) -> None:
    """Data hide latency up to where a window binds, and there bandwidth is as little told."""
    (log := tmp_path / "a.csv").write_text(
        "collective,ranks,bytes,time_us\nall_reduce,4,4 MiB,180\nall_reduce,4,8 MiB,345\n"
    )
    with pytest.raises(UsageError) as caught:
        calibrate(open_logs([log], plugins, LogOptions(algo="ring", simulate_to=1 << 20)), MachineChoice("tiny"))
    assert str(caught.value).startswith("link-bandwidth is not determined by these rows: very different values fit")


def test_a_fitted_file_gives_the_rows_that_were_measured(plugins: Plugins, tmp_path: Path) -> None:
    """By the command that simulates them, within a digit of what is printed; its table is a log of the same again."""
    (log := tmp_path / "a.log").write_text(table(plugins, "all_reduce", 4, 42.0, 777))
    fitted_file = tmp_path / "fitted.yaml"
    sets = [word for one in SMALL for word in ("--set", one)]
    with redirect_stdout(io.StringIO()) as told:
        assert main(["calibrate", str(log), "--topology", "tiny", *sets, "-o", str(fitted_file)], plugins) == 0
    ran = "all_reduce of 4 ranks, 4 KiB to 1 MiB, ran by ccl.ring_all_reduce pipelined (kernbench ccl --algo "
    assert f"{ran}ccl.ring_all_reduce)." in told.getvalue().replace("\n", " ")
    assert (
        f"\n# {ran}ccl.ring_all_reduce).\n"
        "# Give later commands the same options: with others these rows take other times.\nbase: tiny\n"
    ) in fitted_file.read_text()
    sizes = ("--algo", "ring", "-d", "f32", "-b", "4K", "-e", "1M", "-f", "16", "--ranks", "4", "--no-check")
    with redirect_stdout(io.StringIO()) as out:
        assert main(["ccl", "all_reduce", "--topology", str(fitted_file), *sizes], plugins) == 0
    (again := tmp_path / "b.log").write_text(out.getvalue())
    first, second = (open_logs([one], plugins, LogOptions()).rows for one in (log, again))
    assert [row.label for row in second] == [row.label for row in first]
    assert [row.ns for row in second] == pytest.approx([row.ns for row in first], rel=0.01)


def test_how_rows_were_simulated_is_told_with_the_options_that_do_the_same(plugins: Plugins, tmp_path: Path) -> None:
    """The algorithm that was named or that auto chose, for each stretch of sizes; step by step where only that fits."""
    (log := tmp_path / "a.csv").write_text(
        "collective,ranks,bytes,time\nall_reduce,4,64,9 us\nall_reduce,4,1 KiB,9 us\nall_reduce,4,4 MiB,90 us\n"
    )
    (config := tmp_path / "my ccl.yaml").write_text("defaults: {pipeline: off}\n")

    def ran(**options: object) -> list[str]:
        return open_logs([log], plugins, LogOptions(**options)).ran(MachineChoice("tiny", SMALL))  # type: ignore[arg-type]

    assert ran(algo="ring", pipeline=False) == [
        "all_reduce of 4 ranks, 64 B to 4 MiB, ran by ccl.ring_all_reduce step by step "
        "(kernbench ccl --algo ring --pipeline off)."
    ]
    assert ran() == [
        "all_reduce of 4 ranks, 64 B to 1 KiB, ran by ccl.direct_all_reduce, which auto chose, pipelined "
        "(kernbench ccl --algo ccl.direct_all_reduce).",
        "all_reduce of 4 ranks, 4 MiB, ran by ccl.ring_bidirectional_all_reduce, which auto chose, pipelined "
        "(kernbench ccl --algo ccl.ring_bidirectional_all_reduce).",
    ]
    assert ran(algo="ring", config=str(config)) == [
        "all_reduce of 4 ranks, 64 B to 4 MiB, ran by ccl.ring_all_reduce step by step "
        f"(kernbench ccl --algo ring --config '{config}')."
    ]
