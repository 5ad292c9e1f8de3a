"""The integers that the shipped kernels know networks by."""

from __future__ import annotations

from typing import Final

RING: Final = 0
MESH_2D: Final = 1
TORUS_2D: Final = 2
FULLY_CONNECTED: Final = 3
SWITCH: Final = 4
OTHER: Final = 5

ANYWHERE: Final = {
    "ring": RING,
    "mesh_2d": MESH_2D,
    "torus_2d": TORUS_2D,
    "fully_connected": FULLY_CONNECTED,
    "switch": SWITCH,
    "*": OTHER,
}
"""What an algorithm that runs on every network publishes: messages are routed where ranks are no neighbours."""
