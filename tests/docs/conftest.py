"""One folder for temporary files, so that what a tool costs is measured once for all pages."""

from __future__ import annotations

import pytest


@pytest.fixture(name="scratch", scope="session")
def _scratch(tmp_path_factory):
    """Return the folder that TMPDIR names while the code of a page runs."""
    return tmp_path_factory.mktemp("scratch")
