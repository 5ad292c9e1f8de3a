"""Put the page together: one file with everything in it, which lets itself fetch nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import attrs
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kernbench_builtin.machines.drawing.svg import SHAPES
from kernbench_builtin.pages.report.comparison import compared, moved_from_first, phase_bar
from kernbench_builtin.pages.report.formats import FILTERS
from kernbench_builtin.pages.report.payload import script_text
from kernbench_builtin.pages.report.section import Section
from kernbench_core.errors import KernbenchWarning, PluginError
from kernbench_core.package import __version__
from kernbench_core.process.interrupt import INTERRUPTS

if TYPE_CHECKING:
    from kernbench_builtin.pages.report.run_page import RunPage
    from kernbench_core.plugins import Registry, ReportSectionEntry


#: Scripts of any page, before its own.
SHARED: Final = ("core", "kept", "format", "colour")


@attrs.frozen
class _OfRun:
    """What a section shows of a run: HTML, and data as text; or, `failed`, the line that says why it shows nothing."""

    number: int
    html: Markup
    data: Markup | None = None
    failed: bool = False


@attrs.frozen
class _Part:
    """A section as it stands on the page: its name, and what it shows of each run."""

    name: str
    section: Section
    runs: tuple[_OfRun, ...]

    def scripts(self) -> Iterator[str]:
        """Yield the texts of its scripts; of two sections of one name, which their vendors tell apart, as its own."""
        said = self.name.rpartition(":")[2]
        own = f"const kernbench = window.kernbench.renamed({json.dumps(said)}, {json.dumps(self.name)});\n"
        for text in self.section.scripts:
            yield text if said == self.name else own + text


def render_report(pages: Sequence[RunPage], sections: Registry[ReportSectionEntry], *, strict: bool = False) -> str:
    """Return the page of one or several runs, side by side.

    Where a section cannot be used the page has a line that says why, with a KernbenchWarning; `strict` raises the
    PluginError instead.
    """
    scale = max(page.total_ns for page in pages) if len(pages) > 1 else None
    launch = max(page.longest_launch_ns for page in pages) if len(pages) > 1 else None
    pages = [attrs.evolve(page, scale_ns=scale, launch_scale_ns=launch) for page in pages]
    parts = [part for part in _parts(pages, sections, strict) if part.runs]
    texts = [asset(f"{name}.js") for name in SHARED]
    texts += dict.fromkeys(text for part in parts for text in part.scripts())
    return whole_page(
        "page.html",
        texts,
        "\n".join([SHAPES, *(part.section.style for part in parts)]),
        title=", ".join(dict.fromkeys(page.title for page in pages)),
        pages=list(enumerate(pages)),
        parts=parts,
        scale=scale,
        compared=compared(pages) if len(pages) > 1 else (),
        moved=moved_from_first(pages),
        phase_bar=phase_bar,
        phases=dict.fromkeys(name.replace("_", " ") for page in pages for name in page.result["phases"]),
    )


def whole_page(template: str, texts: Iterable[str], own_style: str, **values: Any) -> str:
    """Return a page that a template of this room makes of `values`, with all of its scripts and CSS in it.

    Each of `texts` is a script in a scope of its own; behind them the page starts. `own_style` adds to what any page
    has.
    """
    scripts = [f"(() => {{\n{text}\n}})();" for text in (*texts, asset("theme.js"), asset("start.js"))]
    style = "\n".join([page_style(), own_style])
    return environment().get_template(template).render(
        scripts=[Markup(script) for script in scripts],
        style=Markup(style),
        policy=_policy(scripts, style),
        version=__version__,
        **values,
    )  # fmt: skip


def _parts(pages: Sequence[RunPage], sections: Registry[ReportSectionEntry], strict: bool) -> list[_Part]:
    """Return what stands on the page, in its order; sections that cannot be opened, whose order nobody knows, last."""
    found, unopened = [], []
    for name in sections:
        try:
            section = open_section(name, sections)
        except PluginError as fault:
            line = _line(fault, strict)
            runs = tuple(_OfRun(number, line, failed=True) for number in range(len(pages)))
            unopened.append(_Part(name, Section(name, 0, lambda _: ""), runs))
        else:
            found.append(_Part(name, section, tuple(_of_runs(name, section, pages, sections, strict))))
    return [*sorted(found, key=lambda part: (part.section.order, part.name)), *unopened]


def open_section(name: str, sections: Registry[ReportSectionEntry]) -> Section:
    """Import a section; raise PluginError for what is none, or would break the page around it."""
    section = sections.load(name)
    if not isinstance(section, Section):
        raise sections.fault(name, f"must be a Section of kernbench_builtin.pages.report, not {section!r}")
    if not isinstance(section.title, str) or not isinstance(section.order, int | float):
        told = f"{section.title!r} at {section.order!r}"
        raise sections.fault(name, f"must have a text for title and a number for order, not {told}")
    for element, texts in (("script", section.scripts), ("style", (section.style,))):
        if not isinstance(texts, tuple) or not all(isinstance(text, str) for text in texts):
            raise sections.fault(name, f"must have texts of {element}s, not {texts!r}")
        if any(f"</{element}" in text.lower() for text in texts):
            raise sections.fault(name, f"must have no </{element} in its texts of {element}s, which ends the element")
    return section


def _of_runs(
    name: str, section: Section, pages: Sequence[RunPage], sections: Registry[ReportSectionEntry], strict: bool
) -> Iterator[_OfRun]:
    """Yield what a section shows of each run; what it raises is its plug-in's fault."""
    for number, page in enumerate(pages):
        try:
            html = section.html(page)
            if not isinstance(html, str):
                raise TypeError(f"html must return a text, not {html!r}")
            data = section.data(page) if html and section.data is not None else None
            text = None if data is None else Markup(script_text(data))
        except (MemoryError, *INTERRUPTS):
            raise
        except BaseException as error:
            fault = sections.raised(name, error)
            fault.__cause__ = error
            yield _OfRun(number, _line(fault, strict), failed=True)
        else:
            if html:
                yield _OfRun(number, Markup(html), text)


def _line(fault: PluginError, strict: bool) -> Markup:
    """Return what stands in the place of a section that cannot be used, and warn; with `strict` raise its fault."""
    if strict:
        raise fault
    told = str(fault).partition("\n")[0]
    more = "The page says so in its place; --strict-plugins fails instead."
    warnings.warn(f"{told} {more}", KernbenchWarning, stacklevel=2)
    return Markup(f"<p>This section cannot be shown: {escape(told)}</p>")


@cache
def environment(package: str = "kernbench_builtin.pages.report") -> Environment:
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


def asset(name: str, package: str = "kernbench_builtin.pages.report") -> str:
    """Return the text of a script or of CSS that comes with the pages of a package."""
    return (resources.files(package) / "static" / name).read_text(encoding="utf-8")


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
