"""The pytest inside the tests that core's own have."""

from __future__ import annotations

from tests.builtin.budgets.conftest import inner as inner
from tests.builtin.budgets.conftest import result as result
