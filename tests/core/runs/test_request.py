"""A request has found everything that a run needs, and nothing is in its way."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import WallTime
from kernbench_core.runs.bench_run import configure
from kernbench_core.runs.options import RunCall
from kernbench_core.runs.parts import Request, parts_of, split_options
from kernbench_core.runs.request import request_of


def request(toy: ModuleType, here: Path, *args: Any, **given: Any) -> Request:
    own, asked = split_options(parts_of(toy.plugins), given)
    call = RunCall(*args, **own)
    return request_of(call, asked, configure(toy.plugins, "one"), toy.plugins, here, WallTime(None))


def test_names_become_what_they_stand_for(toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bench with its parameters, the files to write; of an absolute path only the name is shown."""
    monkeypatch.chdir(tmp_path)
    found = request(toy, tmp_path, "toy", "/etc/one.yaml", {"n": "5"}, note="t.txt", out="o")
    assert (found.bench.name, found.given, found.values) == ("toy", {"n": "5"}, {"n": 5, "fail": "", "a": None})
    assert (found.topology, found.inputs.folders) == ("one.yaml", (tmp_path,))
    assert [part.files for part in found.parts] == [{"note": tmp_path / "t.txt"}]
    assert found.out is not None and found.out.path == tmp_path / "o"
    assert request(toy, tmp_path, "toy", "my/one.yaml").out is None
    assert request(toy, tmp_path, "toy", "my/one.yaml").topology == "my/one.yaml"
    assert not any(tmp_path.glob("[to]*.*")) and not (tmp_path / "o").exists()


def test_a_file_of_a_bench_is_where_its_inputs_are_looked_for_first(toy: ModuleType, tmp_path: Path) -> None:
    """Then in the current folder."""
    (tmp_path / "benches").mkdir()
    file = tmp_path / "benches" / "mine.py"
    file.write_text("def bench(rt):\n    pass\n")
    assert request(toy, tmp_path, file).inputs.folders == (tmp_path / "benches", tmp_path)


@pytest.mark.parametrize(
    ("given", "what", "path"),
    [
        ({"note": "one.txt", "components": "one.txt"}, "note", "one.txt"),
        ({"note": "o/manifest.json.txt", "out": "o"}, None, None),
        ({"note": "o/oplog/a.txt", "out": "o"}, "note", "o/oplog/a.txt"),
        ({"note": "./b.txt", "topology": "b.txt"}, "note", "./b.txt"),
    ],
)
def test_a_file_is_not_written_over_another_of_the_run(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], what: str | None,
    path: str | None,
) -> None:  # fmt: skip
    """Over one that it reads, or one in its folder that it writes; another one in that folder is nobody's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "o" / "oplog").mkdir(parents=True)
    (tmp_path / "o" / "manifest.json").write_text('{"schema": "kernbench.manifest/1", "files": {}}')
    if what is None:
        request(toy, tmp_path, "toy", **given)
        return
    with pytest.raises(UsageError) as caught:
        request(toy, tmp_path, "toy", **given)
    assert str(caught.value) == (
        f"--{what} must be a file of its own, not {path!r}, which this run also uses; give another name."
    )


@pytest.mark.parametrize(("given", "refused"), [({"words": "ill"}, True), ({"words": "ill", "note": "a.txt"}, False)])
def test_options_of_a_part_need_the_part(toy: ModuleType, tmp_path: Path, given: dict[str, Any], refused: bool) -> None:
    """The part says so itself."""
    if not refused:
        assert [part.NAME for part in request(toy, tmp_path, "toy", "one", **given).parts] == ["note"]
        return
    with pytest.raises(UsageError) as caught:
        request(toy, tmp_path, "toy", "one", **given)
    assert str(caught.value) == "--words must come with --note."
