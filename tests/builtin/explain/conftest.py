"""Results made by hand, of core's tests."""

from tests.core.conftest import samples as samples
