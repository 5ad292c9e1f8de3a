"""The pytest inside the tests that core's own have."""

from __future__ import annotations

from tests.core.testing.budgets.conftest import inner as inner
from tests.core.testing.budgets.conftest import result as result
