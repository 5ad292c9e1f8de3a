"""A plan in YAML: the same as on the command line, and every fault at its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.sweeps import SweepPlan
from kernbench_builtin.sweeps.planning.cli_plan import plan_of
from kernbench_builtin.sweeps.planning.plan_file import KEYS, read_plan
from kernbench_core.errors import ConfigError, UsageError

WHOLE = """
bench: own.py:layer
topology: [tiny, machines/big.yaml]
components: faster.yaml
set:
  components.pe_gemm.params.rows: [16, 32, 64]
  system:
    network.bandwidth: 100..800GB/s:log:4
    network.params: {}
  cube.pes: 4
params: {tile_m: [64, 128], M: 512, text: "a,b", x: 1..4}
where: tile_m <= rows
objectives: [time, "cost = 2 * time"]
figures: area.py
sample: lhs:7
seed: 3
options: {timeout: 60 s, verify_data: true, seed: 5, grid: 64, max-sim-time: 5 ms, max_events: 10, device: "sip:0"}
"""


def test_a_plan_says_what_a_command_line_says(tmp_path: Path) -> None:
    """Files that are beside it are found there; others are what the command line would take them for."""
    for name in ("own.py", "faster.yaml", "area.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "plan.yaml").write_text(WHOLE)
    asked = plan_of(
        SweepPlan(bench=f"{tmp_path}/own.py:layer", seed=3, sample="lhs:7"),
        sets=["components.pe_gemm.params.rows=16,32,64", "system.network.bandwidth=100..800GB/s:log:4", "cube.pes=4",
              "system.network.params={}"],
        params=["tile_m=64,128", "M=512", "text='a,b'", "x=1..4"],
        topology="tiny,machines/big.yaml",
        components=f"{tmp_path}/faster.yaml",
        where=("tile_m <= rows",),
        objectives=("time", "cost = 2 * time"),
        figures=f"{tmp_path}/area.py",
        options={"timeout_s": 60e9 * 1e-9, "verify_data": True, "seed": 5, "grid": "64", "max_sim_ns": 5e6,
                 "max_events": 10, "device": "sip:0"},
    )  # fmt: skip
    found = read_plan(tmp_path / "plan.yaml")
    assert {axis.name: axis for axis in found.axes} == {axis.name: axis for axis in asked.axes}
    rest = [{**plan.to_json(), "axes": [], "topology": ""} for plan in (found, asked)]
    assert rest[0] == rest[1]
    assert SweepPlan.from_json(found.to_json()) == found


def test_every_fault_of_a_plan_is_told_at_its_place(tmp_path: Path) -> None:
    """All in one go, in the order in which a plan is read."""
    path = tmp_path / "plan.yaml"
    path.write_text("""topology: [tiny, tiny]
set:
  cube.pes: [1, 1]
  a: 3..1
  b: {c: 1, d: 1..9x:lin:3}
  b.c: 2
params: [1]
wher: x
where: [1]
figures: ''
seed: -1
options: {timeout: 5, seed: x, trace: a, data: 1, race_by: z, device: [1], max_events: true}
""")
    with pytest.raises(ConfigError) as caught:
        read_plan(path)
    assert [problem.removeprefix(f"{path}:") for problem in caught.value.problems] == [
        "8:1: wher must be a known key. Did you mean 'where'?",
        "1:1: bench must be given: What is run: a bench, FILE.py, FILE.py:FUNCTION, or triton:FILE.py.",
        "1:1: topology must have each value once, and has 'tiny' twice.",
        "3:3: cube.pes must have each value once, and has 1 twice.",
        "4:3: a must be a range that rises, not '3..1'.",
        "5:13: b.d must have a unit that there is, not 'x' in '1..9x:lin:3'.",
        "6:3: b.c must be given once.",
        "7:1: params must be a mapping, not [1].",
        "11:1: seed must be an integer of at least 0, not -1.",
        "12:11: options.timeout must be a positive time with its unit, as '60 s', not 5.",
        "12:23: options.seed must be an integer of at least 0, not 'x'.",
        "12:32: options.trace must be an option of every run. Did you mean 'race_by'?",
        "12:42: options.data must be true or false, not 1.",
        "12:51: options.race_by must be 'pe' or 'program', not 'z'.",
        "12:63: options.device must be text, not [1].",
        "12:76: options.max_events must be an integer of at least 1, not True.",
        "10:1: figures must be text, not ''.",
        "9:9: where must be text, not 1.",
    ]


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("bench: a\nbench: b", ConfigError, "{}:2:1: key 'bench' must appear once, but it is also at {}:1:1."),
        ("- a", ConfigError, "{}:1:1: plan must be a mapping, not ['a']."),
        ("bench: a\nsample: lhs:0", ConfigError, "{}:2:1: sample must be grid, random:N or lhs:N with N from 1 to "
         "1,000,000, not 'lhs:0'."),
        (b"bench: \xff", ConfigError, "{}: file must be UTF-8 text, not bytes like b'\\xff'."),
        (None, UsageError, "plan '{}' must be a readable file: No such file or directory."),
    ],
)  # fmt: skip
def test_what_is_no_plan_is_told(text: Any, error: type[Exception], told: str, tmp_path: Path) -> None:
    """A file that is not there, is no text, or no mapping."""
    path = tmp_path / "plan.yaml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(error) as caught:
        read_plan(path)
    assert str(caught.value) == told.replace("{}", str(path))


def test_a_command_line_lies_over_a_plan() -> None:
    """An axis of the same name is replaced, by values or by one; what is not said stays."""
    whole = SweepPlan(bench="gemm")
    plan = plan_of(whole, sets=["a=1,2", "b=3"], params=["n=4,5"], topology="x,y", objectives=["time, a=time", "b=1"])
    over = plan_of(plan, sets=["a=7", "b=8,9"], topology="z", where=None, seed=None)
    assert [(axis.name, axis.values) for axis in over.axes] == [("n", (4, 5)), ("b", (8, 9))]
    assert (over.set, over.topology, over.objectives) == ({"a": 7}, "z", ("time", "a=time", "b=1"))


def test_what_a_command_line_says_twice_or_badly_is_told_at_once() -> None:
    """Each with the option that it stands in."""
    with pytest.raises(ConfigError) as caught:
        plan_of(SweepPlan(bench="g"), sets=["z", "a=1,2", "a=3", "b=2..1"], params=["=1", "c={"], topology="tiny,tiny")
    assert caught.value.problems == (
        "--set z: must be KEY=VALUES with a dotted key, not 'z'.",
        "-p =1: must be NAME=VALUES, not '=1'.",
        "--set a=3: a must be given once, with all of its values, and is also in --set a=1,2.",
        "--set b=2..1: b must be a range that rises, not '2..1'.",
        "--topology tiny,tiny: topology must have each value once, and has 'tiny' twice.",
    )


def test_what_a_plan_may_say_is_what_there_is() -> None:
    """A key for each field, but for the axes, which stand among what is set."""
    import attrs

    assert set(KEYS) == {field.name for field in attrs.fields(SweepPlan)} - {"axes"}
