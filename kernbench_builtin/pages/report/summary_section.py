"""The head of a run's page: how long it took, how fast it was, and whether it is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kernbench_builtin.pages.plots import stacked
from kernbench_builtin.pages.report.page import environment
from kernbench_builtin.pages.report.run_page import RunPage
from kernbench_builtin.pages.report.section import Section
from kernbench_core.units import format_bytes, format_flops, format_time


def _html(page: RunPage) -> str:
    result = page.result
    phases = [(name.replace("_", " "), float(ns)) for name, ns in result["phases"].items()]
    return environment().get_template("summary.html").render(
        result=result, phases=phases, bar=stacked(phases, whole=page.scale_ns), total=page.total_ns,
        figures=list(_figures(page)), goes_on=page.goes_on,
    )  # fmt: skip


def _figures(page: RunPage) -> Any:
    """Yield what is told first: name, value, and a word for how it is meant."""
    result = page.result
    yield "total time", format_time(page.total_ns), "simulated"
    kernel = result["phases"].get("kernel", 0.0)
    yield "kernel", format_time(kernel), f"{kernel / page.total_ns:.1%} of the total" if page.total_ns else ""
    point = (result.get("kernels") or {}).get("roofline")
    if point:
        allowed = f"in kernels, {point['share']:.1%} of what the {point['bound']} roof allows"
        yield "achieved", format_flops(point["achieved"]), allowed
        yield "HBM traffic", format_bytes(point["hbm_bytes"]), f"{_intensity(point)} FLOP/B, in kernels"
    if result.get("verified") is not None:
        checked = f"{result['checked']} checked tensor{'' if result['checked'] == 1 else 's'}"
        wrong = f"{result['wrong']} of {checked} {'is' if result['wrong'] == 1 else 'are'} wrong"
        yield "data", "verified" if result["verified"] else "WRONG", (
            f"{result['checked']} checked{_by(result.get('computed_by'))}" if result["verified"] else wrong
        )
    hazards = len(result.get("hazards", ()))
    yield "hazards", str(hazards), "uses of memory that nothing orders"
    outside = sum(each["elements"] for each in result.get("outside", ()))
    if outside:
        yield "outside", f"{outside:,}", "elements outside of tensors: poison, or dropped"
    yield "ops", f"{result['ops']:,}", f"{result['events']:,} events in {result['wall_s']:.2f} s"


def _by(found: Mapping[str, Any] | None) -> str:
    """Say what computed the data where that is not numpy."""
    return "" if found is None or found["backend"] == "numpy" else f", computed by {found['backend']}"


def _intensity(point: Mapping[str, Any]) -> str:
    return "∞" if point["intensity"] is None else f"{point['intensity']:,.4g}"


SUMMARY: Final = Section("Summary", 10, _html)
