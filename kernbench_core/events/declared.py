"""Attributes that a base declares: where it is compiled they lie in C, where nothing that hides them is ever asked."""

from __future__ import annotations

from typing import Any

from kernbench_core.errors import ComponentError
from kernbench_core.events.copying import slots_of

#: How the packages begin whose classes may be compiled; what classes of others declare is theirs, in both forms.
_PACKAGES = "kernbench_"


def _refuse_hidden(cls: type) -> None:
    """Raise ComponentError for a class on which something hides an attribute that a base of kernbench's declares.

    It is the class's own, or that of a base which is asked before the one that declares the attribute.
    """
    asked: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.startswith(_PACKAGES):
            for name in slots_of(base):
                if name in asked:
                    raise ComponentError(
                        f"{cls.__module__}.{cls.__qualname__} must not have `{name}` on the class: {base.__name__} "
                        "declares it as an attribute of each object, which core reads past the class; "
                        f"set `self.{name}`, or choose another name."
                    )
        asked.update(vars(base))


def _check_subclass(cls: Any, /, **options: Any) -> None:
    root: Any = next(base for base in cls.__mro__ if vars(base).get("__init_subclass__") is refuses_to_be_hidden)
    super(root, cls).__init_subclass__(**options)
    _refuse_hidden(cls)


#: The `__init_subclass__` of a base whose attributes must not be hidden; Cython takes no `def` of that name in a class.
refuses_to_be_hidden: Any = classmethod(_check_subclass)
