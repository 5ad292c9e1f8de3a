"""Hooks of mkdocs.yml: links to what the site does not have become words, those to folders lead to their pages."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def rewritten(markdown: str, page: str, pages: set[str]) -> str:
    """Return the text of a page with links that lead to files among `pages`, all relative to docs/."""

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found.group(1), found.group(2), found.group(3) or ""
        place = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        if place in pages:
            return found.group()
        index = posixpath.normpath(posixpath.join(place, "README.md"))
        if index in pages:
            return f"[{words}]({posixpath.relpath(index, posixpath.dirname(page) or '.')}{anchor})"
        return words

    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Give mkdocs a page whose links it can follow."""
    pages = {file.src_uri for file in files if not file.inclusion.is_excluded()}
    return rewritten(markdown, page.file.src_uri, pages)
