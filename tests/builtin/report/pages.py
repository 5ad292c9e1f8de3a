"""Runs, registries of sections and a parser for tests of pages, wherever a page or a saved site is written."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from types import ModuleType
from typing import Any

from kernbench_builtin.pages.report import Section
from kernbench_core.plugins import Provider, Registry, ReportSectionEntry

SHIPPED = ("summary", "machine", "timeline", "ledger", "run")
HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">{{ 7*7 }}\'"&'


def result(name: str = "toy", **more: Any) -> dict[str, Any]:
    """Return the JSON of a small run."""
    return {
        "schema": "kernbench.run/1", "bench": name, "params": {"n": 3, "x": None}, "topology": "tiny", "device": "all",
        "total_ns": 100.0, "phases": {"kernel": 60.0, "launch": 40.0}, "ops": 7, "events": 9, "wall_s": 0.5,
        "interrupted": False, "verified": None, "checked": 0, "wrong": 0, "failures": [], "hazards": [], "rows": [],
        "warnings": [], "statistics": [], "not_modelled": [], "op_log_sha256": "ab", "manifest": {}, **more,
    }  # fmt: skip


def registry(**sections: Any) -> Registry[ReportSectionEntry]:
    """Return a registry of sections that are put into a module."""
    module = ModuleType("sections_of_a_test")
    vars(module).update(sections)
    sys.modules["sections_of_a_test"] = module
    acme = Provider("acme", "acme", "1.0")
    own = [(ReportSectionEntry(each, f"sections_of_a_test:{each}", "Words."), acme) for each in sections]
    return Registry("section of the report", own)


def shipped() -> Registry[ReportSectionEntry]:
    """Return those that come with kernbench."""
    rooms = {name: f"kernbench_builtin.pages.report.{name}_section:{name.upper()}" for name in SHIPPED}
    core = Provider("builtin", "kernbench", "")
    return Registry(
        "section of the report", [(ReportSectionEntry(name, target, "Words."), core) for name, target in rooms.items()]
    )


class Elements(HTMLParser):
    """Collect the elements of a page, with the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside = False
        self.texts: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.inside = tag in ("script", "style")
        if self.inside:
            self.texts.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            tag, attrs, before = self.texts[-1]
            self.texts[-1] = tag, attrs, before + data


def of_two(script: str) -> Registry[ReportSectionEntry]:
    """Return a registry of two sections that their plug-ins call alike, with one script."""
    module = ModuleType("two_sections_of_a_test")
    sys.modules["two_sections_of_a_test"] = module
    pairs = []
    for order, vendor in enumerate(("one", "two")):
        setattr(module, vendor, Section(f"Of {vendor}", order, lambda run, vendor=vendor: f"<p>{vendor}</p>",
                                        lambda run, vendor=vendor: {"of": vendor}, (script,)))  # fmt: skip
        entry = ReportSectionEntry("ops", f"two_sections_of_a_test:{vendor}", "Words.")
        pairs.append((entry, Provider(vendor, f"{vendor}-kb", "1.0")))
    return Registry("section of the report", pairs, all_used=True)
