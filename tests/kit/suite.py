"""The kit, run on plugins good and bad by test_kit.py; not collected by itself."""

from __future__ import annotations

import pytest

from rlprof_testing import EngineTests, ExporterTests, ToolTests, _drive, overrides
from tests.kit import engines, exporters, heavy_tool, tools


def _offered(self):
    return None


_not_packaged = overrides("is not packaged")(_offered)


def _tests(base, plugin, **declared):
    body = {"plugin": plugin, "test_it_is_offered_by_its_name": _not_packaged}
    return type(f"Test{plugin.__name__}", (base,), body | declared)


_ELSEWHERE = (
    "test_importing_it_is_light",
    "test_configure_at_launch_is_pure",
    "test_export_runs_elsewhere_and_later",
    "test_a_session_records_whole_windows",
    "test_recording_does_not_change_the_work",
    "test_two_at_once_are_refused_or_both_record",
    "test_the_command_line_runs_it",
    "test_odd_values_are_told_and_raise_nothing",
)
_GO_ELSEWHERE = {
    tools.Good: {"test_odd_values_are_told_and_raise_nothing"},
    engines.GoodEngine: {"test_odd_values_are_told_and_raise_nothing"},
    heavy_tool.ImportsHeavily: {"test_importing_it_is_light"},
    tools.WritesAtLaunch: {"test_configure_at_launch_is_pure"},
    tools.RemembersInTheProcess: {"test_export_runs_elsewhere_and_later"},
    tools.WantsToBeAlone: {"test_two_at_once_are_refused_or_both_record"},
    tools.ChangesTheWork: {"test_recording_does_not_change_the_work"},
    exporters.TakesArguments: {"test_the_command_line_runs_it"},
}
"""The laws that take long run on the plugins that break them; on right ones in `examples/`."""
_left_out = overrides("takes long, and breaks no law there")(_offered)


def _in_process(base, plugin):
    kept = _GO_ELSEWHERE.get(plugin, set())
    laws = [law for law in _ELSEWHERE if law not in kept and hasattr(base, law)]
    return dict.fromkeys(laws, _left_out)


def _only(*laws):
    """Leave out all laws of engines but these."""
    all_ = {law for law in dir(EngineTests) if law.startswith("test_")}
    guard = {"test_standard_tests_are_replaced_only_with_a_reason"}
    return dict.fromkeys(all_ - {*laws} - guard, _left_out)


def _own_classes(module):
    return [one for one in vars(module).values() if isinstance(one, type)
            and one.__module__ == module.__name__ and one.__doc__ is not None]  # fmt: skip


@pytest.fixture(autouse=True)
def _impatient(request, monkeypatch):
    """Give an engine that hangs less time than others."""
    if getattr(request.cls, "plugin", None) is engines.WaitsForTheDead:
        monkeypatch.setattr(_drive, "ANSWER_S", 2)


for _plugin in (*_own_classes(tools), heavy_tool.ImportsHeavily):
    if issubclass(_plugin, tools.Good):
        globals()[f"Test{_plugin.__name__}"] = _tests(
            ToolTests,
            _plugin,
            options={"count": 3},
            heavy=("colorsys",),
            **_in_process(ToolTests, _plugin),
        )

for _plugin in _own_classes(exporters):
    declared = _in_process(ExporterTests, _plugin)
    globals()[f"Test{_plugin.__name__}"] = _tests(ExporterTests, _plugin, **declared)

for _plugin in _own_classes(engines):
    if issubclass(_plugin, engines.Mini) and _plugin is not engines.AwaitsOnItsLoop:
        globals()[f"Test{_plugin.__name__}"] = _tests(
            EngineTests,
            _plugin,
            engine=engines.engine,
            work=engines.work,
            kill=engines.kill,
            **_in_process(EngineTests, _plugin),
        )


for _plugin in (engines.GoodHive, engines.TellsNobody):
    globals()[f"Test{_plugin.__name__}"] = _tests(
        EngineTests,
        _plugin,
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


TestAwaitsOnItsLoop = _tests(
    EngineTests,
    engines.AwaitsOnItsLoop,
    engine=engines.async_engine,
    work=engines.async_work,
    kill=engines.kill,
    loop=lambda self, handle: handle.loop,
    **_in_process(EngineTests, engines.AwaitsOnItsLoop),
)


class _QuickTests(ToolTests):
    test_it_is_offered_by_its_name = _not_packaged
    vars().update(dict.fromkeys(_ELSEWHERE, _left_out))


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
    vars().update(_only("test_a_window_of_a_dead_engine_is_refused"))
