"""Values that nobody would read whole, wherever a user gives one: the sentence about them stays one that is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_core.cli import main
from kernbench_core.errors import ConfigError, KernbenchError
from kernbench_core.plugins import Plugins
from kernbench_core.runs.options import RunCall, command_options
from kernbench_core.topology.configuration import load_config
from kernbench_core.wording import brief, in_a_line, shortened
from tests.core.topology.text_config import parse_config

#: Letters of a message, without the lines of the user that led there, and of one of several problems.
MOST, LINE = 1000, 700


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


HUGE: dict[str, Any] = {
    "text": "x" * 100_000,
    "lines": "a\n" * 50_000,
    "list": ["y" * 50_000] * 20,
    "numbers": list(range(5000)),
    "mapping": {f"k{at}": "z" * 1000 for at in range(50)},
    "array": np.array(["q" * 50_000] * 5),
    "integer": 10**5000,
    "unspeakable": Unspeakable(),
}
values = pytest.mark.parametrize("value", HUGE.values(), ids=HUGE)


def told(action: Callable[[], object]) -> str:
    """Return what an action is refused with; every line is one that can be read."""
    with pytest.raises(KernbenchError) as caught:
        action()
    for problem in caught.value.problems if isinstance(caught.value, ConfigError) else (str(caught.value),):
        sentence = problem.partition("\n  in ")[0].partition("\n  File ")[0]
        assert len(sentence) <= MOST, sentence
        assert all(len(line) <= LINE for line in problem.split("\n"))
    return str(caught.value)


def test_a_value_is_shown_as_far_as_it_is_read() -> None:
    """A short one whole, as its repr; a long one begins as its repr; what has no repr is named by its type."""
    for value in ("x", [1, "2"], {"a": 1}, (1,), None, 2.5, b"x", {1}):
        assert brief(value) == repr(value)
    for name in ("text", "lines", "list", "numbers", "mapping"):
        assert brief(HUGE[name]) == f"{repr(HUGE[name])[:199]}…"
    assert brief(np.eye(20), 60).startswith("array([[1., 0., 0.,") and "\n" not in brief(np.eye(20))
    assert brief(HUGE["integer"]) == "<int>" and brief(Unspeakable()) == "<Unspeakable>"
    assert in_a_line("a\n b\n", 3) == "a b" and in_a_line("abcd", 3) == "ab…"


def test_nothing_is_looked_at_that_is_not_shown() -> None:
    """Of a list of a million things that tell of themselves, a few are asked."""
    asked = []

    class Counted:
        def __repr__(self) -> str:
            asked.append(1)
            return "c"

    assert brief([Counted()] * 10**6).startswith("[c, c, ") and len(asked) <= 201


def test_of_a_long_text_the_middle_goes() -> None:
    """Of each line that is too long, and of lines that are too many; whatever is short stays as it is."""
    assert shortened("a" * 700) == "a" * 700
    text = shortened("\n".join(["head " + "b" * 5000 + " tail", "short"]))
    assert text.startswith("head bbb") and " … " in text and text.endswith("bbb tail\nshort") and len(text) < 700
    many = shortened("\n".join(map(str, range(5000)))).split("\n")
    assert many[:120] == [str(at) for at in range(120)] and many[-40:] == [str(at) for at in range(4960, 5000)]
    assert many[120] == "… 4,840 lines …" and len(many) == 161


@values
def test_options_of_a_run(plugins: Plugins, value: Any) -> None:
    """Those that refuse a value; a text is a good name of a file, and any iterable text a setting."""
    for option in command_options(RunCall):
        given = {"topology": "tiny", **({"params": value} if option == "params" else {option: value})}
        if option in ("set", "components", "out", "report", "trace") and not isinstance(value, int):
            continue
        if option in ("seed", "max_events") and value is HUGE["integer"]:
            continue  # which is one
        assert option.replace("_ns", "")[:3] in told(lambda given=given: kb.run("vector-add", plugins=plugins, **given))


@values
def test_parameters_of_a_bench(plugins: Plugins, value: Any) -> None:
    for bench, name in (("vector-add", "n"), ("gemm", "dtype"), ("gemm", "a"), ("gemm-sweep", "sizes")):
        if value is not HUGE["integer"] or name != "n":
            told(lambda bench=bench, name=name: kb.run(bench, "tiny", {name: value}, plugins=plugins))
    told(lambda: kb.run(HUGE["text"], "tiny", plugins=plugins))
    told(lambda: kb.run("vector-add", "tiny", {HUGE["text"]: 1}, plugins=plugins))


@values
def test_values_of_a_configuration(plugins: Plugins, value: Any) -> None:
    """As objects, by keys, and from a file; each problem is one that is read."""
    for key in ("system.sips", "cube.pes", "components.pe_gemm.params.rows", "nope"):
        if value is not HUGE["mapping"]:
            told(lambda key=key: kb.run("vector-add", "tiny", {"n": 64}, set={key: value}, plugins=plugins))
    told(lambda: kb.run("vector-add", {"base": "tiny", "cube": {"pes": value}}, {"n": 64}, plugins=plugins))
    told(lambda: kb.run("vector-add", {"base": value}, {"n": 64}, plugins=plugins))


@pytest.mark.parametrize("text", [HUGE["text"], HUGE["lines"]], ids=["text", "lines"])
def test_texts_of_a_configuration(plugins: Plugins, text: str) -> None:
    """Settings, and YAML that is none."""
    for setting in (text, f"{text}=1", f"cube.pes={text}", f"title={{{text}", f"{text}.a=b"):
        told(lambda setting=setting: kb.run("vector-add", "tiny", set=[setting], plugins=plugins))
    told(lambda: parse_config(f"{text}: [", "f.yaml"))
    told(lambda: load_config(text))


def kernel(x_ptr: Any, n: Any, tl: Any) -> None:
    tl.store(x_ptr + tl.arange(0, 4), tl.load(x_ptr + tl.arange(0, 4)) + n)


LANGUAGE: dict[str, Callable[[Any, Any, Any], object]] = {
    "load": lambda tl, x, value: tl.load(value),
    "offset": lambda tl, x, value: tl.load(x + value),
    "exp": lambda tl, x, value: tl.exp(value),
    "dtype": lambda tl, x, value: tl.zeros((4,), value),
    "recv": lambda tl, x, value: tl.recv((4,), "f32", value),
    "name": lambda tl, x, value: getattr(tl, "n" * 100_000),
    "message": lambda tl, x, value: tl.static_assert(False, "n" * 100_000),
}


@values
def test_what_is_given_to_a_kernel(plugins: Plugins, value: Any) -> None:
    x = np.zeros(4, np.float32)
    for call in (
        lambda: kb.launch(kernel, x, value, topology="tiny", plugins=plugins),
        lambda: kb.launch(kernel, x, 1, topology="tiny", grid=value, plugins=plugins),
        lambda: kb.launch(value, x, 1, topology="tiny", plugins=plugins),
        lambda: kb.run(lambda rt: rt.tensor(x, dtype=value), "tiny", plugins=plugins),
        lambda: kb.run(lambda rt: rt.tensor(x, placement=value), "tiny", plugins=plugins),
        lambda: kb.run(lambda rt: rt.zeros((4,), "f32")[value], "tiny", plugins=plugins),
    ):
        told(call)
    for use in LANGUAGE.values():

        def using(x_ptr: Any, tl: Any, use: Any = use) -> None:
            use(tl, x_ptr, value)

        told(lambda using=using: kb.run(lambda rt: rt.launch(using, rt.zeros((4,), "f32")), "tiny", plugins=plugins))


def test_options_of_the_command_line(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """Each option of a run, the argument, a parameter, and other commands; what is told fits a screen."""
    text = HUGE["text"]
    flags = [f"--{option.name or name.replace('_', '-')}" for name, option in command_options(RunCall).items()
             if option.metavar or option.choices]  # fmt: skip
    calls = [["run", "vector-add", "--topology", "tiny", flag, text] for flag in flags]
    calls += [["run", text], ["run", "gemm", "-p", text], ["run", "gemm", "-p", f"{text}=1"]]
    calls += [["run", "gemm", f"--{text}"], [text]]
    calls += [["trace", text], ["report", text, "-o", "x.html"], ["topology", "show", text], ["rerun", text]]
    calls += [["components", text], ["list", text], ["probe", "--topology", text], ["ccl", text], ["web", text]]
    for call in calls:
        assert main(call, plugins) not in (0, 1)
        err = capsys.readouterr().err
        assert err.startswith("error: ") or "must" in err, err[:300]
        assert len(err) <= 2 * MOST, (call[:5], err[:300])
