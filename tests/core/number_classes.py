"""Classes of numbers that a model may have its times of, and what is no number."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np


class Louder(float):
    """A float that adds as no float does, and is another in C."""

    def __add__(self, other: float) -> Louder:
        return Louder(float(self) + other + 1.0)

    __radd__ = __add__


#: Classes of numbers that a model may have times of.
NUMBERS = (Decimal, Fraction, Louder, np.float64, np.float32, np.array, np.int64, int)
#: What is no number, and its class as the error spells it.
NO_NUMBERS = (("12", "str"), (None, "NoneType"), (1j, "complex"))
