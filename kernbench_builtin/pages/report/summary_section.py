"""The head of a run's page: its verdict, and the figures that the verdict is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
        result=result, kernels=page.kernels, phases=phases, bar=stacked(phases, whole=page.scale_ns),
        total=page.total_ns, figures=list(_figures(page)), goes_on=page.goes_on,
    )  # fmt: skip


def _figures(page: RunPage) -> Any:
    """Yield the cards: name, value, and a word for how it is meant."""
    result = page.result
    kernel = result["phases"].get("kernel", 0.0)
    of_total = f"{kernel / page.total_ns:.1%} of the total of {format_time(page.total_ns)}" if page.total_ns else ""
    yield "kernel", format_time(kernel), of_total
    yield from _verdict(page)
    point = (result.get("kernels") or {}).get("roofline")
    if point:
        yield "achieved", format_flops(point["achieved"]), "in kernels"
        yield "HBM traffic", format_bytes(point["hbm_bytes"]), f"{_intensity(point)} FLOP/B, in kernels"
    if result.get("verified") is not None:
        checked = f"{result['checked']} checked tensor{'' if result['checked'] == 1 else 's'}"
        wrong = f"{result['wrong']} of {checked} {'is' if result['wrong'] == 1 else 'are'} wrong"
        yield "data", "verified" if result["verified"] else "WRONG", (
            f"{result['checked']} checked{_by(result.get('computed_by'))}" if result["verified"] else wrong
        )
    hazards = len(result.get("hazards", ()))
    if hazards:
        yield "hazards", str(hazards), "uses of memory that nothing orders"
    outside = sum(each["elements"] for each in result.get("outside", ()))
    if outside:
        yield "outside", f"{outside:,}", "elements outside of tensors: poison, or dropped"


def _verdict(page: RunPage) -> Iterator[tuple[str, str, str]]:
    """Yield what limits the run, how near it is to the roof, and how many PEs took part."""
    verdict: Mapping[str, Any] = page.result.get("verdict") or {}
    if limiter := verdict.get("limiter"):
        what, lines = ", ".join(limiter["calls"]) or limiter["kind"], ", ".join(limiter["lines"])
        others = "the time of the slowest PE and those that it waits for"
        whose = others if limiter.get("others") else "the slowest PE's time"
        yield "limiter", what, f"{limiter['share']:.0%} of {whose}{', ' if lines else ''}{lines}"
    if verdict.get("share") is not None:
        yield "of the roof", f"{verdict['share']:.0%}", f"at least {format_time(verdict['roof_ns'])}"
    if used := max((each.get("pes", 0) for each in page.result.get("launches") or ()), default=0):
        there = sum(each["components"] for each in page.result.get("components") or () if each["kind"] == "pe_cpu")
        yield "PEs", f"{used:,}", f"of {there:,} run programs" if there >= used else "run programs"


def _by(found: Mapping[str, Any] | None) -> str:
    """Say what computed the data where that is not numpy."""
    return "" if found is None or found["backend"] == "numpy" else f", computed by {found['backend']}"


def _intensity(point: Mapping[str, Any]) -> str:
    return "∞" if point["intensity"] is None else f"{point['intensity']:,.4g}"


SUMMARY: Final = Section("Verdict", 10, _html)
