"""Catalogues of shipped algorithms under any names, for tests of how these are found."""

from __future__ import annotations

from kernbench_ccl.catalogue import Catalogue
from kernbench_core.plugins import AlgorithmEntry, Provider, Registry

US = Provider("ccl", "kernbench", "1.0")
ACME = Provider("acme", "acme-kb", "2.0")


def catalogue(*names: str) -> Catalogue:
    """Make a catalogue of shipped algorithms under these names."""
    entries = []
    for name in names:
        target = f"kernbench_ccl.algorithms.{name.partition('.')[2]}:kernel"
        entries.append((AlgorithmEntry(name, target, "An algorithm."), US if name.startswith("ccl.") else ACME))
    return Catalogue(Registry("algorithm", entries))
