"""What a window costs: estimated by `rlprof plan`, and lessened under pressure."""

import time

import attrs
import pytest

import rlprof
from rlprof.config import check_config
from rlprof_cli import _calibration, main
from tests.core.steps import train


@pytest.fixture(name="use")
def _use(config, monkeypatch, tmp_path):
    """Return how `costly` is used, in a place where nothing was measured yet."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _, uses = check_config(config(tool="costly"))
    return uses["actor"][0]


def notes(prof):
    return [" ".join(capture.notes) for capture in rlprof.read(prof.run_dir).captures]


def levels(prof):
    return [capture.applied["level"] for capture in rlprof.read(prof.run_dir).captures]


@pytest.mark.slow
def test_a_tool_is_measured_in_a_process_of_its_own_and_once(use, monkeypatch):
    """Its sample runs bare and recorded; the second time the figures are there."""
    found = _calibration.measured(use)
    monkeypatch.setattr(_calibration, "begin", lambda _: 1 / 0)

    assert isinstance(found, _calibration.Calibration)
    assert found.slowdown >= 1
    assert found.bytes_per_s > 0
    assert _calibration.measured(use) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hook", "why"),
    [
        ("start", "RuntimeError: start went wrong"),
        ("export", "it is measured without a device, and refuses that: export says no"),
    ],
)
def test_a_tool_that_cannot_be_measured_says_why(use, hook, why):
    """What went wrong, or was refused, in the other process is told, and tried again next time."""
    broken = attrs.evolve(use, asked={"raises_in": hook})

    assert _calibration.measured(broken) == why
    assert not _calibration.file_of(broken).exists()


def test_plan_says_why_there_is_no_estimate(tmp_path, capsys):
    """A tool that is not installed here is no fault of a plan."""
    file = tmp_path / "p.yaml"
    file.write_text("{tool: nowhere, steps: [1], roles: {actor: {}}}")

    assert main(["plan", str(file)]) == 0
    assert "no estimate: config: tool: tool 'nowhere' is not installed" in capsys.readouterr().out


@pytest.mark.slow
def test_a_window_too_large_for_what_is_left_makes_the_next_one_lighter(config):
    """Rather less than nothing: the tool is asked for lighter options, and it is said."""
    given = config(tool="costly", tools={"costly": {"level": 2}}, limits={"bytes": 80})

    with rlprof.open(given) as prof:
        for step in range(3):
            train(prof, [step])
            while prof._tracks[0].instruments.spent < 30 * (step + 1):  # each leaves some 30 bytes
                prof.scribe._wake.set()
                time.sleep(0.01)

    assert levels(prof) == [2, 2, 1]
    assert notes(prof)[:2] == ["", ""]
    assert "recorded less than asked: level: 1; the last window took" in notes(prof)[2]
    assert "of its share of limits.bytes are left" in notes(prof)[2]


@pytest.mark.slow
def test_a_stop_that_was_nearly_too_slow_makes_the_next_one_lighter(config):
    """Half of stop_timeout_s is a warning, before the whole of it switches the tool off."""
    given = config(tool="costly", tools={"costly": {"level": 1}})

    with rlprof.open(given) as prof:
        train(prof, [0])
        prof._tracks[0].instruments._recorders["costly"].last_stop_s = 61.0
        train(prof, [1, 2])

    assert levels(prof) == [1, 0, 0]
    assert "the last stop took 61.0 s of limits.stop_timeout_s" in notes(prof)[1]
