"""What figures take out of the object of `--json`, by hand: totals, tables, what was run, and what is not known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from kernbench_builtin.compare import RunFigures
from kernbench_builtin.compare.run_figures import figures_of_json
from tests.builtin.report.pages import result


def figures(manifest: Mapping[str, Any] | None = None, **more: Any) -> RunFigures:
    """Return the figures of a result with a manifest and other fields."""
    return figures_of_json(result(manifest=dict(manifest or {}), **more))


def test_totals() -> None:
    """Those that objectives of sweeps have, by the same names; nothing computed is nothing."""
    point = {"flops": 64.0, "hbm_bytes": 32}
    found = figures(
        kernels={"time_ns": 60.0, "roofline": point},
        launches=[{"kernel": "k", "started_ns": at, "ended_ns": at + 5.0, "roofline": point} for at in (10.0, 20.0)],
        hazards=[{}, {}, {}],
        outside=[{"elements": 9}],
        wrong=1,
    )
    assert found.totals == {
        "time_ns": 100.0, "kernel_time_ns": 60.0, "launches": 2, "ops": found.totals["ops"], "flop": 64.0,
        "hbm_bytes": 32, "hazards": 3, "outside": 1, "wrong": 1,
    }  # fmt: skip
    assert found.tables["kernel"].rows == {"k": (2, 10.0, 128.0, 64)}
    bare = figures(kernels=None, launches=[]).totals
    assert [bare[name] for name in ("kernel_time_ns", "launches", "flop", "hbm_bytes")] == [0.0, 0, 0.0, 0]


@pytest.mark.parametrize(
    ("one", "other"),
    [("128GB/s", "0.128 TB/s"), ("8 ns", "8000ps"), ("64 KiB", "65536 B"), ("-1 mm", "-1000 um"), ("many", "many")],
)
def test_a_quantity_written_otherwise_is_the_same(one: str, other: str) -> None:
    found = [figures({"configuration": {"a": each}}).causes["configuration"] for each in (one, other, "9 ns")]
    assert found[0] == found[1] != found[2]


def test_the_configuration_is_flat() -> None:
    """A leaf for each dotted key; of lists by number; what is empty is a leaf."""
    found = figures({"configuration": {"a": {"b": "8 ns", "c": {}}, "d": [{"e": 1}, [2, 3]], "f": []}})
    assert found.causes["configuration"] == {
        "a.b": "8 ns", "a.c": {}, "d[0].e": 1, "d[1][0]": 2, "d[1][1]": 3, "f": [],
    }  # fmt: skip


def test_what_was_run() -> None:
    """Files by digest, arrays without the names of their files, plug-ins with their versions, and kept options."""
    manifest = {
        "schema": "kernbench.manifest/1", "seed": 3, "data": True, "verify_data": True, "topology": "tiny",
        "limits": {"max_events": 5}, "changes": None, "op_log_sha256": "0", "configuration_sha256": "1", "files": {},
        "bench": {"file": "bench/mine.py", "given": "x/mine.py", "sha256": "aa", "modules": {"lib/own.py": "bb"},
                  "inputs": {"d.txt": {"file": "inputs/d.txt", "sha256": "cc"}},
                  "depends": {"/x/t/*.csv": "11", "/y/*.csv": "22", "$SCALE": ""}},
        "plugins": [{"plugin": "acme", "distribution": "acme-models", "version": "1.2"}],
        "versions": {"numpy": "2.0"},
    }  # fmt: skip
    array = {"file": "params/x.npy", "given": "x.npy", "sha256": "d" * 64, "shape": [3, 4]}
    source = "def k(tl):\n    pass\n"
    functions = [{"file": "mine.py", "name": name, "line": line, "source": source if name == "k" else ""}
                 for name, line in (("k", 1), ("k", 9), ("f", 3))]  # fmt: skip
    found = figures(manifest, params={"n": 4, "x": array}, functions=functions, models={"acme.dma": "ee"})
    digest = hashlib.sha256(source.encode()).hexdigest()
    assert found.causes == {
        "bench": {"bench": found.causes["bench"]["bench"]},
        "params": {"n": 4, "x": f"3×4 array {'d' * 12}"},
        "options": {"seed": 3, "data": True},
        "configuration": {},
        "sources": {"mine.py": "aa", "lib/own.py": "bb", "input d.txt": "cc", "declared *.csv": "11 22",
                    "declared $SCALE": "absent", "mine.py:k": digest, "mine.py:k (2)": digest, "mine.py:f": ""},
        "models": {"acme.dma": "ee"},
        "plugins": {"acme": "acme-models 1.2"},
        "versions": {"numpy": "2.0"},
    }  # fmt: skip
    assert found.texts == {"mine.py:k": source, "mine.py:k (2)": source}


def test_files_are_taken_that_the_run_had() -> None:
    """By their digests: one that was changed since, or is of another bench, is not shown as the run's."""
    text = "N = 4\n"
    bench = {"file": "bench/mine.py", "sha256": hashlib.sha256(text.encode()).hexdigest()}
    files = {"mine.py": text, "other.py": text}
    assert figures_of_json(result(manifest={"bench": bench}), files=files).texts == {"mine.py": text}
    assert figures_of_json(result(manifest={"bench": bench}), files={"mine.py": text + "\n"}).texts == {}


def test_what_is_not_known_says_why() -> None:
    """Of an interrupted run no path, of an earlier version no lines."""
    path = "nothing was explained, as the run was interrupted"
    for interrupted, why in ((True, path), (False, "run it with --explain")):
        missing = figures(interrupted=interrupted).missing
        assert missing["path"] == missing["place"] == why
        assert missing["link"] == missing["link kind"] == "run it with --out, or with --links all"
        assert missing["line"] == missing["op"] == "an earlier kernbench wrote it; run it again"
        assert "phase" not in missing


def test_paths_are_added_up_by_what_they_are() -> None:
    """Parts of a phase, sort and kind; places of a kernel over all its launches."""
    where = [{"phase": "host_to_device", "sort": "write", "kind": "host", "ns": ns} for ns in (1.0, 2.5)]
    launches = []
    for kernel, ns in (("k", 1.0), ("k", 2.0), ("m", 4.0)):
        times = (1.0, 1.0 + ns), (5.0, 6.0)
        path = [{"sort": "read", "place": "a->b", "from_ns": since, "to_ns": until} for since, until in times]
        launches.append({"kernel": kernel, "path": path})
    found = figures(explain={"where": where, "launches": launches})
    assert found.tables["path"].rows == {"host to device · write · host": (3.5,)}
    assert found.tables["place"].rows == {"k · read · a->b": (5.0,), "m · read · a->b": (5.0,)}


def test_links_are_listed_and_added_up_by_kind() -> None:
    """As one column each."""
    links = {
        "name": ["a->b", "b->a", "c#0"], "kind": ["w", "w", "c"], "gb_per_s": [1.0, 2.0, 3.0],
        "latency_ns": [4.0, 5.0, 6.0], "bytes": [7, 8, 9], "deliveries": [1, 2, 3], "busy_ns": [0.5, 0.25, 0.0],
        "waited_ns": [0.0, 1.0, 2.0], "source": ["a", "b", "c"],
    }  # fmt: skip
    found = figures(links=links)
    assert found.tables["link"].rows["b->a"] == (2.0, 5.0, 8, 2, 0.25, 1.0)
    assert found.tables["link"].about == {"a->b": "w", "b->a": "w", "c#0": "c"}
    assert found.tables["link kind"].rows == {"w": (2, 15, 3, 0.75, 1.0), "c": (1, 9, 3, 0.0, 2.0)}
