"""A trainer, and the modules of the release it meets."""

from __future__ import annotations

import os

import pytest

from tests.sglang_adapter.generations import installed
from tests.sglang_adapter.lab import NEW, Lab


@pytest.fixture(name="lab")
def _lab(tmp_path):
    return Lab(tmp_path)


@pytest.fixture(name="release")
def _release():
    """The release that is installed; parametrize it for another."""
    return NEW


@pytest.fixture(name="modules")
def _modules(release, monkeypatch):
    """Import that release, and take away what this machine's own SGLang is told."""
    for name in [name for name in os.environ if name.startswith(("SGLANG_", "RLPROF_"))]:
        monkeypatch.delenv(name)
    with installed(release):
        yield
