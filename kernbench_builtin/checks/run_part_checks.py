"""The checks of a part of runs: a small run that asks for it is the same as one that does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from kernbench_core.plugins import Plugins
from kernbench_core.runs import RunPart
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.options import command_options
from kernbench_core.runs.parts import open_part
from kernbench_core.runs.result import RunResult
from kernbench_core.testing.kit import CheckFailed, NotApplicable, kit_of

_BENCH, _TOPOLOGY = "vector-add", "tiny"


@attrs.frozen
class PartUnderTest:
    """A part, and the plug-ins that it is of."""

    part: type[RunPart]
    plugins: Plugins

    def run(self, **options: Any) -> RunResult:
        """Make a small run."""
        if _BENCH not in self.plugins.benches or _TOPOLOGY not in self.plugins.topologies:
            raise NotApplicable(f"there is no bench {_BENCH!r} or no preset {_TOPOLOGY!r} to try it on")
        return run(_BENCH, _TOPOLOGY, {"n": 64}, plugins=self.plugins, **options)

    def asking(self, folder: str) -> RunResult:
        """Make the run with the options of its example; texts with {folder} name a file there."""
        if not self.part.EXAMPLE:
            raise NotApplicable("its EXAMPLE has no options that ask for it")
        texts = {name: each for name, each in self.part.EXAMPLE.items() if isinstance(each, str)}
        return self.run(**{**self.part.EXAMPLE, **{name: each.format(folder=folder) for name, each in texts.items()}})


def has_options_in_words(under_test: PartUnderTest) -> None:
    """Every option that the command line has says in a sentence what it does."""
    for name, option in command_options(under_test.part.OPTIONS).items():
        if not option.help.endswith("."):
            raise CheckFailed(f"the help of option {name!r} must be a sentence, not {option.help!r}")


def is_not_there_unasked(under_test: PartUnderTest) -> None:
    """A run whose options do not ask for it has no answer of it."""
    if under_test.part.ALWAYS:
        raise NotApplicable("every run has it")
    found = under_test.run().parts.get(under_test.part.NAME)
    if found is not None:
        raise CheckFailed(f"it answers {found!r} to a run that did not ask for it; wanted() must be False by default")


def changes_nothing_of_a_run(under_test: PartUnderTest) -> None:
    """The op log of a run that asks for it is the same, bit for bit."""
    with TemporaryDirectory() as folder:
        asked = under_test.asking(folder)
    if asked.op_log_sha256 != under_test.run().op_log_sha256:
        raise CheckFailed("a run that asks for it must have the op log of one that does not, and has another")


def answers_in_json(under_test: PartUnderTest) -> None:
    """What it answers is plain JSON, the same each time."""
    answers = []
    for _ in range(2):
        with TemporaryDirectory() as folder:
            answer = under_test.asking(folder).parts.get(under_test.part.NAME)
        if answer is None or not hasattr(answer, "to_json"):
            raise NotApplicable("its answer is not told in JSON")
        answers.append(_plain(answer.to_json()))
    if answers[0] != answers[1]:
        raise CheckFailed(f"it must answer the same to the same run, not {answers[0]!r} and then {answers[1]!r}")


def _plain(found: Any) -> Mapping[str, Any]:
    try:
        plain: Mapping[str, Any] = json.loads(json.dumps(found, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise CheckFailed(f"to_json must return plain JSON types without NaN, and {error}") from None
    return plain


KIT = kit_of(
    lambda plugins, name: PartUnderTest(open_part(name, plugins.run_parts), plugins),
    has_options_in_words,
    is_not_there_unasked,
    changes_nothing_of_a_run,
    answers_in_json,
)
