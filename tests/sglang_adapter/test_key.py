"""The key of a server: a config is written into the run folder, so it need not stand there."""

from __future__ import annotations

import pytest

from rlprof_sglang import SglangOptions


@pytest.mark.parametrize(
    ("said", "key"), [("$A_KEY", "secret"), ("plain", "plain"), ("$NO_SUCH", None), (None, None)]
)
def test_a_key_may_be_in_the_environment(said, key, monkeypatch):
    """The option then names the variable; one that is not set is as no key."""
    monkeypatch.setenv("A_KEY", "secret")

    assert SglangOptions(admin_api_key=said).key == key
