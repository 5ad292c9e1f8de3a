"""The site of a folder: its index, its pages, and what it shows to nobody."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlencode

import attrs
import pytest

from kernbench_builtin.machines.drawing import draw_machine
from kernbench_builtin.pages.report import SweepPage
from kernbench_builtin.pages.web.loopback import Answer
from kernbench_builtin.pages.web.saved_site import SavedSite
from kernbench_core.errors import UsageError
from tests.builtin.report.pages import result, shipped
from tests.builtin.report.sweep.made_sweep import point, sweep_page
from tests.builtin.report.sweep.packed_columns import read
from tests.core.small_machine import machine


def saved(folder: Path, **changed: object) -> Path:
    """Write a result into a folder."""
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps({**result(), **changed}))
    return folder


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Return a folder with two runs, one deeper than the other, and other things."""
    saved(tmp_path / "a")
    saved(tmp_path / "deep" / "er" / "b", verified=False, bench="<b>")
    (tmp_path / "notes.txt").write_text("secret")
    return tmp_path


def site(top: Path) -> SavedSite:
    """Return the site of a folder, with core's sections alone."""
    return SavedSite(top, shipped())


def asked(top: Path, *at: str) -> Answer | None:
    """Return the page of runs, as an address asks for them."""
    return site(top).answer("/run", parse_qs(urlencode([("at", each) for each in at])))


def index(top: Path) -> str:
    """Return the text of the index."""
    answer = site(top).answer("/", {})
    assert answer is not None and answer.status == 200
    return answer.body.decode()


def test_the_index_lists_the_runs_with_their_verdicts(top: Path) -> None:
    """The latest first, by path; names are texts, whatever they hold."""
    os.utime(top / "a" / "result.json", (2e9, 2e9))
    text = index(top)
    assert text.index('href="/run?at=a"') < text.index('href="/run?at=deep%2Fer%2Fb"')
    assert "WRONG" in text and "&lt;b&gt;" in text and "<b>" not in text and "secret" not in text


def test_a_folder_without_runs_says_how_to_write_one(tmp_path: Path) -> None:
    """The page is there, and fills when it is loaded again."""
    assert f"kernbench run gemm --out {tmp_path}/first" in index(tmp_path)
    saved(tmp_path / "first")
    assert 'href="/run?at=first"' in index(tmp_path)


def test_a_folder_that_is_a_run_is_shown_by_its_name(tmp_path: Path) -> None:
    """Its path below itself is a point."""
    assert f'<a href="/run?at=.">{saved(tmp_path / "alone").name}</a>' in index(tmp_path / "alone")
    answer = asked(tmp_path / "alone", ".")
    assert answer is not None and "<title>alone – kernbench</title>" in answer.body.decode()


def test_runs_stand_side_by_side(top: Path) -> None:
    """Each once, under its path."""
    answer = asked(top, "a", "deep/er/b", "a")
    assert answer is not None
    assert "<title>a, deep/er/b – kernbench</title>" in answer.body.decode()


def test_more_than_six_are_refused_in_a_sentence(tmp_path: Path) -> None:
    """Six are not."""
    names = [saved(tmp_path / f"r{number}").name for number in range(7)]
    six, seven = asked(tmp_path, *names[:6]), asked(tmp_path, *names)
    assert six is not None and six.status == 200
    assert seven is not None and "At most 6 runs stand side by side, not 7; choose fewer." in seven.body.decode()


def test_without_a_choice_it_asks_for_one(top: Path) -> None:
    """The button is there without one."""
    answer = asked(top)
    assert answer is not None and "Choose one or more of the runs, and then to show them." in answer.body.decode()


@pytest.mark.parametrize("at", ["x", "..", "../a", "a/../a", "/etc", "a/", "notes.txt", "deep", "%2e%2e", "a\0", "./a"])
def test_only_what_the_index_lists_is_shown(top: Path, at: str) -> None:
    """No other spelling of a run, nor anything that is none: one that was deleted is told so."""
    for folder, name in ((top, at), (top / "deep", "../a")):
        answer = asked(folder, name)
        assert answer is not None and answer.status == 404
        said = f"There is no run {name!r} in this folder: it was deleted or renamed, or it never was there."
        assert said in html.unescape(answer.body.decode())


def test_links_lead_nowhere(top: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A linked folder is not seen; a run with a linked file is listed with a sentence, and shows nothing of it."""
    elsewhere = saved(tmp_path_factory.mktemp("elsewhere") / "run", bench="elsewhere-only")
    (top / "linked").symlink_to(elsewhere)
    (top / "sly").mkdir()
    (top / "sly" / "result.json").symlink_to(elsewhere / "result.json")
    text = index(top)
    assert "at=linked" not in text and "elsewhere-only" not in text
    assert f"file {str(top / 'sly' / 'result.json')!r} must not be a link; put the file itself there.".replace(
        "'", "&#39;"
    ) in text
    answer = asked(top, "sly")
    assert answer is not None and answer.status == 404 and "elsewhere-only" not in answer.body.decode()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "must be whole JSON, and is cut off or changed; run it again with --out."),
        ('{"schema": "kernbench.run/9"}', "a later kernbench wrote it; use a newer kernbench."),
        ("{}", "must have schema"),
    ],
)
def test_what_cannot_be_read_is_listed_with_its_sentence(top: Path, text: str, said: str) -> None:
    """The others are shown as ever; its own page says the same."""
    broken = saved(top / "broken")
    (broken / "result.json").write_text(text)
    assert said in index(top) and 'href="/run?at=a"' in index(top)
    answer = asked(top, "broken")
    assert answer is not None and answer.status == 404 and said in answer.body.decode()


def test_a_timeline_that_is_cut_off_is_seen_in_the_index(top: Path) -> None:
    """Its end is missing, where an archive says what it holds."""
    path = top / "a" / "timeline.npz"
    path.write_bytes(b"PK\3\4")
    assert f"timeline &#39;{path}&#39; is cut off or changed; run it again with --out." in index(top)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    """A file, and nothing."""
    file = tmp_path / "file"
    file.write_text("")
    for path, what in ((file, "is a file"), (tmp_path / "none", "does not exist")):
        with pytest.raises(UsageError) as caught:
            site(path)
        assert str(caught.value) == f"{str(path)!r} must be a folder, and {what}; give the one that your runs are in."


def test_a_machine_that_is_damaged_is_seen_in_the_index(top: Path) -> None:
    """With its sentence; once it is mended, it is shown again."""
    path = top / "a" / "machine.json"
    path.write_text("{}")
    said = f"file &#39;{path}&#39;: schema must be &#39;kernbench.machine/1&#39;, not None; run it again with --out."
    assert said in index(top) and 'href="/run?at=a"' not in index(top)
    path.write_text(json.dumps(draw_machine(machine()).to_json()))
    assert said not in index(top) and 'href="/run?at=a"' in index(top)


def swept(folder: Path, points: int = 2) -> Path:
    """Write what looks like a sweep into a folder, with a run that is kept of a point."""
    (folder / "points").mkdir(parents=True)
    (folder / "sweep.json").write_text("{}")
    for number in range(points):
        (folder / "points" / f"{number}.json").write_text("{}")
    saved(folder / "runs" / "ab")
    return folder


def site_of_sweeps(top: Path, fault: str = "") -> SavedSite:
    """Return a site that reads any sweep as one point, whose run may be kept."""

    def one_point(folder: Path, run_at: Callable[[Path], str]) -> SweepPage:
        if fault:
            raise UsageError(fault)
        page = sweep_page([point(0, {"x": 1}, {"time_ns": 1.0, "area": 2.0})])
        return attrs.evolve(page, links=[run_at(folder / "runs" / "ab")], name=f"{folder.name} is read")

    return SavedSite(top, shipped(), read_sweep=one_point)


def answered(site: SavedSite, path: str, **query: str) -> Answer:
    """Return what a site answers."""
    found = site.answer(path, parse_qs(urlencode(query)))
    assert found is not None
    return found


def test_sweeps_stand_above_the_runs_and_lead_to_those_that_are_kept(top: Path) -> None:
    """With how many points they have so far; their page has the address of a point's run, which the site shows."""
    swept(top / "deep" / "<s>", points=3)
    site = site_of_sweeps(top)
    text = answered(site, "/").body.decode()
    assert 'href="/sweep?at=deep%2F%3Cs%3E"' in text and 'data-head="points so far">3</td>' in text
    assert "<s>" not in text
    assert "<title>Runs and sweeps in " in text and 'href="/run?at=deep%2F%3Cs%3E%2Fruns%2Fab"' in text
    page = answered(site, "/sweep", at="deep/<s>").body.decode()
    assert "&lt;s&gt; is read" in page
    (link,) = read(json.loads(page.partition('data-of="sweep" data-run="0">')[2].partition("</script>")[0])["link"])
    path, _, query = link.partition("?")
    assert answered(site, path, **dict(parse_qsl(query))).status == 200


def test_a_site_that_reads_no_sweeps_shows_their_runs_alone(top: Path) -> None:
    """And has nothing at the address of a sweep."""
    swept(top / "s")
    text = index(top)
    assert "Sweeps" not in text and 'href="/run?at=s%2Fruns%2Fab"' in text
    assert site(top).answer("/sweep", {"at": ["s"]}) is None


@pytest.mark.parametrize("name", ["", "a", "..", "/", "s/points", "s/runs/ab"])
def test_no_other_folder_is_shown_as_a_sweep(top: Path, name: str) -> None:
    """Whatever the address asks for."""
    swept(top / "s")
    answer = answered(site_of_sweeps(top), "/sweep", at=name)
    assert answer.status == 404 and "There is no sweep " in answer.body.decode()


def test_a_sweep_that_cannot_be_read_says_why(top: Path) -> None:
    """In the sentence of whoever reads it."""
    swept(top / "s")
    text = answered(site_of_sweeps(top, "it is of another version."), "/sweep", at="s").body.decode()
    assert "This sweep cannot be shown" in text and "it is of another version." in text


@pytest.mark.parametrize("link", ["sweep.json", "points", "points/0.json"])
def test_a_link_in_a_sweep_is_not_followed(top: Path, link: str) -> None:
    """To a file, or to a folder, that nobody meant to show."""
    folder = swept(top / "s")
    (folder / link).rename(top / "elsewhere")
    (folder / link).symlink_to(top / "elsewhere")
    text = html.unescape(answered(site_of_sweeps(top), "/sweep", at="s").body.decode())
    assert f"file {str(folder / link)!r} must not be a link; put the file itself there." in text
