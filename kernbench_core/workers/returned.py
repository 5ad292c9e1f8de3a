"""The sentence for what a model returned, or declares, and nothing can be made of."""

from __future__ import annotations

from typing import Any

from kernbench_core.errors import ComponentError
from kernbench_core.wording import brief


def unusable(component: Any, what: str, must: str, found: object) -> ComponentError:
    """Return the error for a method or attribute `what` of a component that `must` return, or be, something else."""
    model = type(component)
    return ComponentError(
        f"{component.id}: {model.__module__}.{model.__qualname__}.{what} must {must}, not {brief(found)}; correct the "
        f"component or choose another one for kind {component.node.kind!r}."
    )
