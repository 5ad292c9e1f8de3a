"""Read columns of a sweep's page as its script does, for tests of what comes to the page."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np


def unpacked(found: dict[str, Any]) -> np.ndarray:
    """Do what the page's script does, in another way: join the planes of bytes number by number."""
    kind = np.dtype(found["$"]).newbyteorder("<")
    data, count = zlib.decompress(base64.b64decode(found["z"])), found["n"]
    return np.frombuffer(bytes(data[plane * count + i] for i in range(count) for plane in range(kind.itemsize)), kind)


def read(found: dict[str, Any]) -> list[str]:
    """Return the texts of a column."""
    known = unpacked(found["texts"]).tobytes().decode().split("\0")
    return [known[code] for code in unpacked(found["codes"])]
