"""What a kernel holds beside tensors, pointers and numbers: it stands for data, and what only data has is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import ShapeError
from kernbench_core.wording import brief


class Placeholder:
    """Refuse, in a sentence, each operator and attribute of a tensor that a subclass does not define.

    Left to Python, `==`, a condition and a membership test would be answered by identity: wrong, and without a word.
    """

    __slots__ = ()
    __hash__ = object.__hash__
    __array_ufunc__ = None

    @property
    def words(self) -> str:
        """What it is, as a sentence calls it."""
        raise NotImplementedError

    @property
    def advice(self) -> str:
        """What to do for its data."""
        raise NotImplementedError

    def _refuse(self, use: str) -> NoReturn:
        raise ShapeError(
            f"{use} at {describe_site(call_site())} must be given tensors and numbers, not {self.words}; {self.advice}."
        )

    def _refuse_arithmetic(self, *_: object) -> NoReturn:
        self._refuse("arithmetic")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse_arithmetic
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _refuse_arithmetic
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse_arithmetic
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse_arithmetic
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse_arithmetic
    __neg__ = __pos__ = __abs__ = __invert__ = __round__ = __trunc__ = __floor__ = __ceil__ = _refuse_arithmetic
    __lt__ = __le__ = __gt__ = __ge__ = _refuse_arithmetic
    __eq__ = __ne__ = _refuse_arithmetic

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        self._refuse(f".{name}")


def _refusing(use: str) -> Callable[..., NoReturn]:
    return lambda self, *_, **__: self._refuse(use)


for _name, _use in {
    "__bool__": "a condition", "__len__": "len()", "__iter__": "a loop", "__contains__": "a membership test",
    "__getitem__": "an element", "__float__": "float()", "__complex__": "complex()", "__int__": "int()",
    "__index__": "an index", "__array__": "an array",
}.items():  # fmt: skip
    setattr(Placeholder, _name, _refusing(_use))


def describe_given(thing: object) -> str:
    """Call an object that a kernel gave where a tensor or number must be, in the words that follow "not"."""
    if hasattr(type(thing), "words"):
        words: str = thing.words  # type: ignore[attr-defined]  # of a placeholder, and of an index tensor
        return words
    kind, text = type(thing).__name__, brief(thing)
    return text if text.startswith(f"{kind}(") else f"{kind} {text}"
