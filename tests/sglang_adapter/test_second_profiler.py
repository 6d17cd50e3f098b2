"""SGLang's second profiler, in the environment: what it cannot do is said before a run."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import pytest

from rlprof_sglang import Sglang


@pytest.mark.parametrize("value", ["", "0", "1"])
def test_the_doctor_says_that_it_is_switched_on(value, tmp_path, monkeypatch):
    """A warning, with what to do; nothing where it is not."""
    (tmp_path / "srt/plugins").mkdir(parents=True)
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)
    monkeypatch.setenv("SGLANG_PROFILE_V2", value)

    found = Sglang.advise(None, {}, on_host=True)
    warned = [one.about for one in found if one.text.endswith("; unset it")]

    assert warned == (["way native"] if value == "1" else [])
