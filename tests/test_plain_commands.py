"""Commands that a plug-in defines itself, plain subclasses of `Command`, sent by `tl.issue`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import kernbench_core as kb
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins
from tests.conftest import SOURCE_TREE

SOURCE = '''
import numpy as np

from kernbench_core import BenchEntry, Command, ComponentBase, ComponentEntry, Param
from kernbench_core.callsite import describe_site

kernbench_api = 1
SEEN = []


class LoadTable(Command):
    """Nothing but the kind of its unit."""

    serves = "pe_table"


class Sized(Command):
    """Of 64 B, and how many times as long it takes."""

    serves = "pe_table"

    def __init__(self, times):
        super().__init__(nbytes=64)
        self.times = times


class Halved(Sized):
    def __init__(self):
        pass


class Nowhere(Command):
    pass


class Negative(Command):
    serves = "pe_table"

    def __init__(self):
        super().__init__(nbytes=-5)


class Elsewhere(Command):
    serves = "pe_math"


class ToTheArray(Command):
    serves = "pe_gemm"


class IntoMemory(Command):
    serves = "pe_tcm"


class Table(ComponentBase):
    PARAMS = (Param("load", "time", "100 ns", "Time to load."), Param("loses", "int", 0, "Whether it loses all."))

    def receive(self, msg):
        if not self.params["loses"]:
            self.serve(msg)

    def run(self, env, msg):
        SEEN.append((msg.op_id, msg.call, int(describe_site(msg.site).rpartition(":")[2]), getattr(msg, "times", 1)))
        yield env.timeout(getattr(msg, "times", 1) * self.params["load"])


def one(x, tl):
    tl.issue(LoadTable())


def three(x, tl):
    first = LoadTable()
    tl.issue(first, wait=False)
    tl.issue(Sized(2), wait=False)
    tl.wait(first)
    tl.issue(LoadTable())
    tl.wait()


def given_number(x, tl):
    tl.issue(3)


def given_class(x, tl):
    tl.issue(LoadTable)


def halved(x, tl):
    tl.issue(Halved())


def twice(x, tl):
    command = LoadTable()
    tl.issue(command, wait=False)
    tl.issue(command)


def nowhere(x, tl):
    tl.issue(Nowhere())


def negative(x, tl):
    tl.issue(Negative())


def elsewhere(x, tl):
    tl.issue(Elsewhere())


def to_the_array(x, tl):
    tl.issue(ToTheArray())


def into_memory(x, tl):
    tl.issue(IntoMemory())


def not_issued(x, tl):
    tl.wait(LoadTable())


def bench(rt, kernel: str = "one"):
    "Send commands."
    rt.launch(globals()[kernel], rt.tensor(np.ones(4, np.float32)), grid=(1,))


def kernbench_components():
    return [ComponentEntry("acme_table.unit", "acme_table:Table", "pe_table", "Loads tables.")]


def kernbench_benches():
    return [BenchEntry("tables", "acme_table:bench")]
'''
UNIT = "pe.units.pe_table={impl: acme_table.unit, attach: pe_tcm, params: {load: %s ns, loses: %d}}"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Plugins:
    file = tmp_path_factory.mktemp("commands") / "acme_table.py"
    file.write_text(SOURCE)
    return load_plugins([*SOURCE_TREE, str(file)], installed=False)


def line_of(text: str, start: int = 0) -> int:
    """Return the number of the line of the source that has a text, from a line on."""
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line and n > start)


def ran(loaded: Plugins, capsys: pytest.CaptureFixture[str], kernel: str, load: int = 100, *more: str) -> Any:
    """Run a kernel, and return what --json says of it."""
    arguments = ["run", "tables", "-p", f"kernel={kernel}", "--topology", "tiny", "--set", UNIT % (load, 0)]
    assert main([*arguments, "--json", *more], loaded) == 0
    return json.loads(capsys.readouterr().out)


def test_a_plain_command_is_given_its_number_and_its_line(loaded: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """Before its unit has it; commands of the language and these are counted together, in the order of their issue."""
    seen = loaded.components.load("acme_table.unit").run.__globals__["SEEN"]
    seen.clear()
    ran(loaded, capsys, "three")
    begin = line_of("def three")
    lines = [line_of(text, begin) for text in ("tl.issue(first", "tl.issue(Sized", "tl.issue(LoadTable())")]
    assert seen == [
        ((0, n), "tl.issue", line, times) for n, line, times in zip(range(3), lines, (1, 2, 1), strict=True)
    ]


def test_it_is_served_one_after_another_and_waited_for(loaded: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of `load`, one of twice that: another 100 ns of it are 400 more."""
    slow, quick = (ran(loaded, capsys, "three", load)["phases"]["kernel"] for load in (200, 100))
    assert slow - quick == pytest.approx(400.0, abs=1e-6)


def test_its_record_and_the_explanation_name_it(loaded: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """The log has its class and number, the critical path its line."""
    chosen = ["--topology", "tiny", "--set", UNIT % (100, 0)]
    assert main(["run", "tables", *chosen, "--explain"], loaded) == 0
    path = capsys.readouterr().out.partition("critical path")[2]
    line = line_of("tl.issue(LoadTable())")
    assert re.search(rf"tl\.issue \S*:{line} +1 +114 ns", path), path
    result = kb.run("tables", topology="tiny", set=[UNIT % (100, 0)], plugins=loaded)
    (record,) = result.op_log
    assert (record.op_name, record.component_id, record.op_id) == ("LoadTable", "sip0.cube0.pe0.pe_table", (0, 0))
    assert record.t_end - record.t_start == 100.0


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        ("given_number", "tl.issue at {} must be given a command, a kernbench_core.Command, not int; make one."),
        ("given_class", "tl.issue at {} must be given a command, a kernbench_core.Command, not the class LoadTable; "
         "make one."),
        ("halved", "tl.issue at {} must be given a complete command, not this Halved; call "
         "super().__init__() in its __init__."),
        ("nowhere", "tl.issue at {} must be given a command whose serves names the kind of unit that serves it, not "
         "''; write serves = 'pe_sfu', say, into class Nowhere."),
        ("negative", "tl.issue at {} must be given a command of 0 B or more, not the Negative of -5 B; correct its "
         "nbytes."),
        ("not_issued", "tl.wait at {} must be given handles of this kernel, not LoadTable; pass what "
         "tl.load(…, wait=False) or tl.composite returned."),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_a_sentence_at_the_kernels_line(
    loaded: Plugins, capsys: pytest.CaptureFixture[str], kernel: str, told: str
) -> None:
    """Not an AttributeError of somebody else."""
    arguments = ["run", "tables", "-p", f"kernel={kernel}", "--topology", "tiny", "--set", UNIT % (100, 0), "-q"]
    assert main(arguments, loaded) == 6
    error, place = capsys.readouterr().err.splitlines()[-2:]
    line = line_of("tl.", line_of(f"def {kernel}"))
    assert re.sub(r"at \S*acme_table\.py", "at acme_table.py", error) == (
        "error: " + told.format(f"acme_table.py:{line}")
    )
    assert place.startswith(f"  in kernel {kernel!r}, program (0, 0, 0), on sip0.cube0.pe0 at ")


def test_a_command_is_sent_once(loaded: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """The second time it is refused, with the line of the first."""
    arguments = ["run", "tables", "-p", "kernel=twice", "--topology", "tiny", "--set", UNIT % (100, 0), "-q"]
    assert main(arguments, loaded) == 6
    begin = line_of("def twice")
    error = re.sub(r"\S*acme_table\.py", "acme_table.py", capsys.readouterr().err.splitlines()[-2])
    assert error == (
        f"error: tl.issue at acme_table.py:{begin + 3} must be given a command that was not sent before, not the "
        f"LoadTable of acme_table.py:{begin + 2}; make another one."
    )


@pytest.mark.parametrize(
    ("kernel", "command", "raised"),
    [
        ("elsewhere", "Elsewhere", "pe_math.PeMath raised AttributeError: 'Elsewhere' object has no attribute 'op'"),
        ("to_the_array", "ToTheArray", "pe_gemm.PeGemm raised AttributeError: 'ToTheArray' object has no attribute"),
    ],
)
def test_a_unit_that_does_not_know_it_is_told_what_it_was_given(
    kernel: str, command: str, raised: str, loaded: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the model raises, served by a worker or on its own; the line of the kernel says where it came from."""
    arguments = ["run", "tables", "-p", f"kernel={kernel}", "--topology", "tiny", "--set", UNIT % (100, 0), "-q"]
    assert main(arguments, loaded) == 6
    err = re.sub(r"\S*acme_table\.py", "acme_table.py", capsys.readouterr().err)
    assert raised in err
    assert err.splitlines()[-2:] == [
        f"It was given the {command} that tl.issue at acme_table.py:{line_of(f'tl.issue({command}')} sent to the "
        f"{raised.partition('.')[0]} of its PE: choose a model that takes it, or send another command.",
        "The model is of kernbench_builtin (source tree).",
    ]


def test_a_memory_takes_no_command(loaded: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """What it does take is said, and which units of the PE take commands."""
    arguments = ["run", "tables", "-p", "kernel=into_memory", "--topology", "tiny", "--set", UNIT % (100, 0), "-q"]
    assert main(arguments, loaded) == 6
    error = re.sub(r"\S*acme_table\.py", "acme_table.py", capsys.readouterr().err.splitlines()[-1])
    assert error == (
        "error: sip0.cube0.pe0.pe_tcm: builtin.pe_tcm must be sent reads and writes, as units make them of their "
        f"commands, not the IntoMemory of tl.issue at acme_table.py:{line_of('tl.issue(IntoMemory')}; let its serves "
        "name a unit of this PE: pe_dma or pe_fetch_store or pe_gemm or pe_ipcq or pe_math or pe_mmu or pe_scheduler "
        "or pe_table."
    )


def test_a_unit_that_keeps_it_is_told_of_in_the_deadlock(loaded: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """Who had it last, and which line waits."""
    arguments = ["run", "tables", "--topology", "tiny", "--set", UNIT % (100, 1), "-q"]
    assert main(arguments, loaded) == 4
    err = re.sub(r"\S*acme_table\.py", "acme_table.py", capsys.readouterr().err)
    unit = "sip0.cube0.pe0.pe_table"
    assert (
        f"kernel 'one' at acme_table.py:{line_of('tl.issue(LoadTable())')} waits for tl.issue from its pe_table" in err
    )
    assert (
        f"{unit} (acme_table.unit) was the last to have the LoadTable of 0 B from sip0.cube0.pe0.pe_cpu to {unit}\n"
        in err
    )
