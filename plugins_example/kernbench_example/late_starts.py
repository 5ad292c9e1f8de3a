"""A section of the HTML report: which PEs began after the common start, in a table and in a picture by a script."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from kernbench_builtin.pages.report import RunPage, Section

SCRIPT = """
kernbench.section("late", (element, data) => {
  const most = Math.max(1, ...data.late_ns);
  const bars = Array.from(data.late_ns, (ns, i) => kernbench.make("rect",
    { class: "kb-c0", x: 10 * i, y: 60 - (58 * ns) / most, width: 8, height: (58 * ns) / most },
    kernbench.make("title", {}, `${data.pes[i]}: ${kernbench.time(ns)}`)));
  element.append(kernbench.make("svg", { class: "kb-plot late", viewBox: `0 0 ${10 * bars.length || 10} 60`,
    width: 10 * bars.length, height: 60, role: "img", "aria-label": "how late each PE began" }, ...bars));
});
"""


def _html(page: RunPage) -> str:
    """Say it in words; what a run says of itself is escaped."""
    late = page.result.get("late_starts", ())
    if not late:
        return "<p>Every PE began at the common start.</p>"
    rows = "".join(f"<tr><td>{escape(each['pe'])}</td><td>{each['late_ns']:.4g} ns</td></tr>" for each in late)
    return f"<table><tr><th>PE</th><th>late by</th></tr>{rows}</table>"


def _data(page: RunPage) -> Mapping[str, Any]:
    """Give the script names, and numbers as a typed array."""
    late = page.result.get("late_starts", ())
    return {
        "pes": [each["pe"] for each in late],
        "late_ns": np.array([each["late_ns"] for each in late], np.float32),
    }


LATE = Section("Late starts", 45, _html, _data, (SCRIPT,))
