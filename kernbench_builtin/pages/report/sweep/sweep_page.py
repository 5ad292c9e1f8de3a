"""What the page of a sweep shows, as plain data: whoever swept hands it over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs


@attrs.frozen
class SweptParameter:
    """One parameter of a sweep by its `name`; `log` where its values stand apart by factors."""

    name: str
    log: bool = False


@attrs.frozen
class SweptObjective:
    """What a sweep is after: the smallest value is the best, or with `greatest` the largest.

    `figure` is the name of the figure that it is, where it is one: a name that ends in a unit says how it is written.
    """

    name: str
    greatest: bool = False
    figure: str = ""


@attrs.frozen
class MovedBy:
    """How far one parameter moves one objective.

    `share` is from 0 to 1, None where the points do not tell, and then `why` says it in words. `chance` is the share
    that a parameter which moves nothing has on the average. `ends` are the least and the greatest mean of the
    objective, each with the value of the parameter that it stands at.
    """

    parameter: str
    objective: str
    share: float | None
    why: str = ""
    chance: float = 0.0
    ends: tuple[tuple[float, str], tuple[float, str]] | None = None


@attrs.frozen
class SweepPage:
    """A sweep: its `name` on the page, `facts` about its plan, and its points.

    A point is a mapping with `key`, `index`, `status` ("ok", or what became of it), `values` by parameter, `figures`
    and `objectives` by name, and where there is one `error`, a sentence, `warnings`, sentences, `op_log_sha256`, and
    `fidelity`: of those of "screen" something was left out; they are shown, but are the best of nothing. Beside each
    point stand its `commands` (one that runs it again and one that makes its page) and its place in `links`, "" for
    those without a page. `front` tells which points none is better than in all objectives. `planned` counts the points
    that the plan asks for, None where nobody knows; `skipped` those that its constraints leave out. `moved_of` is the
    sentence that says of what `moved_by` tells.
    """

    name: str
    facts: Sequence[tuple[str, str]]
    parameters: Sequence[SweptParameter]
    objectives: Sequence[SweptObjective]
    points: Sequence[Mapping[str, Any]]
    front: Sequence[bool]
    commands: Sequence[tuple[str, str]]
    links: Sequence[str]
    moved_by: Sequence[MovedBy] = ()
    moved_of: str = ""
    planned: int | None = None
    skipped: int = 0
    notes: Sequence[str] = ()
