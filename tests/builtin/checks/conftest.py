"""A folder on the path of imports for tests of the checks."""

from __future__ import annotations

from tests.core.conftest import site as site
