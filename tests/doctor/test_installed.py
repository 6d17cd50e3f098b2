"""The Python version, the installed core and plugins, and the clocks."""

import pytest

from rlprof.types import Clock
from rlprof_cli.doctor import _clocks, _examine, _plugins, examine
from rlprof_cli.doctor._interpreter import look_at_core, look_at_python
from rlprof_cli.doctor._plugins import look_at_plugins
from tests.cases import cases
from tests.core.distributions import GOOD, install


def test_a_python_newer_than_any_that_was_tried_is_named():
    """A Python newer than any that was tested is a warning."""
    assert [look_at_python(one)[0].level for one in ((3, 14, 2), (3, 99, 0))] == ["ok", "warn"]


def test_a_second_core_is_named(tmp_path, monkeypatch):
    """A second rlprof-core on the path is a warning that names its version and place."""
    install(monkeypatch, tmp_path, "rlprof-core", "", "", version="9.9")

    (found,) = look_at_core()

    assert found.level == "warn"
    assert f"is installed more than once: 9.9 in {tmp_path}" in str(found)


@pytest.mark.slow
def test_an_exporter_that_crashes_or_does_not_load_is_bad(tmp_path, monkeypatch):
    """An exporter whose import crashes is BAD, and the next one is still loaded."""
    offers = "[rlprof.exporters]\nbad = {module}:Page\nworse = {module}_gone:Page\n"
    install(monkeypatch, tmp_path, "acme", "import ctypes; ctypes.string_at(0)\n", offers)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    crashes, misses = (
        f"{one.level} {one}" for one in look_at_plugins({"bad", "worse"}, timeout_s=30)
    )

    assert crashes.startswith("BAD exporter bad: importing it crashed with SIGSEGV in ")
    assert "acme.py:1)" in crashes
    assert misses.startswith("BAD exporter worse: exporter 'worse' (acme 1.0) does not load: ")


@pytest.mark.slow
def test_a_tool_that_does_not_load_is_bad_without_a_config(tmp_path, monkeypatch):
    """Without a config, every installed tool is tried, and one that does not load is BAD."""
    offers = "[rlprof.tools]\nbroken = {module}:Nothing\nfine = {module}:Good\n"
    install(monkeypatch, tmp_path, "acme", GOOD, offers)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    mine = [one for one in _examine.offers() if one.name in ("broken", "fine")]
    for room in (_examine, _plugins):
        monkeypatch.setattr(room, "offers", lambda: mine)

    found = [f"{one.level} {one}" for one in examine()]

    (broken,) = (line for line in found if line.startswith("BAD"))
    begin = "BAD tool broken: tool 'broken' (acme 1.0) does not load: AttributeError"
    assert broken.startswith(begin)
    assert any(line.startswith("warn tool fine: left nothing") for line in found)
    assert not (tmp_path / "outputs").exists()


SECOND = 10**9
NOW = 1_790_000_000 * SECOND  # in 2026


def pair(offset_ns, monotonic_ns, bound_ns=200):
    return Clock(NOW + offset_ns + monotonic_ns, monotonic_ns, bound_ns)


@cases(
    "after, kernel, said",
    (pair(400_000, SECOND), 0, []),
    (pair(0, 0), 0, []),
    (pair(-5 * SECOND, SECOND), 0, [("clocks: the wall clock moved -5000.000 ms against the "
     "monotonic one within 1.0 s; let NTP settle before a run over several hosts")]),
    (pair(2_000_000, SECOND), 0, [("clocks: the wall clock moved +2.000 ms against the "
     "monotonic one within 1.0 s; let NTP settle before a run over several hosts")]),
    (pair(0, SECOND), 0x2041, ["clocks: the kernel reports the wall clock as unsynchronised; "
     + _clocks._MANY_HOSTS]),
    ids=["slewed", "no time", "set back", "set forward", "unsynchronised"],
)  # fmt: skip
def test_a_clock_that_was_set_or_is_not_synchronised_is_named(after, kernel, said):
    """A clock that jumped or is not synchronised is a warning; one in 1970 is BAD."""
    found = _clocks.look_at_clocks(pair(0, 0), after, kernel)

    assert [str(one) for one in found if one.level != "ok"] == said
    (unset,) = _clocks.look_at_clocks(Clock(0, 0, 0), Clock(SECOND, SECOND, 0), 0)
    assert unset.level == "BAD"
    assert "clocks: the wall clock says 1970-01-01; set it" in str(unset)
