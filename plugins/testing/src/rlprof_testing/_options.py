"""Options of tools and engines, and what `configure` does before the process exists."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import pytest

from rlprof import plugins
from rlprof.answers import Advice
from rlprof.config import Limits, check_config
from rlprof.config._tools import NoOptions
from rlprof.errors import ConfigError
from rlprof_testing._drive import python, structured
from rlprof_testing._plugin import PluginTests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof.plugins import Hooks

_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1.5, float("nan"), "", "x", "\ud800", [], ["x"], [None, {}], {},
    {"x": 1}, {1: 2},
)  # fmt: skip
_MOST_LIGHTER = 20

_LAUNCH = """
import json, os, sys, threading
import attrs
from rlprof import plugins
from rlprof.config import Faults, options_of
from pkgutil import resolve_name
from rlprof.types import Launch, Target, Workers
kind, where, heavy, asked, inside = json.loads(sys.argv[1])
plugin = resolve_name(where)
workers = Workers(inside)
replica = 0 if kind == "engine" else None
target = Target("rollout" if kind == "engine" else "actor", replica=replica)
imported = set(sys.modules)
environ, folder = dict(os.environ), os.getcwd()
said, odd = [], ""
for _ in range(2):
    options = options_of(plugin, asked, Faults())
    hook = plugins.hooks(plugin()).configure
    launch = hook(place="launch", target=target, options=options, handle=None, workers=workers)
    if launch is not None and not isinstance(launch, Launch):
        odd = repr(launch)
    said.append(launch and json.dumps(attrs.asdict(launch), sort_keys=True, default=repr))
changed = [
    what for what, is_so in {
        "the environment": environ != dict(os.environ),
        "the working directory": folder != os.getcwd(),
        "the threads": threading.active_count() != 1,
    }.items() if is_so
]
loaded = sorted({name.partition(".")[0] for name in set(sys.modules) - imported} & set(heavy))
print(json.dumps({"said": said, "odd": odd, "changed": changed, "loaded": loaded}))
"""


class OptionTests(PluginTests):
    """Laws of options and of `configure` at launch."""

    options: ClassVar[Mapping[str, Any]] = {}
    """The example in your documentation, as a config has it; all tests use these options."""

    def config_of(self, name: str, options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Return a config in which one role uses the plugin with *options*."""
        raise NotImplementedError

    def _check(self, called: str, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the faults a config with *options* has."""
        try:
            check_config(self.config_of(called, options))
        except ConfigError as exc:
            return exc.faults
        return ()

    def _section(self, called: str) -> str:
        return f"{self.kind}s.{called}"

    def _hooks(self) -> Hooks:
        return plugins.hooks(self.plugin())

    def inside(self) -> dict[str, dict[str, Any]]:
        """Return the tools that record inside it, with their options; only an engine has any."""
        return {}

    def test_the_documented_options_are_accepted(self, called: str) -> None:
        """A config with the documented example is valid."""
        assert self._check(called, self.options) == (), (
            f"`options = {dict(self.options)!r}` next to `plugin` is refused; declare the example "
            "of your README, and an `Options` (an attrs class) that accepts it"
        )

    def test_options_are_plain_data(self) -> None:
        """The options are plain data that a config file and a capture can hold."""
        again = json.loads(json.dumps(dict(self.options), allow_nan=False))

        assert structured(self.plugin, again) == structured(self.plugin, dict(self.options))

    def test_a_config_without_options_is_right_or_told_what_is_missing(self, called: str) -> None:
        """Every option has a default, or a config without it gets the error `is missing`."""
        wrong = [fault for fault in self._check(called, {}) if "is missing" not in fault]

        assert wrong == [], "the defaults of Options do not work; fix them"

    def test_an_unknown_option_is_refused_where_it_stands(self, called: str) -> None:
        """A misspelt option is a config error that names its path."""
        faults = self._check(called, {**self.options, "no_such_option": 1})

        path = f"{self._section(called)}.no_such_option"
        assert len(faults) == 1, f"expected one fault, about {path}; got {faults}"
        assert f"{path}: unknown key" in faults[0]

    def test_odd_values_are_told_and_raise_nothing(self, called: str) -> None:
        """Any value of an option is accepted or reported; parsers raise only ValueError."""
        fields = attrs.fields(getattr(self.plugin, "Options", NoOptions))
        wrong = {}
        for field in fields:
            for odd in _ODD:
                for fault in self._check(called, {**self.options, field.name: odd}):
                    if "cannot read its options" in fault or "configure raised" in fault:
                        wrong[f"{field.name}: {odd!r}"] = fault

        assert wrong == {}, (
            "parsers and validators of Options may raise only ValueError, and configure only "
            f"CaptureError; other exceptions are bugs of the plugin: {wrong}"
        )

    def test_configure_at_launch_is_pure(self, tmp_path: Path) -> None:
        """At launch, `configure` is pure: the same options give the same Launch.

        It may run for many processes, long before them, and on another host. So it imports nothing
        heavy, starts nothing, writes nothing, and its only result is the Launch.
        """
        where = f"{self.plugin.__module__}:{self.plugin.__qualname__}"
        inside = self.inside()
        argument = json.dumps([self.kind, where, self.heavy, dict(self.options), inside])
        place, temp = tmp_path / "cwd", tmp_path / "tmp"
        place.mkdir()
        temp.mkdir()
        found = []
        for seed in ("1", "2"):
            env = {"PYTHONHASHSEED": seed, "TMPDIR": str(temp), "HOME": str(temp)}
            result = python([sys.executable, "-c", _LAUNCH, argument], cwd=place, env=env)
            assert result.returncode == 0, f"configure at launch raised: {result.stderr[-2000:]}"
            found.append(json.loads(result.stdout.splitlines()[-1]))

        said = [launch for answer in found for launch in answer["said"]]
        assert found[0]["odd"] == "", f"return a Launch or None, not {found[0]['odd']}"
        assert said == said[:1] * 4, f"the same options gave different Launches: {said}"
        assert found[0]["loaded"] == [], (
            f"configure at launch imports {', '.join(found[0]['loaded'])}; do that where "
            'place == "process"'
        )
        assert found[0]["changed"] == [], (
            f"configure at launch changed {', '.join(found[0]['changed'])}; return a Launch instead"
        )
        assert [*place.iterdir(), *temp.iterdir()] == [], "configure at launch writes files"

    def test_advice_is_one_line_each(self) -> None:
        """`advise`, if there is one, returns one-line `Advice`, the same in every call."""
        if "advise" not in self._hooks():
            pytest.skip("has no hook advise, which returns what a user should know before the run")
        options = structured(self.plugin, dict(self.options))
        given = {"options": options, "limits": Limits(), "tools": self.inside(), "on_host": False}
        found = self._hooks().advise(**given) or []

        assert isinstance(found, (list, tuple)), (
            f"advise returned {found!r}; return a list of Advice"
        )
        odd = [one for one in found if not isinstance(one, Advice)]
        assert odd == [], f"advise returned {odd}; return rlprof.Advice"
        odd = [one for one in found if not one.text.strip() or len(one.text.splitlines()) > 1]
        assert odd == [], f"each text must be one line: {odd}"
        faults = [one for one in found if one.level == "fault"]
        assert faults == [], f"advise calls the documented options a fault: {faults}"
        assert list(self._hooks().advise(**given) or []) == list(found), (
            "the same options gave different advice"
        )

    def test_lighter_options_come_to_an_end(self) -> None:
        """`lighter`, if there is one, returns new valid options each time, and None at the end."""
        hooks = self._hooks()
        if "lighter" not in hooks:
            pytest.skip("has no hook lighter, which returns cheaper options")
        options = structured(self.plugin, dict(self.options))
        seen = [options]
        while (options := hooks.lighter(options=options)) is not None:
            assert type(options) is type(seen[0]), f"lighter returned {options!r}, not Options"
            assert options not in seen, f"lighter goes in a circle: it returned {options!r} before"
            seen.append(options)
            assert len(seen) < _MOST_LIGHTER, (
                "lighter never returns None; return None after the cheapest options"
            )
            again = json.loads(json.dumps(dict(self.options) | attrs.asdict(options)))
            assert structured(self.plugin, again) == options, (
                f"lighter returned {options!r}, which a config would refuse; return valid options"
            )
