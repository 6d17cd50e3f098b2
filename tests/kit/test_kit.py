"""The kit itself: valid plugins pass, and each invalid one fails only the law it breaks."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import rlprof
from rlprof.testing import overrides
from rlprof.types import Workers
from tests.cases import refused
from tests.waiting import python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RIGHT = (
    "Good ReplacesWithAReason WorksNotHere GoodExporter ReadsFiles GoodEngine CannotBeKilled "
    "GoodHive"
)
EXPECTED = {
    **{f"Test{name}": set() for name in RIGHT.split()},
    "TestImportsHeavily": {"test_importing_it_is_light"},
    "TestWritesAtLaunch": {"test_configure_at_launch_is_pure"},
    "TestStopsOnlyAfterStart": {"test_stop_without_start_is_harmless"},
    "TestStopsOnlyOnce": {"test_a_second_stop_is_harmless"},
    "TestStaysHalfOpen": {"test_a_failed_start_leaves_nothing_behind"},
    "TestStealsTheWindow": {"test_a_second_start_is_refused_or_harmless"},
    "TestRecordsOnce": {
        "test_windows_follow_each_other",
        "test_a_window_of_an_ended_thread_harms_nobody",
    },
    "TestChokesOnNames": {"test_ranges_may_have_any_name"},
    "TestRemembersInTheProcess": {"test_export_runs_elsewhere_and_later"},
    "TestCallsAllWhole": {
        "test_raw_data_that_were_cut_are_never_called_whole",
        "test_no_raw_data_are_never_called_whole",
        "test_a_window_never_closed_is_never_called_whole",
    },
    "TestWantsToBeAlone": {"test_two_at_once_are_refused_or_both_record"},
    "TestChangesTheWork": {"test_recording_does_not_change_the_work"},
    "TestReplacesInSilence": {"test_standard_tests_are_replaced_only_with_a_reason"},
    "TestWritesIntoTheRun": {"test_it_leaves_the_run_as_it_is"},
    "TestTrustsTheTraces": {"test_it_exports_any_run", "test_it_leaves_the_run_as_it_is"},
    "TestRemembersTheLastRun": {"test_two_runs_do_not_mix"},
    "TestTrustsFiles": {"test_it_reads_any_files_or_none"},
    "TestTellsNobody": {"test_each_process_of_a_driven_engine_records_itself"},
    "TestPassesOnItsErrors": {
        "test_a_second_start_is_refused_or_harmless",
        "test_an_engine_that_dies_in_a_window_is_told",
        "test_a_new_instance_meets_an_engine_that_records",
    },
    "TestWaitsForTheDead": {"test_an_engine_that_dies_in_a_window_is_told"},
}
"""Class of suite.py → the laws it fails."""


@pytest.fixture(scope="module", name="cases")
def _cases(tmp_path_factory):
    """Run suite.py in its own process and folder; return its test cases by class."""
    folder = tmp_path_factory.mktemp("kit")
    report = folder / "report.xml"
    words = ["-q", "-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider", "-W", "ignore"]
    words += ["--junitxml", report, ROOT / "tests/kit/suite.py"]
    result = python("-m", "pytest", *words, cwd=folder, timeout=None)
    assert report.exists(), result.stdout + result.stderr
    found = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 -- pytest's own
        found.setdefault(case.get("classname").rpartition(".")[2], []).append(case)
    return found


def broken(cases):
    """Return the failed laws and their messages."""
    told = {}
    for case in cases:
        for failure in [*case.findall("failure"), *case.findall("error")]:
            told[case.get("name").partition("[")[0]] = failure.text
    return told


@pytest.mark.parametrize("name", EXPECTED)
def test_a_plugin_fails_the_laws_it_breaks_and_no_other(cases, name):
    """A valid plugin passes every law, and an invalid one fails exactly those it breaks."""
    found = broken(cases[name])

    assert EXPECTED[name] == set(found), "\n".join(found.values())


def test_the_kit_explains_mistakes_and_skipped_laws(cases):
    """The kit names a wrong argument, a missing method and the reason of a skipped law."""
    argument = broken(cases["TestTakesAnUnknownArgument"])
    method = broken(cases["TestMakesNoEngine"])
    reasons = {
        name: {case.find("skipped").get("message") for case in cases[name] if len(case)}
        for name in ("TestWorksNotHere", "TestCannotBeKilled")
    }

    assert "did you mean 'folder'?" in argument["test_it_fits_the_contract"]
    assert "define engine(self), with @contextmanager" in method["test_a_window_is_recorded"]
    assert "needs a machine that is not here" in reasons["TestWorksNotHere"]
    assert "cannot be killed: it lives in the trainer's process" in reasons["TestCannotBeKilled"]


@pytest.mark.parametrize("reason", ["", None])
def test_overrides_wants_a_reason(reason):
    """`overrides` raises a TypeError without a reason."""
    assert "overrides: say why" in refused(TypeError, overrides, reason)


def test_without_a_run_there_are_no_orders():
    """`Workers.prepare` raises a CaptureError if there is no run."""
    with pytest.raises(rlprof.CaptureError, match=r"workers\.prepare: there is no run"):
        Workers({"torch": {}}).prepare()
