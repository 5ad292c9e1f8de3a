"""Decision records name what exists: files, names of the source, options, each other; alike in both languages."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
PACKAGES = ("kernbench_core", "kernbench_builtin", "kernbench_ccl", "plugins_example")
RECORDS = sorted(file.relative_to(REPO).as_posix() for file in (REPO / "docs").glob("adr*/ADR-*.md"))
ABOUT = [f"docs/{folder}/README.md" for folder in ("adr", "adr-proposed", "adr-history")]
BOTH = sorted(file.name for file in (REPO / "docs/adr").glob("ADR-*.md"))
#: What the founding table asks for: a number, once given, stays.
FOUNDING = (
    *("0007", "0009", "0010", "0012", "0013", "0014", "0015", "0016", "0017", "0020", "0023", "0024", "0027", "0033"),
    *("0034", "0035", "0036", "0037", "0038", "0039", "0040", "0041", "0042"),
    *("0045", "0046", "0047", "0048", "0049", "0050", "0051", "0052", "0053"),
)

#: Words that Korean pages do not use, by the one that they do.
KOREAN_WORDS = {
    "기계": "머신", "네트워크": "network", "버퍼": "buffer", "지연": "latency", "큐잉": "queueing",
    "집합 통신": "컬렉티브",
}  # fmt: skip
#: Words that Korean pages write in Korean.
WRITTEN_OUT = re.compile(r"(?<![\w./*-])(kernel|collective|machine|package|tensor|tile|block|host|engine)(?=[가-힣])")

_BLOCK = re.compile(r"^(```+|~~~+).*?^\1$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_CALL = re.compile(r"([\w.]+)\(.*\)")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_FILE = re.compile(r"(?:[\w.-]+/)*[\w.-]+\.(?:py|md|yaml|toml|json|csv|html)|[\w.-]+/(?:[\w.-]+/?)*")
_OPTION = re.compile(r"--[a-z][a-z-]*")
_NODE = re.compile(r"sip[0-9N]|fabric\.")


@cache
def source() -> str:
    """Return the source of the packages as one text."""
    files = (file for package in PACKAGES for kind in ("*.py", "*.yaml") for file in (REPO / package).rglob(kind))
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@cache
def words() -> frozenset[str]:
    """Return every word of the source."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", source()))


@cache
def defined() -> frozenset[str]:
    """Return the classes, functions and aliases of the source."""
    pairs = re.findall(r"^\s*(?:class|(?:async )?def) (\w+)|^([A-Z]\w*)\b.*? = ", source(), re.MULTILINE)
    return frozenset(name for pair in pairs for name in pair)


def spans(text: str) -> Iterator[str]:
    """Give what stands in backticks, blocks of code left out."""
    yield from _SPAN.findall(_BLOCK.sub("", text))


def importable(name: str) -> bool:
    """Tell whether a dotted name leads to a module, or to something in one."""
    module, *rest = name.split(".")
    found: object = importlib.import_module(module)
    for part in rest:
        module += f".{part}"
        if not hasattr(found, part):
            try:
                found = importlib.import_module(module)
            except ModuleNotFoundError:
                return False
        else:
            found = getattr(found, part)
    return True


def exists(span: str) -> bool:
    """Tell whether what a record names is there; what is neither file, name nor option always is.

    A name that is gone, or that only a founding record gave, stands in double backticks.
    """
    call = _CALL.fullmatch(span)
    name = call.group(1) if call else span
    if not call and _FILE.fullmatch(span):
        inside = "/" not in span and any(next((REPO / package).rglob(span), None) for package in PACKAGES)
        if inside or (REPO / span).exists() or f'"{span}"' in source():
            return True
        first, *rest = span.split("/")
        return bool(rest) and not (REPO / first).exists() and "." not in span and all(map(exists, [first, *rest]))
    if _OPTION.fullmatch(span):
        field = re.escape(span[2:].replace("-", "_"))
        return f'"{span}' in source() or bool(re.search(rf"^    {field}: Annotated", source(), re.MULTILINE))
    if not _DOTTED.fullmatch(name) or _NODE.match(name):
        return True
    if name.startswith(("kernbench_core", "kernbench_builtin", "kernbench_ccl")):
        return importable(name)
    *owners, last = name.split(".")
    needed = [owner for owner in owners if re.search("[a-z][A-Z]", owner)]
    if call or re.search("[a-z][A-Z]", last):
        needed.append(last)
    return defined().issuperset(needed) and words().issuperset([*owners, last])


def test_the_names_of_records_are_found() -> None:
    assert RECORDS
    missing = {page: [*filter(lambda span: not exists(span), spans((REPO / page).read_text()))] for page in RECORDS}
    assert {page: found for page, found in missing.items() if found} == {}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("kernbench_core/wire.py", "kernbench_core/wires.py"),
        ("docs/adr/", "docs/ard/"),
        ("base.yaml", "bass.yaml"),
        ("pyproject.toml", "project.toml"),
        ("kernbench_core.fabric", "kernbench_core.fabrics"),
        ("kernbench_core.fabric.Fabric", "kernbench_core.fabric.Fabrics"),
        ("ComponentBase", "ComponentBases"),
        ("ComponentBase.overhead", "ComponentBase.overhed"),
        ("formula_latency()", "formula_latencies()"),
        ("Launch.target_start_ns", "target_start_ns()"),
        ("tl.load(…, wait=False)", "tl.lode(…, wait=False)"),
        ("tl.load", "tl.lode"),
        ("ipcq_copy", "ipcq_copied"),
        ("DMA_READ", "DMA_RED"),
        ("TileToken/DMA_READ", "TileToken/DMA_RED"),
        ("--verify-data", "--verify-date"),
        ("start + n / bw", "start_of_it"),
        ("sip0.cube3.r1c2", "sap0.cube3.r1c2"),
    ],
)
def test_what_counts_as_there(right: str, wrong: str) -> None:
    assert (exists(right), exists(wrong)) == (True, False)


def test_blocks_of_code_are_not_searched() -> None:
    assert list(spans("a `b` c\n\n```python\n`d`\n```\n\n`e`, ``f``\n")) == ["b", "e"]


def test_the_founding_numbers_stand() -> None:
    written = {name[4:8] for name in BOTH}
    assert [number for number in FOUNDING if number not in written] == []


def test_records_name_records_that_exist() -> None:
    known = {Path(page).name[4:8] for page in RECORDS}
    named = {page: set(re.findall(r"ADR-(\d{4})", (REPO / page).read_text())) - known for page in RECORDS}
    assert {page: found for page, found in named.items() if found} == {}


@pytest.mark.parametrize("name", BOTH)
def test_a_record_is_a_page_in_two_languages(name: str) -> None:
    """The English one has no word of Korean, the Korean one has some in every section but Status."""
    english, korean = ((REPO / folder / name).read_text() for folder in ("docs/adr", "docs/adr-ko"))
    assert len(english.splitlines()) <= 80
    assert re.findall("[가-힣]+", english) == []
    sections = re.split(r"^## (?!Status)", _BLOCK.sub("", korean), flags=re.MULTILINE)[1:]
    assert [section for section in sections if not re.search("[가-힣]", section)] == []


@pytest.mark.parametrize("page", ["docs/ko/glossary.md", *(f"docs/adr-ko/{name}" for name in BOTH)])
def test_korean_pages_use_one_word_for_a_thing(page: str) -> None:
    text = (REPO / page).read_text()
    assert {word: korean for word, korean in KOREAN_WORDS.items() if word in text} == {}
    assert WRITTEN_OUT.findall(_SPAN.sub("`", _BLOCK.sub("", text))) == []


@pytest.mark.parametrize("name", BOTH)
def test_both_languages_name_the_same_things(name: str) -> None:
    english, korean = ((REPO / folder / name).read_text() for folder in ("docs/adr", "docs/adr-ko"))
    assert set(spans(english)) ^ set(spans(korean)) == set()
    assert sorted(set(re.findall(r"ADR-\d{4}", english))) == sorted(set(re.findall(r"ADR-\d{4}", korean)))


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *ABOUT, *RECORDS])
def test_links_of_records_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", (REPO / page).read_text())
    assert [target for target in targets if not (REPO / page).parent.joinpath(target).exists()] == []
