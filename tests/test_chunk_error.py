"""The tables of docs/timing_model.md on the size of chunks: as tools/chunk_error.py makes them; what they support."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.design import design_of
from kernbench_core.units import format_bytes
from tests.conftest import loaded_tool

REPO = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """Return tools/chunk_error.py."""
    with loaded_tool("chunk_error") as module:
        yield module


@pytest.fixture(scope="module")
def tables(tool: ModuleType) -> list[list[list[str]]]:
    """Return the cells of both tables of the page."""
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        for table in tool.shown().split("\n\n")
    ]


def test_the_page_shows_what_the_script_writes(tool: ModuleType, tables: list[list[list[str]]]) -> None:
    """A row or two for each workload, a column for each size; written again, the cells give the page's text."""
    sizes = [format_bytes(size) for size in tool.SIZES]
    one = tool.Outcome((1.0,), 1.0, 1)
    many = tool.Outcome((1.0, 1.0), 1.0, 1)
    names = []
    for work in tool.workloads():
        several = len({pe for pe, *_ in work.transfers}) > 1
        rows = tool.error_rows(work.name, [many if several else one], bystander=work.bystander is not None)
        names += [row[0] for row in rows]
    errors, costs = tables
    assert [row[0] for row in errors[2:-2]] == names
    assert all(row[0].startswith("`gemm`") for row in errors[-2:])
    assert [row[1:] for row in (errors[0], costs[0])] == [sizes, sizes]
    assert {len(row) for table in tables for row in table} == {1 + len(sizes)}
    assert "\n\n".join(tool.table(head, rows) for head, _, *rows in tables) == tool.shown()


@pytest.mark.parametrize(
    "name",
    [
        "lone read, own slice",
        "64 B loads beside a stream from the same slice",
        "lone read, another package",
        "64 B loads beside a stream on one of their links",
    ],
)
def test_a_run_gives_the_rows_of_the_page_again(
    tool: ModuleType, tables: list[list[list[str]]], plugins: Plugins, name: str
) -> None:
    """Simulation is deterministic: a workload gives what the page shows, in every cell; the longer ways are slow."""
    shown = {row[0]: row for row in tables[0]}
    (work,) = (work for work in tool.workloads() if work.name == name)
    outcomes = [tool.simulate(plugins, size, work) for size in tool.SIZES]
    for row in tool.error_rows(work.name, outcomes, bystander=work.bystander is not None):
        assert shown[row[0]] == row


def test_the_default_is_the_largest_size_that_keeps_bulk_transfers_within_about_one_percent(
    tool: ModuleType, tables: list[list[list[str]]], plugins: Plugins
) -> None:
    """What the page says of the default follows from its table."""
    head, _, *rows = tables[0]
    bulk = [row for row in rows if "mean latency" not in row[0]]
    beside = next(row for row in rows if row[0].endswith("one of their links: mean latency"))

    def worst(column: int) -> float:
        return max(abs(float(row[column].removesuffix("%") or 0)) for row in bulk)

    within = [head[column] for column in range(2, len(head)) if worst(column) < 1.5]
    default = design_of(compile_topology(configure(plugins, "default", None, ()), plugins)).chunk_bytes
    assert within[-1] == format_bytes(default) == "4 KiB"
    at = head.index("4 KiB")
    alone = float(beside[1].removesuffix(" ns"))
    assert alone * float(beside[at].removesuffix("%")) / 100 == pytest.approx(20, abs=1)
    events = [float(cell.removesuffix(" k").replace(",", "")) for cell in tables[1][2][1:]]
    assert events[0] / events[at - 1] == pytest.approx(60, abs=2)
    assert events[1] / events[at - 1] == pytest.approx(15, abs=1)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0004, "0"), (-0.0004, "0"), (0.0005, "+0.1 %"), (-0.0123, "-1.2 %"), (0.0994, "+9.9 %"), (0.5, "+50 %")],
)
def test_errors_are_written_in_percent(tool: ModuleType, share: float, text: str) -> None:
    assert tool.percent(share) == text


def test_chunks_cost_nothing_by_themselves(tool: ModuleType, plugins: Plugins) -> None:
    """The machine of the tables has no headers, no set-up and no look-ups: a chunk more costs no time."""
    graph = tool.machine(plugins, 1024)
    assert {edge.header_bytes for edge in graph.edges.values()} == {0}
    dma, mmu = (graph.nodes[f"sip0.cube0.pe0.{unit}"].params for unit in ("pe_dma", "pe_mmu"))
    assert (dma["descriptor_overhead"], dma["overhead"], dma["servers"]) == (0, 0, tool.WINDOW // 1024)
    assert (mmu["tlb_overhead"], mmu["walk_time"]) == (0, 0)
