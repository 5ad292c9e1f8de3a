"""Options of small machines, for tests of the command line."""

from __future__ import annotations

SMALL = ("--topology", "tiny", "--ranks", "3", "-j", "1")
#: For many runs of many ranks.
SMALLEST = ("--topology", "tiny", "--set", "cube.pes=1", "-j", "1", "--no-check")
