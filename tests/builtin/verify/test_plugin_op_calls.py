"""What kernels give ops of plug-ins by name, and what their functions give back: refused where it would be lost."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernbench_builtin.saved.saved_run import load_run
from kernbench_core.cli import main as kernbench
from kernbench_core.plugins import load_plugins
from tests.core.offered import MACHINES, SAVED
from tests.core.working_machine import YAML

ACME = '''
import numpy as np

from kernbench_core import ComponentBase, ComponentEntry, OpEntry
from kernbench_core.compute.ops import Again, Form, MathOp
from kernbench_core.compute.ops.shape_rules import elementwise, reduced
from kernbench_core.compute.ops.type_rules import always, floats, same

SEEN = []


def scaled(params, x):
    SEEN.append(repr(params.get("by")))
    return x * (2 if params.get("by") is None else 1)


def scaled_by_unit(params, inputs, *, by, twice=False):
    SEEN.append(repr((by, twice)))
    return inputs[0]


def total(params, x):
    return np.sum(x, axis=params["axis"], keepdims=params["keepdims"])


def out_of_luck(params, x):
    raise KeyError("luck")


def op(name, function, types=floats, **more):
    return MathOp(name, function, types=types, shapes=elementwise, **more)


SCALED = op("scaled", scaled, keywords=("by", "bias"))
BARE = op("bare", lambda params, x: x)
TOTAL = MathOp("total", total, types=floats, shapes=reduced, form=Form.REDUCTION)
IMAGINARY = op("imaginary", lambda params, x: x * 2j)
WHOLE = op("whole", lambda params, x: (x * 2).astype("i4"))
TRUE = op("true", lambda params, x: x > 0)
CUT = op("cut", lambda params, x: x * 2.7, always("int32"))
SHORT = op("short", lambda params, x: x[:1])
NOTHING = op("nothing", lambda params, x: None)
WIDE = op("wide", lambda params, x: (x * 2).astype("f8"))
LONG = op("long", lambda params, x: np.full(x.shape, 3), always("int32"))
BITS = op("bits", lambda params, x: x * 0.5, same)
RAISES = op("raises", out_of_luck)
AGAIN_RAISES = op("again_raises", lambda params, x: x, again=Again(out_of_luck))
AGAIN_SHORT = op("again_short", lambda params, x: x, again=Again(lambda params, x: x[:1]))
AGAIN_ODD = op("again_odd", lambda params, x: x, again=Again(lambda params, x: x * 1j))


def unit_whole(params, inputs):
    return np.ones(4, int)


def unit_raises(params, inputs):
    raise SystemExit(0)


class A_CLASS:
    pass


A_LIST = [1]


class Sfu(ComponentBase):
    """A unit.

    Models: a.
    Ignores: b.
    Timing: c.
    Source: d.
    """

    def run(self, env, msg):
        yield env.timeout(5)


kernbench_api = 1
def kernbench_ops():
    records = [name for name, made in globals().items() if isinstance(made, MathOp)]
    functions = ["scaled_by_unit", "unit_whole", "unit_raises", "A_CLASS", "A_LIST"]
    return [OpEntry(name.lower(), f"acme_calls:{name}") for name in (*records, *functions)]


def kernbench_components():
    return [ComponentEntry("acme.sfu", "acme_calls:Sfu", "pe_sfu", "A unit.")]
'''
SOURCE = "acme_calls (source tree)"
Run = Callable[..., tuple[int, str, str, Path]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run a kernel that makes a call on line 7, with a tile `x` and its pointer; give code, stdout, stderr, file."""
    (tmp_path / "acme_calls.py").write_text(ACME)
    (tmp_path / "sfu.yaml").write_text("pe:\n  units:\n    pe_sfu: {impl: acme.sfu, attach: pe_tcm}\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "toys.yaml").write_text(YAML)
    ours = ["builtin.verify = kernbench_builtin.verify.plugin", "test = tests.core.working_machine", MACHINES, SAVED]
    plugins = load_plugins(["acme = acme_calls", *ours], installed=False)
    file = tmp_path / "kernel.py"

    def run(made: str, *arguments: str) -> tuple[int, str, str, Path]:
        file.write_text(
            "import numpy as np\n\n\ndef kernel(x_ptr, tl):\n    x = tl.load(x_ptr, shape=(4,))\n    b = x > 0\n"
            f"    tl.store(x_ptr, {made})\n\n\ndef bench(rt):\n"
            "    rt.launch(kernel, rt.tensor(np.ones(4, np.float32)), grid=(1,))\n"
        )
        machine = ("--topology", str(tmp_path / "toys.yaml"), "--components", str(tmp_path / "sfu.yaml"))
        code = kernbench(["run", str(file), *machine, "-q", *arguments], plugins)
        return (code, *capsys.readouterr(), file)

    yield run
    sys.modules.pop("acme_calls", None)


OF_RECORD = " An op takes what the `keywords` of its record name, or its function's keyword-only arguments."
MAY = "a number, a text, a bool, None, a dtype, or a tuple or list of such as 'by', not "
OPERAND = "; tensors are operands: give it before the keywords."
DATA = "; give the op data, which its function makes such a thing of."
REFUSED = {
    "tl.scaled(x, bye=3)": "must be given a keyword that the op takes, not 'bye'. Did you mean 'by'?" + OF_RECORD,
    "tl.bare(x, scale=3)": "must be given no keywords, not 'scale'." + OF_RECORD,
    "tl.scaled(x, axis=0)": "must be given a keyword that the op takes, not 'axis'. Known: bias, by." + OF_RECORD,
    "tl.total(x, keep_dims=True)":
        "must be given a keyword that the op takes, not 'keep_dims'. Did you mean 'keepdims'?" + OF_RECORD,
    "tl.unit_op('pe_sfu', 'scaled_by_unit', x, by=1, twise=True)":
        "must be given a keyword that the op takes, not 'twise'. Did you mean 'twice'?" + OF_RECORD,
    "tl.unit_op('pe_sfu', 'scaled_by_unit', x)": "must be given 'by' by name, which the op's function needs; add it.",
    "tl.scaled(x, by=x)": f"must be given {MAY}a tensor of shape (4,){OPERAND}",
    "tl.scaled(x, by=(1, [x]))": f"must be given {MAY}a tensor of shape (4,){OPERAND}",
    "tl.scaled(x, by=tl.arange(0, 4))": f"must be given {MAY}a tensor of shape (4,){OPERAND}",
    "tl.scaled(x, by=tl.sum(x))": f"must be given {MAY}a tensor of shape (){OPERAND}",
    "tl.scaled(x, by=np.ones(2))": f"must be given {MAY}a tensor of shape (2,){OPERAND}",
    "tl.scaled(3.0, by=x)": f"must be given {MAY}a tensor of shape (4,){OPERAND}",
    "tl.scaled(x, by=x_ptr)":
        f"must be given {MAY}a pointer; load it, and give the tensor as an operand, before the keywords.",
    "tl.scaled(x, by=dict)": f"must be given {MAY}type <class 'dict'>{DATA}",
    "tl.scaled(x, by={1: 2})": f"must be given {MAY}dict {{1: 2}}{DATA}",
    "tl.scaled(x, by=2j)": f"must be given {MAY}complex 2j{DATA}",
    "tl.scaled(x, by=np.complex64)": f"must be given {MAY}type <class 'numpy.complex64'>{DATA}",
    "tl.scaled(x, by=np.longdouble(2))": f"must be given {MAY}longdouble np.longdouble('2.0'){DATA}",
    "tl.scaled(x, by=tl.PropagateNan.ALL)": f"must be given {MAY}NanRule <NanRule.ALL: 'all'>{DATA}",
    "tl.unit_op('pe_sfu', 'scaled_by_unit', x, by=x)": f"must be given {MAY}a tensor of shape (4,){OPERAND}",
}  # fmt: skip


@pytest.mark.parametrize("made", REFUSED)
def test_what_cannot_be_given_by_name_is_refused_at_the_line(call: Run, made: str) -> None:
    """A name that the op does not take, and a thing that a saved log could not give back."""
    code, out, err, file = call(made)
    told = f"error: {made.partition('(')[0]} at {file}:7 {REFUSED[made]}\n"
    assert (code, out) == (6, "")
    assert told in err


GIVEN = {
    "3": "3", "-0.0": "-0.0", "float('inf')": "inf", "'text'": "'text'", "True": "True", "None": "None",
    "10**30": f"{10**30}", "(1, 2.5, ('a', None))": "(1, 2.5, ('a', None))", "[[1], [0.5]]": "[[1], [0.5]]",
    "np.float32(2.5)": "2.5", "np.float64(0.1)": "0.1", "np.int8(-3)": "-3", "np.bool_(True)": "True",
    "np.float16": "'f16'", "np.dtype('int8')": "'int8'", "tl.bfloat16": "'bf16'", "()": "()",
}  # fmt: skip


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("given", GIVEN)
def test_functions_see_the_same_live_and_from_a_saved_log(call: Run, tmp_path: Path, given: str, unit: bool) -> None:
    """To the type: what numpy has of numbers and dtypes is Python's before it is logged."""
    made = f"tl.unit_op('pe_sfu', 'scaled_by_unit', x, by={given})" if unit else f"tl.scaled(x, by={given})"
    code, _, err, _ = call(made, "--verify-ops", "--out", str(tmp_path / "out"))
    assert code == 0, err
    load_run(tmp_path / "out" / "oplog").executor().run()
    import acme_calls

    wanted = f"({GIVEN[given]}, False)" if unit else GIVEN[given]
    times = 3  # computed, computed anew, and once more from the log
    assert [wanted] * times == acme_calls.SEEN


def test_a_list_is_logged_as_it_was_given(call: Run, tmp_path: Path) -> None:
    """Who changes it afterwards changes nothing."""
    code, _, err, _ = call("(lambda l: (tl.scaled(x, by=l), l.append(2))[0])([1])", "--out", str(tmp_path / "out"))
    assert code == 0, err
    log = load_run(tmp_path / "out" / "oplog").op_log
    assert [r.params["by"] for r in log if r.op_name == "scaled"] == [[1]]


KINDS = {
    "tl.imaginary(x)": ("imaginary", "must give floats, as its result is f32, not complex64"),
    "tl.whole(x)": ("whole", "must give floats, as its result is f32, not int32"),
    "tl.true(x)": ("true", "must give floats, as its result is f32, not bool"),
    "tl.cut(x)": ("cut", "must give integers, as its result is int32, not float32"),
    "tl.nothing(x)": ("nothing", "must give floats, as its result is f32, not object"),
    "tl.bits(b)": ("bits", "must give bools, as its result is bool, not float64"),
    "tl.short(x)": ("short", "must give a result of shape (4,), not (1,)"),
    "tl.unit_op('pe_sfu', 'unit_whole', x)": ("unit_whole", "must give floats, as its result is f32, not int64"),
}


@pytest.mark.parametrize("made", KINDS)
def test_a_result_of_another_kind_or_shape_is_refused(call: Run, made: str) -> None:
    """Nothing of it is dropped in silence; the op and its distribution are named."""
    code, out, err, _ = call(made, "--verify-data", "--verify-ops")
    name, must = KINDS[made]
    assert (code, out) == (6, "")
    assert err.startswith(f"error: {name} (op ")
    assert f" could not be computed: op {name!r} of {SOURCE} {must}; repair or reinstall {SOURCE}.\n" in err
    assert "Warning" not in err


@pytest.mark.parametrize("made", ["tl.wide(x)", "tl.long(x)", "tl.bare(x)", "tl.total(x, axis=0, keepdims=True)"])
def test_a_wider_result_of_the_same_kind_is_rounded(call: Run, made: str) -> None:
    """Once, to what was promised."""
    code, _, err, _ = call(f"{made}.to(tl.float32)", "--verify-data", "--verify-ops")
    assert code == 0, err


def test_known_numbers_are_judged_as_well(call: Run) -> None:
    """What is computed while the kernel runs is of its kind, or refused there."""
    code, _, err, _ = call("tl.cut(tl.arange(0, 4)).to(tl.float32)")
    assert (code, err) == (
        6,
        f"error: op 'cut' of {SOURCE} must give integers, as its result is int64, not float64; repair or reinstall "
        f"{SOURCE}.\n",
    )


def test_what_a_function_raises_names_its_class_line_and_distribution(call: Run, tmp_path: Path) -> None:
    """A record's, its second way's, and a plain function's, SystemExit too: none is a wrong result or an exit."""

    def line(of: str) -> str:
        return f"{tmp_path / 'acme_calls.py'}:{ACME[: ACME.index(of)].count(chr(10)) + 1}"

    luck, leave = line('raise KeyError("luck")'), line("raise SystemExit")
    for made, name, again, must in (
        ("tl.raises(x)", "raises", "", f"a function that computes, but it raised KeyError: 'luck' at {luck}"),
        ("tl.again_raises(x)", "again_raises", " again",
         f"a second way that computes, but it raised KeyError: 'luck' at {luck}"),
        ("tl.again_short(x)", "again_short", " again", "a second way that gives shape (4,), not (1,)"),
        ("tl.again_odd(x)", "again_odd", " again", "a second way that gives real numbers, not complex128"),
        ("tl.unit_op('pe_sfu', 'unit_raises', x)", "unit_raises", "",
         f"a function that computes, but it raised SystemExit: 0 at {leave}"),
    ):  # fmt: skip
        code, out, err, _ = call(made, "--verify-data", "--verify-ops")
        assert (code, out) == (6, ""), err
        told = f" could not be computed{again}: op {name!r} of {SOURCE} must have {must}; repair or reinstall {SOURCE}."
        assert told in err


@pytest.mark.parametrize(
    ("made", "name", "must"),
    [
        ("tl.unit_whole(x)", "unit_whole",
         "must be a MathOp for tl.unit_whole, not a function, which tl.unit_op calls"),
        ("tl.a_list(x)", "a_list", "must be a function of params and inputs, or a MathOp, not [1]"),
        ("tl.unit_op('pe_sfu', 'a_list', x)", "a_list",
         "must be a function of params and inputs, or a MathOp, not [1]"),
        ("tl.a_class(x)", "a_class",
         "must be a function of params and inputs, or a MathOp, not <class 'acme_calls.A_CLASS'>"),
    ],
)  # fmt: skip
def test_an_op_that_cannot_be_called_is_told_with_its_registration(call: Run, made: str, name: str, must: str) -> None:
    """At the call: `tl` has the name, and what is registered under it will not do."""
    code, _, err, _ = call(made)
    assert (code, err) == (6, f"error: op {name!r} of {SOURCE} {must}; repair or reinstall {SOURCE}.\n")


def test_a_function_gets_the_keywords_that_its_signature_has(call: Run) -> None:
    """Those that the kernel gave: for the others its own defaults stand."""
    code, _, err, _ = call("tl.unit_op('pe_sfu', 'scaled_by_unit', x, by=2, twice=True)", "--verify-ops")
    assert code == 0, err
    import acme_calls

    assert acme_calls.SEEN == ["(2, True)"] * 2
