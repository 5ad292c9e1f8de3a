"""Hooks of mkdocs.yml: the reference is made from the code, links to what the site does not have become words, and
files of tutorials can be downloaded.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
#: A block that is a file, as tools/check_docs.py saves it: its name, and its text.
_FILE = re.compile(r"^```\w+\n(# ([\w.-]+\.(?:py|yaml))\b.*?^)```$", re.DOTALL | re.MULTILINE)


def files_of(markdown: str) -> dict[str, str]:
    """Return the files that a page consists of, by name."""
    return {name: text for text, name in _FILE.findall(markdown)}


def with_downloads(markdown: str) -> str:
    """Return a page with a link behind each of its files, which lie beside it."""
    return _FILE.sub(r'\g<0>\n\n<a href="\g<2>" download>\g<2></a>', markdown)


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


def on_files(files: Any, config: Any) -> Any:
    """Give mkdocs the pages of the reference."""
    from mkdocs.structure.files import File

    sys.path.insert(0, str(Path(__file__).parent))
    try:
        from reference import written
    finally:
        del sys.path[0]
    for name, text in written().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Give mkdocs a page whose links it can follow; write the files of a tutorial beside it."""
    pages = {file.src_uri for file in files if not file.inclusion.is_excluded()}
    text = rewritten(markdown, page.file.src_uri, pages)
    if "tutorials/" not in page.file.src_uri:
        return text
    beside = Path(config.site_dir, page.file.src_uri).parent
    beside.mkdir(parents=True, exist_ok=True)
    for name, content in files_of(markdown).items():
        (beside / name).write_text(content, encoding="utf-8")
    return with_downloads(text)
