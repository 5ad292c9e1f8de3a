"""Collective algorithms and their torch.distributed-like API, registered like any plug-in (PYTEST_DONT_REWRITE)."""
