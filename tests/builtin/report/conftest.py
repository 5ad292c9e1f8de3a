"""A headless browser in which pages are opened offline."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start a browser once a file: two at once in one thread do not get along."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page where nothing may leave; at the end, nothing was asked for and nothing was told on the console."""
    contexts, told = [], []

    def open_page(file: Path, **options: Any) -> Any:
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
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert told == []
