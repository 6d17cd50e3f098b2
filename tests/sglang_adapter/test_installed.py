"""What the installed SGLang can do, read from its sources."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import rlprof
from rlprof_sglang import Sglang, _installed
from tests.sglang_adapter.history import number


@pytest.fixture(name="installed")
def _installed_fixture(tmp_path, monkeypatch):
    """Return a function that lays out the folders of an SGLang of that version."""
    monkeypatch.delenv("SGLANG_PLUGINS", raising=False)

    def installed(version):
        root = tmp_path / "sglang"
        (root / "srt").mkdir(parents=True)
        found = SimpleNamespace(submodule_search_locations=[str(root)])
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)
        monkeypatch.setattr(_installed, "version_of", lambda _: version)

    return installed


def capabilities():
    """Return what the doctor is told, by what it is about."""
    return {one.about: one.text for one in Sglang.advise(None, {}, on_host=True)}


def warnings():
    """Return the warnings among it."""
    found = Sglang.advise(None, {}, on_host=True)
    return {one.about: one.text for one in found if one.level == "warning"}


def test_the_newest_can_do_all_of_it(installed):
    """Any tool inside, with exact counts."""
    installed("0.5.21")

    said = capabilities()

    assert said["sglang"] == "0.5.21"
    assert said["way worker"] == "any tool, any rank, exact iterations; launched by rlprof.launch"


@pytest.mark.parametrize(("allowed", "is_told"), [("lora", True), ("lora,rlprof", False)])
def test_an_environment_that_keeps_our_plugin_out_is_named(
    installed, monkeypatch, allowed, is_told
):
    """A warning: SGLANG_PLUGINS names those SGLang may load, and ours is not among them."""
    installed("0.5.21")
    monkeypatch.setenv("SGLANG_PLUGINS", allowed)

    why = "SGLANG_PLUGINS is 'lora', without rlprof; the launch's environment adds it"
    assert warnings() == ({"way worker": f"not admitted: {why}"} if is_told else {})


def test_without_sglang_it_is_said_where_to_install(monkeypatch):
    """The trainer's environment has none, and need not."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with pytest.raises(rlprof.CaptureError, match="where the engine runs"):
        Sglang.advise(None, {}, on_host=True)


def test_a_release_nobody_has_read_is_warned_of(installed):
    """The newest that was read is the newest in the record of releases."""
    releases = json.loads(Path(__file__).with_name("signatures.json").read_bytes())
    newest = max(map(number, releases))
    assert number(f"sglang=={_installed.NEWEST}") == newest

    installed("99.1.0")

    assert "99.1.0 is newer" in warnings()["release"]


@pytest.mark.parametrize("value", ["", "0", "1"])
def test_sglangs_second_profiler_in_the_environment_is_warned_of(installed, monkeypatch, value):
    """With what to do; nothing where it is off."""
    installed("0.5.21")
    monkeypatch.setenv("SGLANG_PROFILE_V2", value)

    warned = [about for about, text in warnings().items() if text.endswith("; unset it")]

    assert warned == (["way native"] if value == "1" else [])
