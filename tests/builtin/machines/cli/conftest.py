"""The toy of core's tests, which lists and descriptions are of."""

from tests.core.conftest import samples as samples
from tests.core.conftest import toy as toy
