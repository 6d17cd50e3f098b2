"""The kit, run on valid and invalid plugins by test_kit.py; not collected on its own."""

import pytest

from rlprof_testing import EngineTests, ExporterTests, ToolTests, _drive, overrides
from tests.kit import engines, heavy_tool, tools


def _offered(self):
    return None


_not_packaged = overrides("is not packaged")(_offered)
_left_out = overrides("takes long, and breaks no law there")(_offered)
_LONG = {
    "test_importing_it_is_light": [heavy_tool.ImportsHeavily],
    "test_configure_at_launch_is_pure": [tools.WritesAtLaunch],
    "test_export_runs_elsewhere_and_later": [tools.RemembersInTheProcess],
    "test_a_session_records_whole_windows": [],
    "test_recording_does_not_change_the_work": [tools.ChangesTheWork],
    "test_two_at_once_are_refused_or_both_record": [tools.WantsToBeAlone],
    "test_the_command_line_runs_it": [tools.ReadsFiles],
    "test_odd_values_are_told_and_raise_nothing": [tools.Good, engines.GoodEngine],
}
"""Slow laws run on the plugins that break them; valid plugins in `examples/` run all."""


def _tests(base, *plugins, **declared):
    """Add a class of tests to this module for each plugin."""
    for plugin in plugins:
        laws = [law for law, run in _LONG.items() if plugin not in run and hasattr(base, law)]
        body = dict.fromkeys(laws, _left_out) | {"test_it_is_offered_by_its_name": _not_packaged}
        name = f"Test{plugin.__name__}"
        globals()[name] = type(name, (base,), {**body, "plugin": plugin, **declared})


def _only(*laws):
    """Leave out all laws of engines except these."""
    all_ = {law for law in dir(EngineTests) if law.startswith("test_")}
    guard = {"test_standard_tests_are_replaced_only_with_a_reason"}
    return dict.fromkeys(all_ - {*laws} - guard, _left_out)


def _own_classes(module, base=object):
    return [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)
            and one.__module__ == module.__name__ and one.__doc__ is not None]  # fmt: skip


@pytest.fixture(autouse=True)
def _impatient(request, monkeypatch):
    if getattr(request.cls, "plugin", None) is engines.WaitsForTheDead:
        monkeypatch.setattr(_drive, "ANSWER_S", 2)


_OUTSIDE = {"engine": engines.engine, "work": engines.work, "kill": engines.kill}
_TOOLS = (*_own_classes(tools, tools.Good), heavy_tool.ImportsHeavily)
_tests(ToolTests, *_TOOLS, options={"count": 3}, heavy=("colorsys",))
_tests(ExporterTests, *(one for one in _own_classes(tools) if hasattr(one, "render")))
_tests(EngineTests, *_own_classes(engines, engines.Mini), **_OUTSIDE)
_tests(
    EngineTests,
    engines.GoodHive,
    engines.TellsNobody,
    engine=engines.cells,
    work=lambda self, handle: len(handle),
    cannot_be_killed="its processes are numbers",
    produces="files",
    **_only(
        "test_each_process_of_a_driven_engine_records_itself",
        "test_a_window_is_recorded",
        "test_windows_follow_each_other",
        "test_a_second_start_is_refused_or_harmless",
    ),
)


class _QuickTests(ToolTests):
    test_it_is_offered_by_its_name = _not_packaged
    vars().update(dict.fromkeys(_LONG, _left_out))


class TestReplacesInSilence(_QuickTests):
    plugin = tools.Good

    def test_a_second_stop_is_harmless(self):
        """Say nothing."""


class TestReplacesWithAReason(_QuickTests):
    plugin = tools.StopsOnlyOnce

    @pytest.mark.xfail(reason="the profiler below dies of a second stop", strict=True)
    def test_a_second_stop_is_harmless(self, driven, tmp_path):
        super().test_a_second_stop_is_harmless(driven, tmp_path)


class TestWorksNotHere(_QuickTests):
    plugin = tools.Good
    works_here = "needs a machine that is not here"


class TestMakesNoEngine(EngineTests):
    plugin = engines.GoodEngine
    vars().update(_only("test_a_window_is_recorded"))


class TestCannotBeKilled(EngineTests):
    plugin = engines.GoodEngine
    cannot_be_killed = "it lives in the trainer's process"
    engine, work = engines.engine, engines.work
    vars().update(_only("test_an_engine_that_dies_in_a_window_is_told"))
