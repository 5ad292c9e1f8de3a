"""The log gives back what was logged, in one order, and hashes it the same everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.callsite import CallSite
from kernbench_core.oplog.description import Access, OpDescription, OpPattern
from kernbench_core.oplog.log import OpLog, OpRecord
from kernbench_core.oplog.logger import OpLogger
from kernbench_core.oplog.parameters import OF_READS
from kernbench_core.values.region import Region
from kernbench_core.values.value import LoadedValue, ResultValue
from tests.core.oplog.drawn_ops import accesses, descriptions, params, types_in
from tests.core.oplog.remade import op_log_of


@settings(max_examples=150)
@given(st.lists(descriptions, max_size=5))
def test_records_come_back_exactly(described) -> None:
    """Names, parameters with their types and order, accesses, values: all as they were described."""
    log = OpLog()
    for at, one in enumerate(described):
        log.append(float(at), at + 0.5, "unit", one)
    for at, (one, record) in enumerate(zip(described, log, strict=True)):
        assert (record.t_start, record.t_end, record.component_id) == (at, at + 0.5, "unit")
        for name in ("op_kind", "op_name", "op_id", "stage_of", "function"):
            assert getattr(record, name) == getattr(one, name)
        assert record.params == one.params and list(record.params) == list(one.params)
        assert [types_in(v) for v in record.params.values()] == [types_in(v) for v in one.params.values()]
        for old, new in zip((*one.reads, one.writes), (*record.reads, record.writes), strict=True):
            assert (old is None) == (new is None)
            if old is not None:
                assert (new.space, new.regions, new.value) == (old.space, old.regions, old.value)
    again = op_log_of(list(log))
    assert again.sha256() == log.sha256()


def test_order_is_time_component_sequence() -> None:
    """Records sort by start, then component name, then their turn in it, however they arrive; so does the hash."""
    rows = [(t, c, s) for t in (2.0, 0.0, 1.0) for c in ("b", "a") for s in (1, 0)]
    logs = []
    for order in (rows, rows[::-1], sorted(rows)):
        log = OpLog()
        for t, component, sequence in order:
            log.append(
                t, t + 1, component, OpDescription("math", f"{component}{sequence}", {"n": sequence, "x": t}), sequence
            )
        logs.append(log)
        assert [(r.t_start, r.component_id, r.params["n"]) for r in log] == sorted(rows)
    assert len({log.sha256() for log in logs}) == 1
    assert logs[0][-1].t_start == 2.0 and [r.t_start for r in logs[0][:2]] == [0.0, 0.0]


def test_records_since_are_those_that_were_appended_last() -> None:
    """They come as they were appended, whatever their times."""
    log = OpLog()
    for number, t in enumerate((5.0, 3.0, 4.0, 1.0)):
        log.append(t, t + 1, "c", OpDescription("math", f"op{number}", {}))
    assert [record.op_name for record in log.since(2)] == ["op2", "op3"]
    assert list(log.since(4)) == []


def test_hash_sees_every_fact() -> None:
    """Changing any one fact of a record changes the hash; changing values does not."""

    def digest(t=0.0, end=1.0, unit="u", name="exp", value=3, base=64, op_id=(0, 1), deep=1.5, loaded=None):
        log = OpLog()
        reads = (Access("tcm", (Region(base, 4),), loaded or LoadedValue((1,), "f32")),)
        log.append(t, end, unit, OpDescription("math", name, {"n": value, "deep": {"x": deep}}, reads, op_id=op_id))
        return log.sha256()

    changed = [
        digest(),
        digest(t=0.5),
        digest(end=2.0),
        digest(unit="v"),
        digest(name="log"),
        digest(value=4),
        digest(value=3.0),
        digest(base=68),
        digest(op_id=(0, 2)),
        digest(deep=-1.5),
    ]
    assert len(set(changed)) == len(changed)
    assert digest(loaded=ResultValue((0, 0), (1,), "f32")) == digest()


def test_hash_does_not_depend_on_the_process() -> None:
    """Two hash seeds give one digest."""
    code = (
        "from kernbench_core.oplog.description import OpDescription\nfrom kernbench_core.oplog.log import OpLog\n"
        "log = OpLog()\n"
        "for n in ('b', 'a', 'c'):\n"
        "    log.append(1.0, 2.0, n, OpDescription('math', n, {'s': n, 'd': {'q': 1, 'p': (2.5,)}, 'a': 1 << 40}))\n"
        "print(log.sha256())"
    )
    root = Path(__file__).resolve().parents[3]
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    }
    assert len(found) == 1


class Message:
    """A message whose description changes while it is served, as a tile token's does."""

    def __init__(self, early: bool) -> None:
        self.captured_at_start, self.stage = early, "DMA_READ"

    def describe(self):
        return OpDescription("memory", f"TileToken/{self.stage}", {})


class Silent:
    """A message that describes nothing."""

    def describe(self):
        return None


def test_logger_captures_stages_at_their_start() -> None:
    """A tile token is described when its stage starts, other messages when they end; a silent one is unknown."""
    logger = OpLogger(OpLog())
    for early in (True, False):
        message = Message(early)
        logger.record_start(1.0, "dma", message)
        message.stage = "GEMM"
        logger.record_end(2.0, "dma", message)
    silent = Silent()
    logger.record_start(0.5, "x", silent)
    assert (logger.unfinished, len(logger.log)) == (1, 2)
    logger.record_end(0.75, "x", silent)
    assert [(r.op_kind, r.op_name) for r in logger.log] == [
        ("unknown", "Silent"),
        ("memory", "TileToken/DMA_READ"),
        ("memory", "TileToken/GEMM"),
    ]


class Sited:
    """A message of an op that was asked for at a site; a stage where it is one of another op."""

    def __init__(self, site: CallSite | None, stage_of: tuple[int, int] | None = None, op: bool = True) -> None:
        self.site, self.stage_of, self.op_id = site, stage_of, (0, 1) if op else None

    def describe(self) -> OpDescription:
        return OpDescription("math", "add", {}, op_id=self.op_id, stage_of=self.stage_of)


def test_logger_sums_up_the_ops_of_each_call() -> None:
    """Two calls of one code object are two; stages, and what is no op or of no line, are none."""
    logger = OpLogger(OpLog())
    code, other = (compile(text, "k.py", "exec") for text in ("1", "2"))
    messages = [
        Sited((code, 2)), Sited((code, 2)), Sited((code, 4)), Sited((other, 2)), Sited(None), Sited((code, 2), (0, 9)),
        Sited((code, 2), op=False),
    ]  # fmt: skip
    for number, message in enumerate(messages):
        logger.record_start(10.0 * number, "math", message)
        logger.record_end(10.0 * number + 2.0**number, "math", message)
    assert [(use.site, use.ops, use.ns) for use in logger.lines.values()] == [
        ((code, 2), 2, 3.0), ((code, 4), 1, 4.0), ((other, 2), 1, 8.0),
    ]  # fmt: skip
    assert len(logger.log) == 7 and logger.sites is None


def test_dependencies_name_producers() -> None:
    """dependency_ids are the positions of the ops whose results are read, through loads, once each."""
    log = OpLog()
    first, second = ResultValue((0, 0), (4,), "f32"), ResultValue((1, 0), (4,), "f32")
    load = LoadedValue((4,), "f32")
    where = (Region(0, 16),)
    reads = (Access("tcm", where, first), Access("tcm", where, load), Access("tcm", where, first))
    log.append(
        5.0,
        6.0,
        "u",
        OpDescription("math", "add", {}, reads, Access("tcm", where, ResultValue((0, 1), (4,), "f32")), (0, 1)),
    )
    log.append(1.0, 2.0, "u", OpDescription("math", "exp", {}, (), Access("tcm", where, second), (1, 0)))
    log.append(0.0, 2.0, "u", OpDescription("math", "exp", {}, (), Access("tcm", where, first), (0, 0)))
    load.bind(second)
    assert [r.dependency_ids for r in log] == [[], [], [0, 1]]


def test_parameters_that_repeat_reads_take_no_room() -> None:
    """Snapshots and immediates are the values of the reads; a log made of the records is the same log."""
    log = OpLog()
    values = [LoadedValue((4,), "f32"), LoadedValue((), "f32")]
    reads = tuple(Access("tcm", (Region(0, v.nbytes),), v) for v in values)
    params = {"input_shapes": [(4,), ()], "input_snapshots": OF_READS, "immediate1": OF_READS, "snapshot": OF_READS}
    log.append(0.0, 1.0, "u", OpDescription("math", "add", params, reads, Access("tcm", (), values[0]), (0, 0)))
    assert log[0].params == {
        "input_shapes": [(4,), ()], "input_snapshots": values, "immediate1": values[1], "snapshot": values[0],
    }  # fmt: skip
    again = op_log_of(list(log))
    assert again[0].params == log[0].params
    assert again.sha256() == log.sha256()
    assert (log.columns.sides, again.columns.sides, len(log.columns.ints)) == ([], [], 2)


def test_lists_are_columns_and_signatures_as_tuples_are() -> None:
    """None of a math record goes to the side table."""
    log = OpLog()
    for at in range(3):
        params = {"input_addrs": [at, 7], "input_shapes": [(4,), ()], "input_spaces": ["tcm", "tcm"]}
        log.append(0.0, 1.0, "u", OpDescription("math", "add", params))
    assert log.columns.sides == []
    assert [r.params["input_addrs"] for r in log] == [[0, 7], [1, 7], [2, 7]]
    assert len(log.columns.templates) == 1


def test_params_of_numpy_types_survive() -> None:
    """What is not a plain scalar is kept as it is."""
    log = OpLog()
    log.append(0.0, 1.0, "u", OpDescription("math", "x", {"a": np.arange(3), "b": np.int64(5)}))
    found = log[0].params
    assert found["a"].tolist() == [0, 1, 2] and type(found["b"]) is np.int64


def test_a_record_shows_itself_in_a_line() -> None:
    """What, where, when, of which op, and the tensor where there is one; however many parameters it has."""
    params = {"shape": (4, 8), "dtype": "f16", **{f"parameter_{at}": list(range(1000)) for at in range(100)}}
    record = OpRecord(1 / 3, 1.5, "u.pe_dma", "memory", "dma_read", params, [*range(1000)], (3, 7))
    assert repr(record) == "<OpRecord dma_read on u.pe_dma, 0.333 to 1.500 ns, op 7 of PE 3, f16[4, 8]>"
    assert repr(OpRecord(0.0, 1.0, "u", "math", "add", {})) == "<OpRecord add on u, 0.000 to 1.000 ns>"


def test_a_large_description_shows_the_beginning_of_each_part() -> None:
    """And of one long thing its beginning and end."""
    access = Access("hbm", tuple(Region(at, 8) for at in range(1000)), LoadedValue((1024, 1024), "f16"))
    told = repr(OpDescription("math", "add", {"text": "x" * 10_000}, (access,) * 9, access))
    assert len(told) < 2000 and told.count("...") >= 3


numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(2**63, 2**70))


@settings(max_examples=120)
@given(
    params, accesses, st.one_of(st.none(), accesses.filter(len).map(lambda a: a[0])),
    st.one_of(st.none(), st.tuples(st.integers(0, 9), st.integers(0, 99))),
    st.sampled_from(["n", "a_addrs"]), st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=3),
    st.booleans(),
)  # fmt: skip
def test_a_pattern_is_the_descriptions_one_by_one(
    fixed, reads, writes, op_id, last, given_numbers, named
) -> None:
    """The same templates, columns, parameters and hash, whatever else the parameters hold."""
    plain, patterned = OpLog(), OpLog()
    rest = {**fixed, "snapshot": OF_READS, **({"handle_id": "pe7.7"} if named else {})}
    example = {"b_addr": 1, **rest, "list_addrs": [1, 2], last: 5} if last == "n" else {last: [4], **rest, "b_addr": 0}
    opened = ("b_addr", "list_addrs", "n") if last == "n" else ("b_addr", "a_addrs")
    pattern = OpPattern("math", "add", example, opened, "acme:f")
    for at, (one, two, three) in enumerate(given_numbers):
        own = {"b_addr": one, "list_addrs": [two, three], "n": one, "a_addrs": [two]}
        told = (one, two, three, one) if last == "n" else (one, two)
        whole = {name: own.get(name, value) for name, value in example.items()}
        if "handle_id" in whole:
            whole["handle_id"] = None if op_id is None else f"pe{op_id[0]}.{op_id[1]}"
        wanted = OpDescription("math", "add", whole, reads, writes, op_id, None, "acme:f")
        made = pattern.described(told, reads, writes, op_id)
        assert repr(made) == repr(wanted)
        plain.append(float(at), at + 1.0, "unit", wanted)
        patterned.append(float(at), at + 1.0, "unit", made)
        assert made.params == whole and list(made.params) == list(whole)
        assert types_in([*made.params.values()]) == types_in([*whole.values()])
    assert patterned.sha256() == plain.sha256()
    for name in ("ints", "floats", "template", "side_rows", "values"):
        assert list(getattr(patterned.columns, name)) == list(getattr(plain.columns, name))
    assert [t.sig for t in patterned.columns.templates] == [t.sig for t in plain.columns.templates]
    for left, right in zip(patterned, plain, strict=True):
        assert left.params == right.params and list(left.params) == list(right.params)
