"""Run the examples of README.md and the pages below docs/, and compare what they print with what the pages show.

    python tools/check_docs.py [--update] [PAGE ...]

Blocks of one page run one after another in one folder; `text` is formulas and drawings, `sh` says before it why it is
not run. A block of

- `python` is executed; names live on into the next one. If its first line is a comment that begins with a file
  name (`# scale.py: …`), it is saved under that name instead, like a `yaml` block that begins so;
- `output` stands behind one of `python`, and shows what that one prints;
- `console` holds commands, `$ kernbench …`, and what they print, where a line `…` stands for lines that are left out. A
  command that shows nothing only has to succeed; one whose output begins with `error:` or the place of a fault, or says
  that something is wrong, or that points of a sweep failed, has to fail. Real times are not compared, nor how far data
  that are right are off: the first belong to the machine at hand, the second to its BLAS.

`--update` writes what is printed now into the pages, so that a change of a model costs no typing. Korean pages are not
run: their blocks are those of the English ones.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import attrs

from kernbench_core.plugins import own_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "plugins_example"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_core.cli import main as kernbench
from kernbench_core.errors import KernbenchWarning
from kernbench_core.plugins import Plugins, load_plugins

REPO = Path(__file__).resolve().parent.parent
#: Folders of docs/ whose pages have no examples of their own: records, and pages in Korean.
UNTRIED = ("adr", "adr-history", "adr-ko", "adr-proposed", "ko")
PAGES = (
    "README.md",
    *sorted(
        page.relative_to(REPO).as_posix()
        for page in (REPO / "docs").rglob("*.md")
        if page.relative_to(REPO / "docs").parts[0] not in UNTRIED
    ),
)
#: The example comes last: a page that does not mention it is executed without.
ENTRY_POINTS = (*own_plugins(), "example = kernbench_example.plugin")
#: What begins a line of a verdict that makes a command fail.
WRONG = ("DATA IS WRONG", "wrong")
#: What the pages are wide; a run in a pipe is as wide as COLUMNS says.
WIDTH = "112"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"# ([\w.-]+\.(?:py|yaml))\b")
_WALL = re.compile(r"in [\d.]+ s \([\d.]+ ?[kM]? events/s\), [\d.]+ s in all")
#: How what is refused begins: an error, or the place of a fault in a configuration.
_REFUSED = re.compile(r"error:|--(?:set|where|objective) [^:\n]+: |[\w./-]+\.yaml:\d+:\d+: |sip[\w.]+: ")
#: A line of an output that stands for lines which the page leaves out.
LEFT_OUT = "…"
#: How a sweep ends of which points failed.
_POINTS_FAILED = re.compile(r"^[\d,]+ points?: .*\d (error|deadlock|limit|timeout|wrong)\b", re.MULTILINE)
_PROOF_TIME = re.compile(r"(?<= steps) +[\d.]+ m?s$", re.MULTILINE)
_ROUNDING = re.compile(r"(?<=, largest error )[\d.]+(?:e[+-]?\d+)?")
#: What is said of wrong data: where its lines break depends on how long the path of the current folder is.
_WRONG_DATA = re.compile(r"(?<=^DATA IS WRONG: ).*?(?=^\d[\d,]* ops, )", re.MULTILINE | re.DOTALL)


@attrs.frozen
class Block:
    """One block of a page: its language, its text, and where the text stands in the page."""

    language: str
    text: str
    start: int

    @property
    def file(self) -> str | None:
        """The name that the block is to be saved under, if it has one."""
        named = _NAMED.match(self.text) if self.language in ("python", "yaml") else None
        return named.group(1) if named else None


@attrs.frozen
class Command:
    """One command of a console block, as it is typed, and the output that the page shows."""

    line: str
    shown: str


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page that run."""
    text = (REPO / page).read_text(encoding="utf-8")
    return [Block(m.group(1), m.group(2), m.start(2)) for m in _BLOCK.finditer(text)]


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block; text before the first one is an error."""
    head, *rest = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    if head.strip():
        raise ValueError(f"a console block must begin with '$ ', not {head.splitlines()[0]!r}.")
    for command in rest:
        line, _, shown = command.partition("\n")
        yield Command(line, shown)


def comparable(output: str) -> str:
    """Return the output without what differs from run to run or from CPU to CPU, and without trailing blank lines."""
    flowing = _WRONG_DATA.sub(lambda found: " ".join(found.group().split()) + "\n", output)
    right = [
        _ROUNDING.sub("…", line) if line.startswith("data verified: ") or ", data verified: " in line else line
        for line in _PROOF_TIME.sub("", _WALL.sub("in … s", flowing)).rstrip().split("\n")
    ]
    return "\n".join(right) + "\n"


def abridged(printed: str, shown: str) -> str:
    """Return an output without the lines for which a line `…` of what is shown stands.

    What is shown before the first `…` is the beginning, what is behind the last one the end; a part in between begins
    at the next line that has its first line's first word.
    """
    parts: list[list[str]] = [[]]
    for line in shown.rstrip().split("\n"):
        if line == LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(line)
    if len(parts) == 1:
        return printed
    lines = printed.rstrip().split("\n")
    kept, at = lines[: len(parts[0])], len(parts[0])
    for part in parts[1:-1]:
        word = part[0].split()[:1]
        at = next((i for i in range(at, len(lines)) if lines[i].split()[:1] == word), len(lines))
        kept += [LEFT_OUT, *lines[at : at + len(part)]]
        at += len(part)
    return "\n".join([*kept, LEFT_OUT, *lines[max(at, len(lines) - len(parts[-1])) :]]) + "\n"


def execute(command: Command, plugins: Plugins) -> tuple[int, str]:
    """Run a `kernbench` command in this process; return its exit code and what it prints on both streams."""
    program, *arguments = shlex.split(command.line, comments=True)
    if program != "kernbench":
        raise ValueError(f"a console block must hold kernbench commands, not {command.line!r}; use another language.")
    files = [file for option, file in itertools.pairwise(arguments) if option == "--plugin"]
    if files:
        plugins = load_plugins([*ENTRY_POINTS[:-1], *files], installed=False)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = kernbench(arguments, plugins)
    return code, out.getvalue().replace(f"{REPO}{os.sep}", "").replace(f"{Path.cwd()}{os.sep}", "")


def faults(page: str, plugins: Plugins, updated: list[tuple[str, str]] | None = None) -> Iterator[str]:
    """Run a page in the current folder; yield a sentence for each example that is not as shown.

    Pairs of what a page shows and what is printed now are added to `updated`.
    """
    names: dict[str, object] = {"__name__": page}
    printed = ""
    for block in blocks(page):
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            printed = _run_python(page, block, plugins, names)
        elif block.language == "output":
            if printed.rstrip() == block.text.rstrip():
                continue
            if updated is None:
                yield f"{page}: a python block must print what the page shows behind it, and prints\n{printed}"
            else:
                updated.append((f"```output\n{block.text}", f"```output\n{printed.rstrip()}\n"))
        elif block.language == "console":
            for command in commands(block):
                yield from _command_faults(page, command, plugins, updated)


def _run_python(page: str, block: Block, plugins: Plugins, names: dict[str, object]) -> str:
    """Execute a python block with `names`, and return what it prints."""
    installed = mock.patch("kernbench_core.runs.bench_run.load_plugins", lambda: plugins)
    with installed, contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("ignore", KernbenchWarning)  # what a page's Python says is not shown
        exec(compile(block.text, f"{page} (python block)", "exec"), names)
    return out.getvalue()


def _command_faults(
    page: str, command: Command, plugins: Plugins, updated: list[tuple[str, str]] | None
) -> Iterator[str]:
    code, printed = execute(command, plugins)
    must_fail = _REFUSED.match(command.shown) is not None or any(f"\n{word}: " in command.shown for word in WRONG)
    must_fail = must_fail or _POINTS_FAILED.search(command.shown) is not None
    if (code != 0) is not must_fail:
        yield f"{page}: `{command.line}` must {'fail' if must_fail else 'succeed'}, and exits with {code}:\n{printed}"
        return
    printed = abridged(printed, command.shown)
    if command.shown.strip() and comparable(printed) != comparable(command.shown):
        if updated is None:
            yield f"{page}: `{command.line}` must print what the page shows, and prints\n{printed}"
        else:
            printed = _with_times_of(command.shown, printed)
            updated.append((f"$ {command.line}\n{command.shown}", f"$ {command.line}\n{printed.rstrip()}\n"))


def _with_times_of(shown: str, printed: str) -> str:
    """Return `printed` with the real times that the page shows already: they change with every run."""
    times = _WALL.search(shown)
    return _WALL.sub(times.group(), printed) if times else printed


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Work in a new folder that has the example plug-in beside it, with a page's width and a cache of its own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        own = mock.patch.dict(os.environ, {"COLUMNS": WIDTH, "KERNBENCH_CACHE": cache})
        (Path(folder) / "plugins_example").symlink_to(REPO / "plugins_example")
        os.chdir(folder)
        sys.path.insert(0, folder)  # as the first place of an interpreter that is started there
        try:
            with own:
                yield Path(folder)
        finally:
            os.chdir(before)
            sys.path.remove(folder)
            for name, module in list(sys.modules.items()):  # no cache keeps what a module without its file may change
                if str(getattr(module, "__dict__", {}).get("__file__")).startswith(folder):
                    del sys.modules[name]


def plugins_of(page: str) -> Plugins:
    """Return what a page is executed with: kernbench's own plug-ins, and the example where the page mentions it."""
    mentioned = "plugins_example" in (REPO / page).read_text(encoding="utf-8")
    return load_plugins(ENTRY_POINTS if mentioned else ENTRY_POINTS[:-1], installed=False)


def check(page: str, plugins: Plugins, *, update: bool = False) -> list[str]:
    """Run a page in a folder of its own; return what is wrong, or write what is printed now into it."""
    updated: list[tuple[str, str]] | None = [] if update else None
    with scratch_folder():
        found = list(faults(page, plugins, updated))
    if updated:
        text, at = (REPO / page).read_text(encoding="utf-8"), 0
        for shown, printed in updated:  # in the order of the page
            now = printed + ("\n" if shown.endswith("\n\n") else "")
            at = text.index(shown, at)
            text = text[:at] + now + text[at + len(shown) :]
            at += len(now)
        (REPO / page).write_text(text, encoding="utf-8")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Check or update pages; return 1 when an example is not as shown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write what is printed now into the pages")
    parser.add_argument("pages", nargs="*", default=PAGES, metavar="PAGE")
    options = parser.parse_args(argv)
    found = [fault for page in options.pages for fault in check(page, plugins_of(page), update=options.update)]
    print("\n".join(found) or "every example is as shown")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
