"""Pages that are opened offline in a headless browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

WHOLE = """() => document.querySelectorAll("article.run").forEach(
    (each) => kernbench.run(Number(each.dataset.run)).set("window", null))"""


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page where nothing may leave; at the end, nothing was asked for and nothing was told on the console.

    A page of runs opens on their longest launches, and here then shows the `whole` of each.
    """
    contexts, told = [], []

    def open_page(file: Path, whole: bool = True, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        contexts.append(context)
        context.route("**/*", lambda route: route.continue_() if route.request.url == file.as_uri() else (
            told.append(f"asked for {route.request.url}"), route.abort()))  # fmt: skip
        context.set_offline(True)
        page = context.new_page()
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        if whole:
            page.evaluate(WHOLE)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert told == []
