"""`triton.cdiv`, `triton.next_power_of_2`, and `triton.testing`: benchmarks in simulated time, and comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernbench_builtin.triton.simulation import current
from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

_MODES = ("min", "max", "mean", "median", "all")


def cdiv(x: int, y: int) -> int:
    """Divide, rounding up; a kernel's scalars, which divide towards zero, too."""
    return (x + y - 1) // y


def next_power_of_2(n: int) -> int:
    """Return the least power of two that is not below `n`; 0 for 0."""
    return 1 << (n - 1).bit_length() if n > 0 else 0


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: object = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **ignored: object,
) -> Any:
    """Call `fn` twice and return the simulated time of the kernels that the second call launched, in ms.

    Every run takes the same time, so that all quantiles are alike. NaN where no kernel was launched.
    """
    if return_mode not in _MODES:
        raise UsageError(f"return_mode of do_bench must be one of {', '.join(_MODES)}, not {brief(return_mode)}.")
    simulation = current("triton.testing.do_bench")
    fn()
    before = len(simulation.launches)
    fn()
    launched = simulation.launches[before:]
    simulation.looked_at()
    ms = sum(figures.time_ns for figures in launched) * 1e-6
    if not launched:
        ms = math.nan
        simulation.note(
            "do_bench gives NaN for a function that launches no kernel: what the host computes takes no simulated time."
        )
    if quantiles is not None:
        return ms if len(quantiles) == 1 else [ms] * len(quantiles)
    return [ms] if return_mode == "all" else ms


def assert_close(x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Raise AssertionError where two arrays differ by more than 1e-2, or as far as is given; NaN is like NaN."""
    np.testing.assert_allclose(
        _as_float(x), _as_float(y), rtol=rtol or 0.0, atol=1e-2 if atol is None else atol, err_msg=err_msg
    )


def _as_float(given: Any) -> Any:
    if hasattr(given, "detach"):
        given = given.detach().cpu().float().numpy()
    return np.asarray(given).astype(np.float64)


class Benchmark:
    """What `perf_report` runs a function for: each value of `x_names`, and a line for each of `line_vals`."""

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Sequence[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: Mapping[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        **ignored: object,
    ) -> None:
        self.x_names, self.x_vals = list(x_names), list(x_vals)
        self.line_arg, self.line_vals, self.line_names = line_arg, list(line_vals), list(line_names)
        self.plot_name, self.args, self.xlabel, self.ylabel = plot_name, dict(args), xlabel, ylabel

    def rows(self, fn: Callable[..., Any], given: Mapping[str, Any]) -> list[list[Any]]:
        """Return for each point its x values, and what `fn` gives for each line; of several numbers the first.

        The points are the first ones where the run says how many.
        """
        rows, most = [], current("perf_report").points
        points = self.x_vals[:most]
        if len(points) < len(self.x_vals):
            current("perf_report").note(
                f"perf_report ran the first {len(points)} of {len(self.x_vals)} points of {self.plot_name!r}."
            )
        for point in points:
            values = list(point) if isinstance(point, tuple | list) else [point] * len(self.x_names)
            x = dict(zip(self.x_names, values, strict=True))
            found = [fn(**x, **{self.line_arg: line}, **self.args, **given) for line in self.line_vals]
            rows.append([*values, *(each[0] if isinstance(each, tuple | list) else each for each in found)])
        return rows


class Mark:
    """A function that `perf_report` decorates."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = [benchmarks] if isinstance(benchmarks, Benchmark) else list(benchmarks)

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | Path = "",
        return_df: bool = False,
        **given: Any,
    ) -> Any:
        """Run the function for every point; print a table, write it as CSV, or return its rows."""
        tables = []
        for each in self.benchmarks:
            head, rows = [*each.x_names, *each.line_names], each.rows(self.fn, given)
            tables.append([dict(zip(head, row, strict=True)) for row in rows])
            if print_data:
                print("\n".join([f"{each.plot_name}:", *_table(head, rows, each.ylabel)]))
            if save_path:
                folder = Path(save_path)
                folder.mkdir(parents=True, exist_ok=True)
                lines = [",".join(map(str, row)) for row in [head, *rows]]
                (folder / f"{each.plot_name}.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
        if show_plots or save_path:
            current("perf_report").note("perf_report draws no plots: the numbers are in its table.")
        if not return_df:
            return None
        return tables[0] if len(tables) == 1 else tables


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]], unit: str) -> list[str]:
    """Lay out numbers in columns."""
    cells = [[f"{cell:,.6g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *cells]]
    return [f"{lines[0]}  ({unit})" if unit else lines[0], *lines[1:]]


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Mark a function that benchmarks are run with."""
    return lambda fn: Mark(fn, benchmarks)
