"""Draw the pictures of tutorials and onboarding from real runs and machines, the same bytes each time.

    python tools/pictures.py [NAME ...]

Those of runs have no ground of their own, and colours that can be read on light and on dark pages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import check_docs

import kernbench as kb

PICTURES = check_docs.REPO / "docs" / "pictures"
INK = "#7d8590"
#: Okabe and Ito's, those that stand out from white and from black.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c00", "#999999")
WIDTH, LEFT, ROW = 760, 96, 26
#: Rows of a timeline: what they are called, and the end of the track's node.
TRACKS = (("kernel", "pe0"), ("DMA", "pe0.pe_dma"), ("GEMM", "pe0.pe_gemm"), ("math", "pe0.pe_math"))


def svg(width: float, height: float, name: str, rows: Sequence[str]) -> str:
    """Return a picture that stands alone."""
    style = f'font-family="system-ui, sans-serif" font-size="12" fill="{INK}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" {style}>'
    return "\n".join([head, f"<title>{escape(name)}</title>", *rows, "</svg>", ""])


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Return words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def ticks(start: float, end: float) -> list[float]:
    """Return four to nine round numbers between two."""
    step = next(s * 10**e for e in range(-2, 9) for s in (1, 2, 5) if (end - start) / (s * 10**e) <= 9)
    return [at * step for at in range(-int(-start // step), int(end // step) + 1)]


def timeline(name: str, run: kb.RunResult, first_ns: float | None = None) -> str:
    """Draw what PE 0 did in the launch, or in the first part of it: its kernel's lines, and its units."""
    found = run.timeline
    spans = found.spans
    numbers = {label: t.id for label, end in TRACKS for t in found.tracks
               if t.node.endswith(f"cube0.{end}") and t.kind in ("kernel", "unit")}  # fmt: skip
    begin = float(spans.start_ns[spans.track == numbers["kernel"]].min())
    last = float(spans.end_ns[spans.track == numbers["kernel"]].max())
    end = last if first_ns is None else min(last, begin + first_ns)
    across = (WIDTH - LEFT - 24) / (end - begin)
    colours: dict[str, str] = {}
    rows = []
    wholes = set(spans.parent.tolist())  # programs, and lines that call others
    for row, (label, number) in enumerate(numbers.items()):
        rows.append(text(LEFT - 8, row * ROW + 20, label, "end"))
        for at in (spans.track == number).nonzero()[0]:
            word = _word(found.names[spans.name[at]])
            start, stop = float(spans.start_ns[at]), min(end, float(spans.end_ns[at]))
            if at not in wholes and start < end:
                colour = colours.setdefault(word, COLOURS[len(colours) % len(COLOURS)])
                rows.append(f'<rect x="{LEFT + (start - begin) * across:.1f}" y="{row * ROW + 6}" '
                            f'width="{max(0.6, (stop - start) * across):.1f}" height="{ROW - 8}" fill="{colour}" '
                            f'fill-opacity="0.75"><title>{word}: {stop - start:.0f} ns</title></rect>')  # fmt: skip
    below = len(numbers) * ROW + 6
    for tick in ticks(0, end - begin):
        x = LEFT + tick * across
        rows.append(f'<path d="M{x:.1f} 4V{below}" stroke="{INK}" stroke-opacity="0.4" fill="none"/>')
        rows.append(text(x, below + 14, f"{tick / 1000:g} us", "middle"))
    return svg(WIDTH, below + 42, name, [*rows, *legend(colours, below + 34)])


def _word(name: str) -> str:
    """Return what a span is called in the legend: the call of a kernel's line."""
    if name in ("dma_read", "dma_write"):
        return {"dma_read": "load", "dma_write": "store"}[name]
    if name.startswith("gemm_"):
        return "dot"
    if "tl." in name:
        calls = [call for call in ("store", "dot", "load", "exp", "max", "sum", "where") if f"tl.{call}" in name]
        return calls[0] if calls else "other lines"
    return "math"


def legend(colours: Mapping[str, str], y: float) -> list[str]:
    """Return names beside their colours, in a row."""
    rows, x = [], float(LEFT)
    for word, colour in colours.items():
        rows.append(f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="10" height="10" fill="{colour}" fill-opacity="0.75"/>')
        rows.append(text(x + 14, y, word))
        x += 32 + 7.2 * len(word)
    return rows


def lines(name: str, across: Sequence[str], series: Mapping[str, Sequence[float]], unit: str) -> str:
    """Draw a line for each of some series over places named in words, from zero up."""
    height, bottom = 240.0, 200.0
    most = max(max(values) for values in series.values())
    step = (WIDTH - LEFT - 120) / (len(across) - 1)
    rows = [text(LEFT + at * step, bottom + 20, word, "middle") for at, word in enumerate(across)]
    for tick in ticks(0, most):
        y = bottom - tick / most * (bottom - 16)
        rows.append(f'<path d="M{LEFT - 8} {y:.1f}H{WIDTH - 100}" stroke="{INK}" stroke-opacity="0.3" fill="none"/>')
        rows.append(text(LEFT - 14, y + 4, f"{tick:g} {unit}", "end"))
    for colour, (word, values) in zip(COLOURS, series.items(), strict=False):
        places = [(LEFT + at * step, bottom - value / most * (bottom - 16)) for at, value in enumerate(values)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        rows.append(f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
        rows += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in places]
        rows.append(f'<text x="{places[-1][0] + 10:.1f}" y="{places[-1][1] + 4:.1f}" fill="{colour}">{word}</text>')
    return svg(WIDTH, height, name, rows)


def _timed(bench: str, params: Mapping[str, Any], first_ns: float | None = None) -> Callable[[], str]:
    def draw() -> str:
        run = kb.run(f"{bench}.py", "tiny", dict(params), timeline=True)
        what = ", ".join(f"{name}={value}" for name, value in params.items())
        return timeline(f"PE 0 in {bench} of tiny ({what})", run, first_ns)

    return draw


def _what_if() -> str:
    """Draw the table of the tutorial: its block prints rows of numbers under names of bandwidths."""
    (page,) = (name for name in check_docs.PAGES if name.endswith("07_what_if.md"))
    (shown,) = (block.text for block in check_docs.blocks(page) if block.language == "output")
    head, *rows = shown.splitlines()
    channels = [f"{word} GB/s" for word in head.split()[2::2]]
    columns = list(zip(*([float(word) for word in row.split()[2:]] for row in rows), strict=True))
    clocks = [" ".join(row.split()[:2]) for row in rows]
    series = dict(zip(channels, columns, strict=True))
    return lines("kernel time against the clock of the matrix unit, by bandwidth of a channel", clocks, series, "us")


def _machine(preset: str, view: str) -> Callable[[], str]:
    def draw() -> str:
        file = Path(f"{view}.svg")
        shown = check_docs.Command(f"kernbench topology show {preset} --svg {file} --view {view}", "")
        code, told = check_docs.execute(shown, check_docs.load_plugins(check_docs.ENTRY_POINTS[:-1], installed=False))
        if code != 0:
            raise SystemExit(told)
        return file.read_text(encoding="utf-8")

    return draw


#: What a run goes through: a step, what goes on in it, and what leaves it for the next.
FLOW = (
    ("Kernel", ("Triton script, bench", "or collective"), "commands"),
    ("Simulate", ("messages and units,", "under contention"), "op log"),
    ("Verify", ("data computed from", "the log, races, bounds"), "times, data"),
    ("Explain", ("what limits it,", "and what to change"), ""),
)


def flow() -> str:
    """Return the steps of a run as boxes with arrows."""
    box, gap = 148, 74
    rows = []
    for at, (step, lines_of_it, leaves) in enumerate(FLOW):
        x = at * (box + gap) + 1
        rows.append(f'<rect x="{x}" y="1" width="{box}" height="78" rx="8" fill="none" stroke="{INK}"/>')
        rows.append(f'<rect x="{x}" y="1" width="{box}" height="4" rx="2" fill="{COLOURS[at]}"/>')
        rows.append(f'<g font-size="15" font-weight="600">{text(x + box / 2, 28, step, "middle")}</g>')
        rows.extend(text(x + box / 2, 49 + 16 * row, words, "middle") for row, words in enumerate(lines_of_it))
        if leaves:
            tip = x + box + gap
            rows.append(f'<path d="M{x + box} 40H{tip - 7}" stroke="{INK}"/>')
            rows.append(f'<path d="M{tip} 40l-8 -4v8z"/>')
            rows.append(f'<g font-size="11">{text(x + box + gap / 2, 32, leaves, "middle")}</g>')
    return svg(len(FLOW) * (box + gap) - gap + 2, 80, "From a kernel to an explanation", rows)


PICTURE: Mapping[str, Callable[[], str]] = {
    "leaky_512": _timed("leaky", {"block": 512}, 2000),
    "leaky_4096": _timed("leaky", {"block": 4096}, 2000),
    "matmul_waits": _timed("tiled_matmul", {"ahead": False}, 4000),
    "matmul_ahead": _timed("tiled_matmul", {"ahead": True}, 4000),
    "attention_first": _timed("attention", {}, 6000),
    "attention_ahead": _timed("attention", {"BK": 128, "ahead": True}, 6000),
    "what_if": _what_if,
    "flow": flow,
    "package": _machine("default", "sip"),
    "cube": _machine("tiny", "cube"),
    "pe": _machine("tiny", "pe"),
}


def draw(names: Sequence[str] = tuple(PICTURE)) -> dict[str, str]:
    """Return pictures by name, drawn in a folder that has the tutorials' files."""
    pages = [page for page in check_docs.PAGES if page.startswith("docs/tutorials/")]
    with check_docs.scratch_folder():
        for block in (block for page in pages for block in check_docs.blocks(page)):
            if block.file is not None:
                Path(block.file).write_text(block.text, encoding="utf-8")
        return {name: PICTURE[name]() for name in names}


def main(names: Sequence[str]) -> None:
    """Write the pictures."""
    PICTURES.mkdir(exist_ok=True)
    for name, picture in draw(names or tuple(PICTURE)).items():
        (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
