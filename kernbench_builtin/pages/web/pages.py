"""The pages around the report's: the index of a folder, the frame of a live run, a sentence."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from kernbench_builtin.pages.report.page import asset, environment, hash_source, page_style
from kernbench_builtin.pages.web.loopback import Answer
from kernbench_core.package import __version__


def page(
    template: str, *, script: str | None = None, themed: bool = False, status: int = 200, **values: Any
) -> Answer:
    """Return a page made of a template, with a script of this room, which may read from this server only.

    A `themed` one has a button for its colours.
    """
    style = page_style() + _own("web.css")
    own = None if script is None else _own(script)
    if own is not None and themed:
        own = f"(() => {{\n{asset('theme.js')}}})();\n{own}"
    text = environment(__package__).get_template(template).render(
        style=style, script=own, version=__version__, **values
    )  # fmt: skip
    allowed = "'none'" if own is None else hash_source(own)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {hash_source(style)}; connect-src 'self'; "
        "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    return Answer(text.encode(), policy=policy, status=status)


def sentence(title: str, text: str, *, home: bool = True, status: int = 404) -> Answer:
    """Return a page that says one thing."""
    return page("sentence.html", title=title, text=text, home=home, status=status)


@cache
def _own(name: str) -> str:
    return (resources.files(__package__) / "static" / name).read_text(encoding="utf-8")
