"""Sweeps as plain data, for tests of their page: drawn at random, or point by point."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kernbench_builtin.pages.report import MovedBy, SweepPage, SweptObjective, SweptParameter

ROWS, BANDWIDTH, KIND = "components.pe_gemm.params.rows", "system.network.bandwidth", "kind"
OBJECTIVES = (
    SweptObjective("time_ns"), SweptObjective("area"), SweptObjective("utilisation.pe_gemm", greatest=True),
    SweptObjective("hbm_bytes"), SweptObjective("energy"),
)  # fmt: skip


def point(
    index: int, values: Mapping[str, Any], objectives: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a point that ran, or, where it has no objectives, one that failed."""
    key = hashlib.sha256(repr((index, values)).encode()).hexdigest()
    ran = objectives is not None
    return {
        "key": key, "index": index, "values": dict(values), "status": "ok" if ran else "error",
        "figures": dict(objectives or {}), "objectives": dict(objectives or {}),
        "error": None if ran else "it failed.", "op_log_sha256": key[::-1] if ran else None, **more,
    }  # fmt: skip


def dominated(page: SweepPage, one: Mapping[str, Any]) -> bool:
    """Whether another point that ran is nowhere worse than one, and somewhere better; by comparing it with each."""
    signs = [(each.name, -1 if each.greatest else 1) for each in page.objectives]
    mine = [sign * one["objectives"][name] for name, sign in signs]
    for other in page.points:
        if _known(page, other):
            theirs = [sign * other["objectives"][name] for name, sign in signs]
            if all(a <= b for a, b in zip(theirs, mine, strict=True)) and theirs != mine:
                return True
    return False


def sweep_page(
    points: Sequence[Mapping[str, Any]], objectives: Sequence[SweptObjective] = OBJECTIVES[:2], **more: Any
) -> SweepPage:
    """Return the page of points."""
    names = list(dict.fromkeys(name for each in points for name in each["values"]))
    page = SweepPage(
        name="a sweep", facts=[("bench", "gemm")], objectives=objectives, points=points, front=[False] * len(points),
        parameters=[SweptParameter(name, log=name == BANDWIDTH) for name in names],
        commands=[(f"run {each['index']}", f"show {each['key'][:12]}") for each in points], links=[""] * len(points),
        moved_by=[MovedBy(name, of.name, 0.5) for name in names for of in objectives], moved_of="Of a measure.",
    )  # fmt: skip
    front = [_known(page, each) and not dominated(page, each) for each in points]
    return attrs.evolve(page, **{"front": front, **more})


def _known(page: SweepPage, one: Mapping[str, Any]) -> bool:
    """Whether a point is compared with others: it ran in full, and has finite objectives."""
    ran = one["status"] == "ok" and one.get("fidelity") != "screen"
    return ran and all(math.isfinite(one["objectives"][each.name]) for each in page.objectives)


def drawn_points(count: int, objectives: int = 2, failing: float = 0.1, seed: int = 1) -> list[dict[str, Any]]:
    """Return points drawn at random; figures are round, so that many are equal."""
    draw = random.Random(seed)
    found = []
    for index in range(count):
        values = {
            ROWS: draw.choice([16, 32, 64]),
            BANDWIDTH: f"{100 * 8 ** draw.random():.3f} GB/s",
            KIND: draw.choice(["ring", "mesh", "torus"]),
        }
        figures = {each.name: float(draw.randrange(1, 40)) for each in OBJECTIVES[:objectives]}
        found.append(point(index, values, figures if draw.random() >= failing else None))
    return found
