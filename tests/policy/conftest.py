"""What the tests of this folder share."""

from __future__ import annotations

import pytest

from pyshim import _native
from pyshim.errors import OverlapError


@pytest.fixture(scope="session")
def library() -> object:
    """The built library; what needs it is skipped in a checkout where nothing was built."""
    try:
        return _native.library()
    except OverlapError as error:
        pytest.skip(f"needs the built library: {error.sentence}")
