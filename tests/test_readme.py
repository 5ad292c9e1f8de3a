"""What the README says of numbers and names is so; its examples run in test_docs.py."""

from __future__ import annotations

import re
from pathlib import Path

from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.topology.design import design_of

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_event_count_of_gemm_is_the_present_one(plugins: Plugins) -> None:
    """`gemm` 1024 x 1024 x 1024 on `default` takes as many events as the README says."""
    (row,) = re.findall(r"\| `gemm` 1024 x 1024 x 1024, `default` \| ([\d,]+) \|", README)
    size = {"M": 1024, "N": 1024, "K": 1024}
    assert run("gemm", params=size, data=False, plugins=plugins).events == int(row.replace(",", ""))


def test_every_bench_is_in_the_table(plugins: Plugins) -> None:
    assert sorted(re.findall(r"^\| `([\w-]+)` \| [^`]", README, re.MULTILINE)) == sorted(plugins.benches)


def test_the_presets_have_as_many_pes_as_it_says(plugins: Plugins) -> None:
    from kernbench_core.runs.bench_run import configure
    from kernbench_core.topology.compilation import compile_topology

    for name, pes in re.findall(r"`(tiny|default|full)` \((?:\d packages, )?(\d+) PEs\)", README):
        assert len(design_of(compile_topology(configure(plugins, name), plugins)).pes) == int(pes)


def test_the_first_kernel_is_short() -> None:
    (source,) = re.findall(r"```python\n# axpy.py.*?\n(.*?)```", README, re.DOTALL)
    assert len(source.strip().splitlines()) <= 20
