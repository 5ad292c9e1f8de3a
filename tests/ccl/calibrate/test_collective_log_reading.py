"""What a table of nccl-tests says of itself is read, needs to be told, or is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernbench_builtin.calibrate import open_logs
from kernbench_core.calibration import LogOptions, MachineChoice
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.plugins import Plugins
from tests.ccl.calibrate.printed_tables import SMALL, printed

TABLE = "size count type redop root time algbw busbw #wrong\n"


def problems(plugins: Plugins, log: Path, text: str, **options: object) -> tuple[str, ...]:
    log.write_text(text)
    with pytest.raises(ConfigError) as caught:
        open_logs([log], plugins, LogOptions(**options))  # type: ignore[arg-type]
    return caught.value.problems


def test_a_table_without_its_collective_or_ranks_needs_them_told(plugins: Plugins, tmp_path: Path) -> None:
    """At the line of its header, both at once."""
    log = tmp_path / "a.log"
    text = TABLE + "1024 256 float sum -1 10 0 0 0\n"
    assert problems(plugins, log, text) == (
        f"{log}:1: the collective must be told, as nothing above the table does; give --collective.",
        f"{log}:1: the number of ranks must be told, as nothing above the table does; give --ranks.",
    )
    kinds = "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, scatter, send_recv"
    found = problems(plugins, log, "hypercube_perf\n" + text, ranks=4)
    assert found[0].startswith(f"{log}:2: the collective must be one of ") and found[0].endswith(
        ", not 'hypercube'; give --collective."
    )
    assert set(kinds.split(", ")) <= set(found[0].partition(" one of ")[2].partition(", not ")[0].split(", "))


def test_a_reduction_that_the_collective_cannot_have_is_refused(plugins: Plugins, tmp_path: Path) -> None:
    """With whatever else is wrong, line by line."""
    log = tmp_path / "a.log"
    rows = "1024 256 float none -1 10 0 0 0\n1024 256 float sum -1 10 7 0 0\n"
    assert problems(plugins, log, TABLE + rows, collective="all_reduce") == (
        f"{log}:1: the number of ranks must be told, as nothing above the table does; give --ranks.",
        f"{log}:3: algbw must be size / time, which is 0.1024 GB/s, not '7'; restore the line, or the units above it.",
    )
    told = "name the collective that was measured with --collective."
    assert problems(plugins, log, TABLE + rows, collective="all_reduce", ranks=2) == (
        f"{log}:2: redop must be a reduction for all_reduce, not 'none'; {told}",
        f"{log}:3: algbw must be size / time, which is 0.1024 GB/s, not '7'; restore the line, or the units above it.",
    )
    sums = TABLE + "1024 256 float sum -1 10 0 0 0\n"
    assert problems(plugins, log, sums, collective="all_gather", ranks=2) == (
        f"{log}:2: redop must be none for all_gather, not 'sum'; {told}",
    )


def test_nccl_tests_own_spelling_is_known(plugins: Plugins, tmp_path: Path) -> None:
    (log := tmp_path / "a.log").write_text("alltoall_perf\n" + TABLE + "1024 256 float none -1 10 0 0 0\n")
    (row,) = open_logs([log], plugins, LogOptions(ranks=4)).rows
    assert (row.place, row.label, row.ns) == (f"{log}:3", "all_to_all of 4 ranks, 1 KiB", 10e3)


def test_a_csv_of_collectives_is_read_too(plugins: Plugins, tmp_path: Path) -> None:
    """Each row has its own collective and ranks."""
    text = "collective,ranks,bytes,time\nall_gather,4,1 MiB,20 us\nallreduce,2,64,3 us\n"
    (log := tmp_path / "a.csv").write_text(text)
    logs = open_logs([log], plugins, LogOptions())
    assert [row.label for row in logs.rows] == ["all_gather of 4 ranks, 1 MiB", "all_reduce of 2 ranks, 64 B"]
    assert logs.settings() == ("system.sips=4",)
    kinds = "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, scatter, send_recv"
    assert problems(plugins, log, "collective,ranks,bytes,time\nfly,4,0,1 ns\nbarrier,1,1,1\n") == (
        f"{log}:2: collective must be one of {kinds}, not 'fly'.",
        f"{log}:2: bytes must be a positive integer, not '0'.",
        f"{log}:3: collective must be one of {kinds}, not 'barrier'.",
        f"{log}:3: ranks must be an integer of at least 2, not '1': one rank has nobody to communicate with.",
        f"{log}:3: time must be a time with its unit, not '1'; add it, or call the column one of time_ns, time_us, "
        "time_ms, time_s.",
    )


@pytest.mark.parametrize(("collective", "ranks", "busbw", "fits"), [
    ("all_reduce", 4, "150.00", True), ("all_reduce", 4, "149.99", False), ("all_reduce", 8, "150.00", False),
    ("all_reduce", 8, "175.00", True), ("all_reduce", 4, "N/A", True), ("reduce_scatter", 4, "75.00", True),
    ("reduce_scatter", 4, "150.00", False), ("reduce", 4, "100.0", True),
])  # fmt: skip
def test_the_bus_bandwidth_tells_of_the_ranks_and_the_collective(
    plugins: Plugins, tmp_path: Path, collective: str, ranks: int, busbw: str, fits: bool
) -> None:
    """2 (n - 1) / n of the other for all_reduce, (n - 1) / n for half of one, 1 from or to one root."""
    log = tmp_path / "a.log"
    text = TABLE + f"1048576 262144 float sum -1 10.48576 100.00 {busbw} 0\n"
    if fits:
        log.write_text(text)
        assert len(open_logs([log], plugins, LogOptions(collective=collective, ranks=ranks)).rows) == 1
    else:
        right = {"all_reduce": 200 * (ranks - 1) / ranks, "reduce_scatter": 75}[collective]
        assert problems(plugins, log, text, collective=collective, ranks=ranks) == (
            f"{log}:2: busbw must be that of {collective} of {ranks} ranks, {right:.4g} GB/s, not {busbw!r}; check "
            "what stands above the table, --collective and --ranks.",
        )


def test_what_a_log_says_of_itself_is_not_overruled(plugins: Plugins, tmp_path: Path) -> None:
    """By another collective or number of ranks; the same may be told again, as nccl-tests spells it too."""
    log = tmp_path / "a.log"
    rows = "1024 256 float sum -1 10 0 0 0\n"
    text = "all_gather_perf\n# Rank 3 Group 0 Pid 9 on x device 3\n" + TABLE + rows.replace("sum", "none")
    assert problems(plugins, log, text, collective="all_to_all", ranks=8) == (
        f"{log}:3: the collective must be that of the log, all_gather, not all_to_all; leave --collective out.",
        f"{log}:3: the number of ranks must be that of the log, 4, not 8; leave --ranks out.",
    )
    assert problems(plugins, log, "# Rank 0 Group 0 Pid 9 on x device 0\n" + TABLE + rows, collective="all_reduce") == (
        f"{log}:2: the number of ranks must be at least 2, not 1: one rank has nobody to communicate with; leave the "
        "table out.",
    )
    log.write_text(text)
    assert len(open_logs([log], plugins, LogOptions(collective="allgather", ranks=4)).rows) == 1
    log.write_text("collective,ranks,bytes,time\nall_gather,4,1 MiB,20 us\n")
    assert problems(plugins, log, log.read_text(), ranks=2) == (
        f"{log}:2: the number of ranks must be that of the log, 4, not 2; leave --ranks out.",
    )


def own_table(*how: str, network: str = "ring", about: str = "4 ranks, the SIPs of tiny") -> str:
    """Return a table of two sizes as `kernbench ccl` prints it, with lines of how it was run."""
    links = f"# {network}, 100 GB/s and 500 ns a link and direction"
    rows = "4096 1024 f32 sum -1 4.43 0.92 N/A N/A\n1048576 262144 f32 sum -1 20.5 51.15 N/A N/A\n"
    return "\n".join([f"# all_reduce: {about}", links, "# f32, sum", *(f"# {one}" for one in how), "#", TABLE]) + rows


RING = "ccl.ring_all_reduce, pipelined, messages of 16 KiB"


def asked(plugins: Plugins, log: Path, text: str, *sets: str, **options: object) -> list[dict[str, float]]:
    """Return how steep the forms are that a log and the options ask for."""
    log.write_text(text)
    ((calibrator, rows),) = open_logs([log], plugins, LogOptions(**options)).groups  # type: ignore[arg-type]
    values = {"link-bandwidth": 100.0, "link-latency": 5000.0}
    return [dict(one) for one in calibrator.slopes(rows, MachineChoice("tiny", (*SMALL, *sets)), values)]


def test_the_algorithm_that_a_log_names_is_the_one_that_is_fitted(plugins: Plugins, tmp_path: Path) -> None:
    """Size by size, where nobody asks for another; a ring of four has six steps."""
    log = tmp_path / "a.log"
    (one, two) = asked(plugins, log, own_table(RING))
    assert one["link-latency"] == pytest.approx(6) and two["link-latency"] == pytest.approx(6)
    both = own_table(
        "auto (by measurement):", "  up to 4 KiB: " + RING.replace("ring", "halving_doubling"), f"  above: {RING}"
    )
    (small, large) = open_logs([_written(log, both)], plugins, LogOptions()).rows
    assert [row.case.ran.algorithm for row in (small, large)] == [  # type: ignore[attr-defined]
        "ccl.halving_doubling_all_reduce", "ccl.ring_all_reduce",
    ]  # fmt: skip
    assert asked(plugins, log, own_table(RING), algo="ring") == [one, two]


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(("text", "sets", "options", "sentence"), [
    (own_table(RING, network="mesh_2d of 4 x 2"), (), {},
     "the network must be that of the log, a mesh_2d of 4 x 2, not a ring, as this machine's is; give --set "
     "system.network.topology=mesh_2d --set system.network.width=4 --set system.network.height=2, or the --topology "
     "that was measured."),
    (own_table(RING), ("system.network.topology=switch",), {},
     "the network must be that of the log, a ring, not a switch, as this machine's is; give --set "
     "system.network.topology=ring, or the --topology that was measured."),
    (own_table(RING), (), {"algo": "direct"},
     "the algorithm must be that of the log, ccl.ring_all_reduce, not ccl.direct_all_reduce; give --algo "
     "ccl.ring_all_reduce, or leave it out."),
    (own_table(RING.replace("pipelined", "step by step")), (), {},
     "ccl.ring_all_reduce must run step by step, as in the log, not pipelined; give a --config with 'defaults: "
     "{pipeline: off}'."),
])  # fmt: skip
def test_a_log_of_another_network_or_algorithm_is_refused(
    plugins: Plugins, tmp_path: Path, text: str, sets: tuple[str, ...], options: dict[str, str], sentence: str
) -> None:
    """At the line that begins its heading, with what to give."""
    log = tmp_path / "a.log"
    with pytest.raises(UsageError) as caught:
        asked(plugins, log, text, *sets, **options)
    assert str(caught.value) == f"{log}:1: {sentence}"


def test_tables_that_no_machine_takes_are_refused_with_all_faults(plugins: Plugins, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    text = own_table("fast: " + RING, about="16 ranks, the PEs of tiny, 4 SIPs, idealised")
    assert problems(plugins, log, text + own_table("me.own, pipelined, messages of 16 KiB")) == (
        f"{log}:1: the vectors of a table to fit must be those of SIPs, not of PEs; measure by SIPs.",
        f"{log}:1: a table to fit must be of a machine as it is, not idealised; measure without --idealised.",
        f"{log}:1: the entry of the log, 'fast', must be in a --config, and none is given; give the one that it was "
        "measured with.",
        f"{log}:9: the algorithm of the log, 'me.own', must be one that is registered; load its plug-in, or give its "
        "file by --algo.",
    )


def test_the_json_of_a_table_is_told_as_such(plugins: Plugins, tmp_path: Path) -> None:
    log = tmp_path / "a.json"
    text = printed(plugins, "all_reduce", 2, "-b", "1K", "-e", "1K", "--json")
    assert problems(plugins, log, text) == (
        f"{log}:1: a log of kernbench ccl must be its table, not the object of --json; give what it prints without.",
    )
