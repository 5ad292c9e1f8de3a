"""tools/count_work.py counts what is there, once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import loaded_tool
from tests.tool_runs import run_tool

#: One function calls another three times; names stand once, and the cost of calls with those who are called.
FILE = """version: 1
events: Ir

ob=(1) /lib/libpython3.11.so.1.0
fn=(1) _PyEval_EvalFrameDefault
10 500
cob=(2) /site/kernbench_core/events/queue.cpython-311-x86_64-linux-gnu.so
cfn=(2) advance
calls=3 20
10 4000
+2 25
cfn=(3) _PyObject_Malloc
calls=7 30
11 70

ob=(2)
fn=(2)
20 90
cob=(1)
cfn=(3)
calls=2 30
* 20

ob=(1)
fn=(3)
30 90
"""


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    """Give tools/count_work.py."""
    with loaded_tool("count_work") as module:
        yield module


def test_costs_count_where_they_are_and_calls_do_not_count_twice(tool: ModuleType) -> None:
    found = tool.read(iter(FILE.splitlines(keepends=True)))
    assert dict(found.instructions) == {
        "the interpreter": 525,
        "compiled: kernbench_core/events": 90,
        "objects made and freed": 90,
    }
    assert found.made == 9


def test_start_up_is_taken_off(tool: ModuleType) -> None:
    more, less = (tool.Counted(tool.Counter({"numpy": count}), count // 10) for count in (70, 50))
    assert more.without(less) == tool.Counted(tool.Counter({"numpy": 20}), 2)


def account(instructions: int, made: int, **shares: dict[str, float]) -> dict[str, object]:
    """Return an account of a job as `--json` gives it: of 10 events and 2 ops, 100 instructions of hops."""
    told = {"events": 10, "ops": 2, "transactions": 1, "instructions": instructions, "of_hops": 100, "made": made}
    return {"gemm": {**told, "where": {}, "rooms": {}, **shares}}


def test_tables_are_written_where_the_page_has_them(tool: ModuleType) -> None:
    """Costs are those outside hops; shares below 2 % are left out; what stands around the tables stays."""
    inside = tool.tables(
        account(10_100, 30),
        account(5_100, 20, rooms={"kernbench_core/wire.py": 0.5, "kernbench_core/host": 0.019}),
        account(1_100, 1, where={"compiled: kernbench_core/events": 0.25, "the interpreter": 0.75}),
    )
    page = f"above\n{tool.BEGIN}old\n{tool.END}below\n{tool.END}"
    assert tool.written(page, inside) == (
        f"above\n{tool.BEGIN}\n"
        "| job |  | of an event: instructions | of an event: objects | of an op: instructions | of an op: objects"
        " | hops, of all |\n"
        "|---|---|---|---|---|---|---|\n"
        "| gemm | before | 1,000 | 3.0 | 5,000 | 15.0 | 1% |\n"
        "| gemm | in Python | 500 | 2.0 | 2,500 | 10.0 | 2% |\n"
        "| gemm | compiled | 100 | 0.1 | 500 | 0.5 | 9% |\n"
        "\n| instructions, compiled | gemm |\n|---|---|\n| the interpreter | 75% |\n| kernbench_core/events | 25% |\n"
        "\n| time, in Python | gemm |\n|---|---|\n| kernbench_core/wire.py | 50% |\n"
        f"\n{tool.END}below\n{tool.END}"
    )
    assert tool.BEGIN in tool.PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind here")
def test_a_small_account(capsys: pytest.CaptureFixture[str]) -> None:
    """Its parts are the whole, and a run makes objects."""
    assert run_tool("count_work", "--quick", "--json") == 0
    found = json.loads(capsys.readouterr().out)["gemm"]
    assert found["instructions"] > found["of_hops"] > 0
    assert found["made"] > found["ops"] > 0
    assert 0.97 < sum(found["where"].values()) <= 1


@pytest.mark.parametrize("text", [None, "{", "{}", "[]"])
def test_accounts_that_are_none_are_refused_in_a_sentence(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    """Before a page is written."""
    file = tmp_path / "before.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SystemExit, match="2"):
        tool.main(["--write", str(file), str(file), str(file)])
    why = {
        None: f": [Errno 2] No such file or directory: '{file}'",
        "{": ": Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    }.get(text, ", of gemm, attention, all-reduce; count again")
    assert capsys.readouterr().err.endswith(f"error: argument --write: {file} must be what --json printed{why}\n")
