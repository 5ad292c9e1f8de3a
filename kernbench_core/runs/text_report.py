"""What is printed for a reader: drawn in a terminal, the same in plain text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from kernbench_core.process.terminal import plain_width, shown
from kernbench_core.runs.answers import Styled


class ShowingConsole(Console):
    """A console that shows what would act on it; its own colours and movements are not text, and stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render, with the text of every segment shown."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=shown(segment.text))


def make_console(stream: IO[str]) -> Console:
    """Return a console for `stream`: colours and the window's width in a terminal, plain wide text elsewhere."""
    if stream.isatty():
        return ShowingConsole(file=stream, highlight=False, markup=False, emoji=False)
    return ShowingConsole(
        file=stream, highlight=False, markup=False, emoji=False, color_system=None, width=plain_width()
    )


def show(renderable: RenderableType, console: Console) -> None:
    """Print; without a terminal leave out the blanks that pad lines to the width."""
    if console.is_terminal:
        console.print(renderable)
        return
    with console.capture() as captured:
        console.print(renderable)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def show_line(pieces: Iterable[Styled], stream: IO[str]) -> None:
    """Print a line, its pieces in their styles."""
    show(Text.assemble(*pieces), make_console(stream))


def bare_table() -> Table:
    """Return a table of which nothing is drawn: columns two blanks apart, under bold titles."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def shortened(name: str, most: int) -> str:
    """Return a name of at most `most` letters: its beginning and its end, which tell it from others."""
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[len(name) - end :]}"
