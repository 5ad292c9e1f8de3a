"""Attributes that classes declare: compiled code reads them where they lie in C, whatever a subclass says of them."""

from __future__ import annotations

from typing import Any


def declared_by(cls: type) -> tuple[str, ...]:
    """Return the names that a class says its objects have a place for."""
    names = cls.__dict__.get("__slots__", ())
    found = (names,) if isinstance(names, str) else tuple(names)
    return tuple(name for name in found if name not in ("__dict__", "__weakref__"))


def refuse_hidden(cls: type) -> None:
    """Raise TypeError for a class that has anything of its own by a name that a base of kernbench declares."""
    for base in cls.__mro__[1:]:
        if not base.__module__.startswith("kernbench_"):
            continue
        for name in declared_by(base):
            if name in cls.__dict__:
                raise TypeError(
                    f"{cls.__module__}.{cls.__qualname__} must leave {name!r} to {base.__name__}, which declares it "
                    "for each of its objects and reads it there; set it on the object, or choose another name."
                )


def watching(base: type[Any]) -> Any:
    """Return an `__init_subclass__` for a base, which refuses classes that hide what it declares."""

    def made(cls: type, /, **more: Any) -> None:
        super(base, cls).__init_subclass__(**more)
        refuse_hidden(cls)

    return classmethod(made)
