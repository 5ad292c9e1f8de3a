"""Hardware models, presets, benches and exporters, registered like any plug-in (PYTEST_DONT_REWRITE)."""
