"""Hardware models, presets, benches and exporters, registered like any plug-in (PYTEST_DONT_REWRITE)."""

import kernbench_core  # noqa: F401  # it says whether the compiled form of a module is taken, here too
