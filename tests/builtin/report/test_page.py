"""The page: whole, offline, with every section that is registered, whatever the names of things are."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from markupsafe import escape

import kernbench_core as kb
from kernbench_builtin.pages.report import RunPage, Section, render_report
from kernbench_builtin.pages.report.ledger_section import LEDGER
from kernbench_builtin.pages.report.run_section import RUN, command
from kernbench_builtin.pages.report.summary_section import SUMMARY
from kernbench_core.errors import KernbenchWarning, PluginError
from kernbench_core.plugins import Provider, Registry, ReportSectionEntry
from tests.builtin.report.pages import HOSTILE, Elements, of_two, registry, result, shipped


def test_sections_stand_in_their_order_and_those_that_are_empty_do_not() -> None:
    """By `order`; a section without HTML for any run is left out with its link."""
    page = render_report(
        [RunPage("r", result())],
        registry(
            second=Section("Second", 20, lambda run: f"<p>{run.name}</p>"),
            first=Section("First", 10, lambda run: "<p>1</p>"),
            none=Section("None", 1, lambda run: ""),
        ),
    )
    assert re.findall(r'<li><a href="#(\w+)">', page) == ["first", "second"]
    assert re.findall(r'<section id="(\w+)"', page) == ["first", "second"]


def test_data_reaches_the_script_of_its_section_and_run() -> None:
    """As JSON in an element that is not run; several runs stand side by side, each with its own."""
    section = Section("S", 1, lambda run: "<p>x</p>", lambda run: {"name": run.name}, ("kernbench.section('s')",))
    page = render_report([RunPage("a", result()), RunPage(HOSTILE, result())], registry(s=section))
    data = [(attrs, text) for tag, attrs, text in Elements(page).texts if attrs.get("type") == "application/json"]
    assert [(attrs["data-of"], attrs["data-run"]) for attrs, _ in data] == [("s", "0"), ("s", "1")]
    assert [json.loads(text) for _, text in data] == [{"name": "a"}, {"name": HOSTILE}]


POINT = {
    "achieved": 388.42, "share": 0.083, "bound": "memory", "hbm_bytes": 114688, "intensity": 11.43,
    "resources": [
        {"kind": "pe_gemm", "resources": 4, "achieved": 6042.0, "peak": 16384.0, "unit": "GFLOP/s", "share": 0.37,
         "busiest": "pe0.pe_gemm"},
        {"kind": "hbm_ctrl", "resources": 4, "achieved": 33.99, "peak": 4096.0, "unit": "GB/s", "share": 0.01,
         "busiest": "hbm_ctrl0"},
    ],
}  # fmt: skip


def test_the_summary_tells_what_all_kernels_did_together() -> None:
    """Not what the longest of several launches did: the sums of the text report, and that they are of kernels."""
    longest = {"kernel": "k", "injected_ns": 0.0, "completed_ns": 90.0, "path": [], "lines": [], "balance": None,
               "roofline": {**POINT, "achieved": 555.0, "hbm_bytes": 1024}}  # fmt: skip
    told = SUMMARY.html(RunPage("r", result(kernels={"roofline": POINT}, explain={"launches": [longest]})))
    cards = dict(re.findall(r"<dt>(.*?)</dt><dd><b>(.*?)</b>", told))
    assert (cards["achieved"], cards["HBM traffic"]) == ("388.4 GFLOP/s", "112 KiB")
    assert "<dt>achieved</dt><dd><b>388.4 GFLOP/s</b><span>in kernels</span>" in told
    assert "<span>11.43 FLOP/B, in kernels</span>" in told
    for kernels in (None, {"roofline": None}):
        assert "achieved" not in SUMMARY.html(RunPage("r", result(kernels=kernels)))


def test_pes_that_run_nothing_count_among_those_of_the_machine() -> None:
    """With a timeline, which has no track of them, and without one."""

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x + tl.arange(0, 64))

    run = kb.run(lambda rt: rt.launch(kernel, rt.zeros((64,)), grid=(2,)), "tiny", timeline=True)
    assert run.timeline is not None and sum(track.kind == "kernel" for track in run.timeline.tracks) == 2
    for timeline in (run.timeline, None):
        told = SUMMARY.html(RunPage("r", run.to_json(), timeline=timeline))
        assert "<dt>PEs</dt><dd><b>2</b><span>of 4 run programs</span>" in told


def test_one_checked_tensor_is_told_as_one() -> None:
    """In the ledger and beside the verdict on top."""
    for checked, wrong, said, beside in (
        (1, 0, "The one checked tensor is right; the largest", "1 checked<"),
        (3, 0, "All 3 checked tensors are right; the largest", "3 checked<"),
        (1, 1, "1 of 1 checked tensor is wrong.", "1 of 1 checked tensor is wrong<"),
        (3, 1, "1 of 3 checked tensors is wrong.", "1 of 3 checked tensors is wrong<"),
        (3, 2, "2 of 3 checked tensors are wrong.", "2 of 3 checked tensors are wrong<"),
    ):
        page = RunPage("r", result(verified=not wrong, checked=checked, wrong=wrong, max_abs_error=0.0))
        assert said in LEDGER.html(page) and beside in SUMMARY.html(page)


def test_rates_of_the_ledger_stand_in_the_units_that_read_best() -> None:
    """Thousands of GFLOP/s are TFLOP/s, thousands of GB/s are TB/s, as in the terminal."""
    launch = {"kernel": "k", "injected_ns": 0.0, "completed_ns": 90.0, "path": [], "lines": [], "balance": None,
              "roofline": POINT}  # fmt: skip
    told = LEDGER.html(RunPage("r", result(explain={"launches": [launch]})))
    rows = [re.findall(r"<td.*?>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", told, re.DOTALL)]
    assert ["pe_gemm", "4", "6.042 TFLOP/s", "16.38 TFLOP/s", "37.0%", "pe0.<wbr>pe_gemm"] in rows
    assert ["hbm_ctrl", "4", "33.99 GB/s", "4.096 TB/s", "1.0%", "hbm_ctrl0"] in rows


def test_a_run_that_was_not_explained_tells_what_its_result_has() -> None:
    """Phases, launches under the roof, and the busiest places: of kernels first, then kinds that only the host used."""
    launch = {"kernel": "k", "started_ns": 2.0, "ended_ns": 7.0, "busiest": [], "roofline": POINT}
    busy = {"utilisation": 0.25, "alike": 4, "mean_utilisation": 0.125}
    given = result(
        total_ns=10.0, phases={"kernel": 7.5, "device_to_host": 2.5}, launches=[launch],
        kernels={"busiest": [{**busy, "name": "pe0", "kind": "pe", "run_utilisation": 0.2}]},
        busiest=[{**busy, "name": "pe1", "kind": "pe"}, {**busy, "name": "host->io", "kind": "pcie"}],
    )  # fmt: skip
    told = LEDGER.html(RunPage("r", given))
    rows = [re.findall(r"<td[^>]*>(?:<span.*?</span>)?(.*?)</td>", row, re.DOTALL)
            for row in re.findall(r"<tr>(.*?)</tr>", told, re.DOTALL)]  # fmt: skip
    texts = [[cell.strip() for cell in row if "svg" not in cell] for row in rows]
    assert ["kernel", "7.5 ns", "75.0%"] in [row[:3] for row in texts]
    assert ["device to host", "2.5 ns", "25.0%"] in [row[:3] for row in texts]
    assert "Launch 1: <code>k</code>, 5 ns from 2 ns</summary>" in told
    assert re.findall(r"<title>(.*?)</title></circle>", told) == ["1: k: 11.43 FLOP/B, 388.4 GFLOP/s"]
    assert [[cell for cell in row if cell] for row in texts if row and row[0] in ("pe0", "pe1", "host → io")] == [
        ["pe0", "pe", "25.0%", "12.5% of 4", "20.0%"],
        ["host → io", "pcie", "–", "–", "25.0%"],
    ]
    assert "run it again with <code>--explain</code>" in told and "Critical paths of launches" not in told


def hostile(value: Any) -> Any:
    """Return JSON whose texts all try to break out."""
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, Mapping):
        return {name: hostile(each) for name, each in value.items()}
    return [hostile(each) for each in value] if isinstance(value, list) else value


def test_no_name_breaks_out_of_the_page() -> None:
    """The elements are the same whatever benches, kernels, files, tensors and components are called."""
    side = {"op_id": None, "call": "tl.load", "pe": "pe0", "line": "/a/b.py:3", "issued_ns": 1.0, "landed_ns": None}
    explain = {
        "where": [dict.fromkeys(("phase", "sort", "kind", "waited_at"), "k") | {"ns": 5.0}],
        "ledger": [{"phase": "kernel", "what": "x", "messages": 1, "total_ns": 1.0, "propagation": 1.0,
                    "serialisation": 0.0, "overhead": 0.0, "queueing": 0.0, "service": 0.0}],
        "queueing": [{"place": "p", "kind": "k", "waits": 1, "total_ns": 1.0, "mean_ns": 1.0, "longest_ns": 1.0}],
        "launches": [{"kernel": "k", "injected_ns": 0.0, "completed_ns": 9.0, "path": [], "roofline": None,
                      "balance": None, "lines": [{"what": "tl.load", "line": "/a/b.py:3", "ops": 1, "segments": 1,
                                                  "ns": 1.0, "share": 0.5, "parts": [1.0, 0, 0, 0, 0]}]}],
        "utilisation": {"bin_ns": 1.0, "kinds": [{"kind": "k", "resources": 1, "utilisation": [0.5]}]},
        "filling": [],
    }  # fmt: skip
    more = {
        "explain": explain,
        "hazards": [{"kind": "k", "name": "t", "index": [1], "byte": 0, "nbytes": 4, "first": side, "second": side,
                     "count": 1}],
        "rows": [{"a": "x"}],
        "warnings": ["w"],
        "failures": ["f"],
        "not_modelled": [{"sentence": "s", "component": "c", "count": 1}],
        "launches": [{"kernel": "k", "started_ns": 2.0, "ended_ns": 7.0,
                      "busiest": [{"name": "p", "utilisation": 0.5}]}],
        "kernels": {"busiest": [{"name": "p", "kind": "k", "utilisation": 0.5}]},
        "manifest": {"bench": {"name": "b"}, "plugins": [{"plugin": "p", "distribution": "d", "version": "1"}],
                     "versions": {"v": "1"}, "configuration": {"k": "v"}},
    }  # fmt: skip
    plain = Elements(render_report([RunPage("run", result(**more))], shipped())).found
    page = render_report([RunPage(f"run{HOSTILE}", {**hostile(result(**more)), "verified": None})], shipped())
    told = Elements(page).found
    assert [tag for tag, _ in told] == [tag for tag, _ in plain]
    assert not [attrs for _, attrs in told if any(name.startswith("on") for name in attrs)]
    assert "{{ 7*7 }}" in page and "onerror=&#34;alert(2)&#34;&gt;49" not in page


def test_the_page_fetches_nothing_and_runs_its_own_scripts_only() -> None:
    """Its policy forbids everything but the scripts and styles in it, by their hashes; no element leads outside."""
    page = render_report([RunPage("r", result())], shipped())
    elements = Elements(page)
    policies = [attrs["content"] for tag, attrs in elements.found if attrs.get("http-equiv")]
    (policy,) = policies
    assert policy is not None and policy.startswith("default-src 'none'; ")
    for tag, attrs, text in elements.texts:
        if attrs.get("type") != "application/json":
            told = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{told}'" in policy.partition(f"{tag}-src")[2].partition(";")[0]
    assert "unsafe" not in policy
    leads = [attrs.get(name) or "#" for _, attrs in elements.found for name in ("href", "src")]
    assert all(lead.startswith("#") for lead in leads)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert not [attrs for _, attrs in elements.found if "style" in attrs]


NO_SCRIPT = Section("S", 1, lambda run: "<p>x</p>", scripts=("'</SCRIPT>'",))


@pytest.mark.parametrize(
    ("section", "told"),
    [
        (Section("S", 1, lambda run: 1 / 0), "raised ZeroDivisionError: division by zero"),  # type: ignore[arg-type, return-value]
        (Section("S", 1, lambda run: 3), "raised TypeError: html must return a text, not 3"),  # type: ignore[arg-type, return-value]
        (Section("S", 1, lambda run: "x", lambda run: {"a": object()}),
         "raised TypeError: Object of type object is not JSON serializable"),
        (Section("S", 1, lambda run: sys.exit(3)), "raised SystemExit: 3"),
        (Section("S", "1", lambda run: "x"), "must have a text for title and a number for order, not 'S' at '1'"),  # type: ignore[arg-type]
        (NO_SCRIPT, "must have no </script in its texts of scripts, which ends the element"),
        (3, "must be a Section of kernbench_builtin.pages.report, not 3"),
    ],
)  # fmt: skip
def test_a_section_that_fails_is_blamed_on_its_plug_in(section: Any, told: str) -> None:
    """A line in its place, and a warning, name the section and its distribution; all others stand as without it."""
    good = Section("Good", 5, lambda run: "<p>good</p>", scripts=("kernbench.section('good')",))
    with pytest.warns(KernbenchWarning) as warned:
        page = render_report([RunPage("r", result())], registry(bad=section, good=good))
    sentence = f"section of the report 'bad' of acme 1.0 {told}; repair or reinstall acme."
    more = "The page says so in its place; --strict-plugins fails instead."
    assert [str(each.message) for each in warned] == [f"{sentence} {more}"]
    in_place = page.partition('<section id="bad"')[2].partition("</section>")[0]
    assert f"<p>This section cannot be shown: {escape(sentence)}</p>" in in_place
    assert '<article class="run" data-run="0">' in in_place  # no script is called for it
    assert "<p>good</p>" in page and "kernbench.section('good')" in page
    with pytest.raises(PluginError) as caught:
        render_report([RunPage("r", result())], registry(bad=section), strict=True)
    assert str(caught.value).partition("\n")[0] == sentence


def test_a_section_that_fails_for_one_run_shows_the_others() -> None:
    """Its line stands in the column of that run."""
    section = Section("S", 1, lambda run: f"<p>{1 / run.result['ops']}</p>")
    with pytest.warns(KernbenchWarning, match="division by zero"):
        page = render_report([RunPage("a", result(ops=0)), RunPage("b", result(ops=4))], registry(s=section))
    assert "<p>0.25</p>" in page
    assert page.count("This section cannot be shown") == 1


def test_the_ledger_tells_the_longest_first() -> None:
    """Whatever phase it is of; what is beyond the first dozen can be opened."""
    blank = dict.fromkeys(("phase", "sort", "waited_at"), "k")
    where = [{**blank, "kind": f"kind{ns}", "ns": float(ns)} for ns in (*range(1, 8), *range(20, 8, -1))]
    explain = {"where": where, "utilisation": {"bin_ns": 0, "kinds": []}}
    page = render_report([RunPage("r", result(explain=explain))], shipped())
    told = re.findall(r"<td>kind(\d+)</td>", page)
    assert told == [str(each) for each in sorted((int(row["ns"]) for row in where), reverse=True)]
    assert "<summary>7 more</summary>" in page


def test_the_command_is_what_a_shell_takes() -> None:
    """Parameters quoted, files by name, what is as by default left out."""
    manifest = {"bench": {"name": "gemm"}, "seed": 3, "verify_data": True, "data": True}
    params = {"M": 4, "a": None, "w": {"file": "x y.npy", "sha256": ""}}
    told = command(result("gemm", params=params, manifest=manifest))
    assert told == "kernbench run gemm --topology tiny -p M=4 -p 'w=x y.npy' --seed 3 --verify-data"


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (
            {"changes": {"components": "my.yaml", "set": ["a.b=3", "c='x y'"]}},
            ["--components", "my.yaml", "--set", "a.b=3", "--set", "c='x y'", "-p", "n=3"],
        ),
        ({"changes": {"components": None, "set": []}}, ["-p", "n=3"]),
        (
            {"race_by": "program", "limits": {"max_events": 2_000_000, "max_sim_ns": 5e6, "timeout_s": 60.0}},
            ["-p", "n=3", "--race-by", "program", "--max-events", "2000000", "--max-sim-time", "5e+06 ns", "--timeout",
             "60 s"],
        ),
    ],
)  # fmt: skip
def test_a_command_says_what_the_manifest_knows(manifest: dict[str, Any], words: list[str]) -> None:
    """What was laid over the topology, and limits; each word is quoted as the shell asks."""
    assert shlex.split(command(result(manifest=manifest))) == ["kernbench", "run", "toy", "--topology", "tiny", *words]


def test_the_page_says_whether_the_command_is_all() -> None:
    """Manifests of before do not know what was laid over the topology."""
    known = {"changes": {"components": None, "set": ["a=1"]}}
    assert "from the folder in which it was given:" in RUN.html(RunPage("r", result(manifest=known)))
    named = {"changes": {"components": "my.yaml", "set": []}}
    assert "given, with the files that it names there:" in RUN.html(RunPage("r", result(manifest=named)))
    assert "what was laid over that is in the manifest" in RUN.html(RunPage("r", result()))


def explained(number: int, kernel: str, ns: float, achieved: float) -> dict[str, Any]:
    """Return the explanation of a launch."""
    times = {"injected_ns": 100.0 * number, "completed_ns": 100.0 * number + ns}
    return {"kernel": kernel, **times, "path": [], "lines": [], "balance": None,
            "roofline": {**POINT, "achieved": achieved, "share": achieved / 100}}  # fmt: skip


def test_of_many_launches_the_longest_are_open() -> None:
    """A dozen are told, with those; the others are there to be opened."""
    launches = [explained(number, "k", 90.0 if number in (3, 7, 17) else number, 1.0) for number in range(1, 21)]
    told = LEDGER.html(RunPage("r", result(explain={"launches": launches})))
    found = re.findall(r'<details class="launch"( open)?><summary>Launch (\d+):', told)
    assert [int(number) for is_open, number in found if is_open] == [3, 7, 17]
    assert [int(number) for _, number in found[:13]] == [*range(1, 13), 17]
    assert "<summary>7 more launches</summary>" in told and len(found) == 20


def test_launches_at_one_place_under_the_roof_are_one_point() -> None:
    """By kernel; the caption calls them as the picture does."""
    given = [("k", 8.0), ("m", 8.0), ("k", 8.0), ("k", 4.0)]
    launches = [explained(number, kernel, 1, achieved) for number, (kernel, achieved) in enumerate(given, start=1)]
    told = LEDGER.html(RunPage("r", result(explain={"launches": launches})))
    assert re.findall(r"<span>([^<]*) of what", told) == ["1, 3: k, 8.0%", "2: m, 8.0%", "4: k, 4.0%"]
    names = re.findall(r"<title>([^<:]*): (\w)", told)
    assert names == [("1, 3", "k"), ("2", "m"), ("4", "k")]
    places = re.findall(r'y="([0-9.]+)" text-anchor="start">(1, 3|2|4)</text>', told)
    assert len({y for y, _ in places}) == 3


def test_sections_that_two_plugins_call_alike_are_both_shown() -> None:
    """With their vendors: nobody writes the name of a section, so that none has to go."""
    sections = of_two('kernbench.section("ops", () => {});')
    assert dict(sections.taken) == {}
    page = render_report([RunPage("r", result())], sections)
    assert re.findall(r'<article class="run" data-section="([^"]+)" data-run="0">\s*<p>(\w+)</p>', page) == [
        ("one:ops", "one"), ("two:ops", "two"),
    ]  # fmt: skip
    for vendor in ("one", "two"):
        assert f'const kernbench = window.kernbench.renamed("ops", "{vendor}:ops");' in page
    one = Provider("one", "one-kb", "1.0")
    given = [(ReportSectionEntry("ops", target, "Words."), one) for target in ("m:A", "m:B")]
    assert [each.reason for each in Registry("section of the report", given).taken.values()] == [
        "it must be registered once, and one-kb 1.0 registers it twice; rename one of the two"
    ]
