"""Figures of a run, against the result's own JSON, and the functions of a file over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.sweeps.objectives.figures import (
    FAMILIES,
    FIGURES,
    KNOWN,
    figure_of,
    may_be_figure,
    named_figures,
)
from kernbench_builtin.sweeps.objectives.functions import read_figures, settings
from kernbench_builtin.sweeps.objectives.objective import measure, parse_objectives
from kernbench_core.errors import KernelError, UsageError
from tests.core.working_machine import on_machine


def double(x, y, tl):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * 4 + tl.arange(0, 4)
    tl.store(y + at, tl.load(x + at) * 2)


def bench(rt: Any, scale: int = 2, off: float = 0.0) -> None:
    """Double sixteen numbers, four on each PE; be asked for others."""
    x, y = rt.tensor(np.arange(16, dtype=np.float32)), rt.empty((16,), "f32")
    rt.launch(double, x, y)
    rt.check(y, np.arange(16) * float(scale) + off, rtol=0, atol=100)
    rt.report(**{"time_ns": 3.5, "of all (%)": 2, "what": "first"})
    rt.report(**{"time_ns": 6.5, "of all (%)": 4, "what": "second"})


@pytest.fixture(scope="module")
def result() -> kb.RunResult:
    """Give the result of the bench, its data verified; they are off by 0.5."""
    return kb.run(bench, params={"off": 0.5}, verify_data=True, **on_machine())


def test_each_figure_is_that_of_the_json(result: kb.RunResult) -> None:
    """Read from what `--json` prints, where that has it."""
    told, figures = json.loads(json.dumps(result.to_json())), named_figures(result)
    assert figures["time_ns"] == told["total_ns"] > 0
    assert {name: figures[f"{name}_ns"] for name in told["phases"]} == told["phases"]
    assert sum(told["phases"].values()) == figures["time_ns"]
    assert {name: figures[name] for name in ("ops", "events", "hops", "verified", "max_abs_error")} == {
        name: told[name] for name in ("ops", "events", "hops", "verified", "max_abs_error")
    }
    assert figures["max_abs_error"] == 0.5
    assert (figures["launches"], figures["reported_rows"]) == (len(told["launches"]), len(told["rows"])) == (1, 2)
    assert (figures["hazards"], figures["outside"]) == (len(told["hazards"]), len(told["outside"]))
    assert figures["kernel_time_ns"] == told["kernels"]["time_ns"]
    for use in told["busiest"]:
        kind = use["kind"].replace(" ", "_")
        assert figures[f"utilisation.{kind}"] == use["utilisation"]
        assert figures[f"mean_utilisation.{kind}"] == use["mean_utilisation"]
        assert figures[f"busy_ns.{kind}"] == use["busy_ns"]
    for use in told["kernels"]["busiest"]:
        assert figures[f"kernel_utilisation.{use['kind'].replace(' ', '_')}"] == use["utilisation"]
    assert json.loads(json.dumps(figures)) == figures


def test_reported_rows_are_figures(result: kb.RunResult) -> None:
    """Of several rows their extremes and mean; of words nothing; of one row the cells themselves."""
    rows = {name: value for name, value in named_figures(result).items() if name.startswith("rows.")}
    assert rows == {
        "rows.time_ns.min": 3.5, "rows.time_ns.max": 6.5, "rows.time_ns.mean": 5.0,
        "rows.of_all.min": 2, "rows.of_all.max": 4, "rows.of_all.mean": 3.0,
    }  # fmt: skip

    def single(rt: Any) -> None:
        """Copy four numbers, and report once."""
        rt.tensor(np.zeros(4, np.float32))
        rt.report(what="all", time_ns=2.0)

    alone = named_figures(kb.run(single, **on_machine()))
    assert (alone["rows.what"], alone["rows.time_ns"], alone["rows.time_ns.max"]) == ("all", 2.0, 2.0)
    assert (alone["flop"], alone["hbm_bytes"], alone["kernel_time_ns"], alone["verified"]) == (0, 0, 0.0, None)


def test_a_dotted_path_leads_into_the_json(result: kb.RunResult) -> None:
    """To anything single; sections, lists and what is not there are told."""
    assert figure_of(result, "phases.kernel") == result.phases["kernel"]
    assert figure_of(result, "branch_values.read") == 0
    assert figure_of(result, "time") == result.total_ns
    for name, why in (
        ("phases", "must be one figure of the result, and it is a section; name a part of it."),
        ("launches.0", "must be a figure of the result, and it has none of this name. Did you mean 'launches'?"),
        ("busiest", "must be one figure of the result, and it is a list; name a part of it."),
        ("wall_s", "must be a figure of the result, and it has none of this name."),
        ("time_n", "must be a figure of the result, and it has none of this name. Did you mean 'time_ns'?"),
    ):
        with pytest.raises(UsageError) as caught:
            figure_of(result, name)
        assert str(caught.value) == f"{name!r} {why}"


def test_what_may_be_a_figure_is_known_before_a_run(result: kb.RunResult) -> None:
    """Every figure of this one, and every single value or section of its JSON but what is no figure."""
    assert all(map(may_be_figure, named_figures(result)))
    sections = {name for name, value in result.to_json().items() if not isinstance(value, list)}
    outside = {name for name in sections if not may_be_figure(name)}
    assert outside == {"schema", "params", "wall_s", "from_cache", "computed_by", "manifest", "outputs", "models"}
    assert not any(map(may_be_figure, ("area", "tile_m", "wall", "utilization.pe_gemm")))
    assert len(KNOWN) == len(FIGURES) + 1
    assert all(sentence.startswith(f"{name}.") for name, sentence in FAMILIES.items())


SOURCE = """
from math import sqrt
CELL = 3.0
def _helper(rows): return rows * CELL
def area(config, figures):
    return _helper(config["slots"]) + config["scale"]
def cost(config, figures):
    return figures["time_ns"] * sqrt(config["system.network.bandwidth"])
"""


@pytest.fixture
def file(tmp_path: Path) -> Any:
    """Write a file of figures, and read it."""

    def written(source: str) -> Any:
        path = tmp_path / "mine.py"
        path.write_text(source)
        return read_figures(path)

    return written


def test_functions_of_a_file_are_figures(file: Any) -> None:
    """They see the configuration in kernbench's own units and the figures; helpers and imports are none."""
    found = file(SOURCE)
    config = settings({"system": {"network": {"bandwidth": "0.1 TB/s"}}, "slots": 4}, {"scale": 2, "a": None})
    assert dict(config) == {"system.network.bandwidth": 100.0, "slots": 4, "scale": 2, "a": None}
    assert found.of(config, {"time_ns": 7.0}) == {"area": 14.0, "cost": 70.0}
    assert file(SOURCE).sha256 == found.sha256 != file(SOURCE + "\n").sha256


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("def area(config, figures): return 1 / 0",
         "area(config, figures) must give a number, but it raised ZeroDivisionError: division by zero."),
        ("def area(config, figures): return None", "area(config, figures) must give a number, not None."),
        ("def area(config, figures): return float('inf')", "area(config, figures) must give a number, not inf."),
        ("def area(config, figures): return True", "area(config, figures) must give a number, not True."),
        ("def area(config, figures): return config['bandwidth']",
         "area(config, figures) must give a number, but it raised KeyError: \"'bandwidth' must be a key of the "
         "configuration, or a parameter of the bench. Did you mean 'system.network.bandwidth'?\"."),
        ("def area(config, figures): figures['time_ns'] = 0",
         "area(config, figures) must give a number, but it raised TypeError: 'mappingproxy' object does not support "
         "item assignment."),
        ("def area(config): return 1",
         "area must take two arguments, as def area(config, figures): …; a name that begins with '_' is left alone."),
        ("def time_ns(config, figures): return 1",
         "time_ns must not have the name of a figure that every result has; give it another."),
    ],
)  # fmt: skip
def test_a_faulty_function_is_told(file: Any, tmp_path: Path, source: str, wanted: str) -> None:
    """In a sentence that names file and function, then the line."""
    with pytest.raises(UsageError) as caught:
        file(source).of(settings({"system": {"network": {"bandwidth": "1 GB/s"}}}, {}), {"time_ns": 1.0})
    assert str(caught.value).split("\n")[0] == f"--figures {tmp_path / 'mine.py'}: {wanted}"


def test_a_file_that_has_no_functions_is_told(file: Any, tmp_path: Path) -> None:
    """So is one that fails, and one that is not there."""
    path = tmp_path / "mine.py"
    with pytest.raises(UsageError) as caught:
        file("area = 3")
    assert str(caught.value) == (
        f"--figures {path}: must have at least one function, as def area(config, figures): …; write one."
    )
    with pytest.raises(UsageError) as caught:
        read_figures(tmp_path / "other.py")
    assert str(caught.value) == f"--figures must be the path of a .py file, and '{tmp_path}/other.py' does not exist."
    with pytest.raises(KernelError) as failed:
        file("raise ValueError('no')")
    assert str(failed.value).startswith(
        f"figures file '{tmp_path}/mine.py' must run to its end, but it raised ValueError: no."
    )


def test_a_result_is_measured(file: Any, result: kb.RunResult) -> None:
    """Objectives read figures, functions, the configuration, the bench's parameters and the point."""
    functions = file("def area(config, figures): return config['scale'] * 10")
    objectives = parse_objectives(
        "time, a=area + scale, n=figures.time_ns - params.mine, b=phases.kernel * off, link=100 GB/s"
    )
    figures, found = measure(result, objectives, functions, {"mine": 1.0})
    assert found == {
        "time": result.total_ns,
        "a": 22.0,
        "n": result.total_ns - 1,
        "b": result.phases["kernel"] / 2,
        "link": 100.0,
    }
    assert figures == {**named_figures(result), "area": 20.0, "phases.kernel": result.phases["kernel"]}
    with pytest.raises(UsageError) as caught:
        measure(result, parse_objectives("statistics.x"))
    assert str(caught.value) == "'statistics.x' must be a figure of the result, and it has none of this name."
