"""The list of keys that `rlprof check --keys` prints."""

import json

import attrs

from rlprof import hookimpl, plugins
from rlprof.config import Config, Limits, Role
from tests.core.distributions import install, tool


@attrs.frozen
class Inner:
    size: int = attrs.field()
    """How large."""


@attrs.frozen
class Options:
    inner: Inner | None = None
    """None: nothing is
    inside."""
    rate: float = 0.5  # how often
    names: tuple[str, ...] = ("a", "b")
    again: "Options | None" = None


class Tool:
    Options = Options

    @hookimpl
    def start(self): ...


class Odd(Tool):
    Options = attrs.make_class("Nowhere", {"handle": attrs.field(type="Lost | None", default=None)})


def test_every_key_and_option_is_listed(shell, monkeypatch, tmp_path):
    """`check --keys` lists every key and option in the terminal's width, without broken plugins."""
    install(monkeypatch, tmp_path, "prof-bad", "raise RuntimeError('no')", tool("bad", "X"))
    plugins.register("tool", "mine", Tool)
    plugins.register("engine", "odd", Odd)
    monkeypatch.setenv("COLUMNS", "80")

    code, table, err = shell("check", "--keys")
    keys = {one.pop("key"): one for one in json.loads(shell("check", "--json", "--keys")[1])}

    assert (code, "tool 'bad'" in err) == (0, True)
    assert max(map(len, table.splitlines())) <= 80
    own = {key for key, one in keys.items() if not one["plugin"]}
    for path, cls in (("", Config), ("limits.", Limits), ("roles.<role>.", Role)):
        assert own >= {f"{path}{one.name}" for one in attrs.fields(cls)}
    assert [key for key in own if not keys[key]["meaning"]] == []
    assert (keys["limits.bytes"]["default"], keys["steps"]["default"]) == ("4GB", "none")
    assert {
        key.removeprefix("tools.mine."): (one["default"], one["type"], one["meaning"])
        for key, one in keys.items()
        if key.startswith("tools.mine.")
    } == {
        "inner": ("null", "", "null: nothing is inside."),
        "inner.size": ("", "a whole number", "How large."),
        "rate": ("0.5", "a number", "how often"),
        "names": ("[a, b]", "a list", ""),
        "again": ("null", "", ""),
    }
    assert keys["engines.odd.handle"]["type"] == "Lost | None"
    assert set(table.split()) >= set(keys)
