"""What the README and its first pages say of numbers and names is so; their examples run in test_docs.py."""

from __future__ import annotations

import re
from pathlib import Path

from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.topology.design import design_of

ROOT = Path(__file__).parents[1]
README, BENCHES, SPEED = (
    (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/benches.md", "docs/speed.md")
)


def test_the_event_count_of_gemm_is_the_present_one(plugins: Plugins) -> None:
    """`gemm-naive` 1024 x 1024 x 1024 on `default` takes as many events as docs/speed.md says."""
    (row,) = re.findall(r"\| `gemm-naive` 1024 x 1024 x 1024, `default` \| ([\d,]+) \|", SPEED)
    size = {"M": 1024, "N": 1024, "K": 1024}
    assert run("gemm-naive", params=size, data=False, plugins=plugins).events == int(row.replace(",", ""))


def test_every_bench_is_in_the_table(plugins: Plugins) -> None:
    """Of docs/benches.md, the first there."""
    table = BENCHES.partition("| bench | what it shows |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == sorted(plugins.benches)


def test_the_presets_have_as_many_pes_as_it_says(plugins: Plugins) -> None:
    from kernbench_core.runs.bench_run import configure
    from kernbench_core.topology.compilation import compile_topology

    for name, pes in re.findall(r"`(tiny|default|full)` \((?:\d packages, )?(\d+) PEs\)", README):
        assert len(design_of(compile_topology(configure(plugins, name), plugins)).pes) == int(pes)


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 110
