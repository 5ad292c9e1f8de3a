"""Put the page together: one file with everything in it, which lets itself fetch nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import attrs
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kernbench_core.drawing.svg import SHAPES
from kernbench_core.errors import KernbenchError
from kernbench_core.package import __version__
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.report.formats import FILTERS
from kernbench_core.report.payload import script_text
from kernbench_core.report.section import Section

if TYPE_CHECKING:
    from kernbench_core.registry import Registry, ReportSectionEntry
    from kernbench_core.report.run_page import RunPage

@attrs.frozen
class _Part:
    """A section as it stands on the page: its name, and for each run its HTML and its data as text."""

    name: str
    section: Section
    runs: tuple[tuple[int, Markup, Markup | None], ...]


def render_report(pages: Sequence[RunPage], sections: Registry[ReportSectionEntry]) -> str:
    """Return the page of one or several runs, side by side.

    Raise PluginError for a section that cannot be used.
    """
    parts = [part for part in _parts(pages, sections) if part.runs]
    texts = [asset("core.js"), asset("format.js"), asset("colour.js")]
    texts += dict.fromkeys(text for part in parts for text in part.section.scripts)
    scripts = [f"(() => {{\n{_closed(text, 'script')}\n}})();" for text in (*texts, asset("start.js"))]
    style = "\n".join([page_style(), SHAPES, *(part.section.style for part in parts)])
    return environment().get_template("page.html").render(
        title=", ".join(dict.fromkeys(page.name for page in pages)),
        pages=list(enumerate(pages)),
        parts=parts,
        scripts=[Markup(script) for script in scripts],
        style=Markup(_closed(style, "style")),
        policy=_policy(scripts, style),
        version=__version__,
    )  # fmt: skip


def _parts(pages: Sequence[RunPage], sections: Registry[ReportSectionEntry]) -> list[_Part]:
    loaded: list[tuple[str, Section]] = []
    for name in sections:
        section = sections.load(name)
        if not isinstance(section, Section):
            raise sections.fault(name, f"must be a Section of kernbench_core.report, not {section!r}")
        loaded.append((name, section))
    return [
        _Part(name, section, tuple(_of_runs(name, section, pages, sections)))
        for name, section in sorted(loaded, key=lambda each: (each[1].order, each[0]))
    ]


def _of_runs(
    name: str, section: Section, pages: Sequence[RunPage], sections: Registry[ReportSectionEntry]
) -> Any:
    """Yield what a section shows of each run; what it raises is its plug-in's fault."""
    for number, page in enumerate(pages):
        try:
            html = section.html(page)
            if not isinstance(html, str):
                raise TypeError(f"html must return a text, not {html!r}")
            data = section.data(page) if html and section.data is not None else None
            text = None if data is None else Markup(script_text(data))
        except (KernbenchError, MemoryError, *INTERRUPTS):
            raise
        except BaseException as error:
            raise sections.raised(name, error) from error
        if html:
            yield number, Markup(html), text


@cache
def environment(package: str = "kernbench_core.report") -> Environment:
    """Return the templates of a package, which escape whatever they are given."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    return made


def asset(name: str) -> str:
    """Return the text of a script or of CSS that comes with the page."""
    return (resources.files("kernbench_core.report") / "static" / name).read_text(encoding="utf-8")


def page_style() -> str:
    """Return the CSS of any page, whose root says in `data-theme` whether it is light, dark, or as the system is."""
    dark = asset("dark.css")
    return "\n".join(
        [
            f":root {{\n{asset('light.css')}}}",
            f':root[data-theme="dark"] {{\n{dark}}}',
            f'@media (prefers-color-scheme: dark) {{ :root[data-theme="auto"] {{\n{dark}}} }}',
            asset("base.css"),
            asset("plots.css"),
        ]
    )


def _closed(text: str, element: str) -> str:
    """Return text that does not end the element it stands in; ValueError for one that would."""
    if f"</{element}" in text.lower():
        raise ValueError(f"a {element} of the page must not contain </{element}")
    return text


def _policy(scripts: Sequence[str], style: str) -> str:
    """Return the Content-Security-Policy: nothing is fetched, and nothing runs but the page's own scripts."""
    own = " ".join(hash_source(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {own}; style-src {hash_source(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def hash_source(text: str) -> str:
    """Return how a Content-Security-Policy names a script or a style by what it says."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
