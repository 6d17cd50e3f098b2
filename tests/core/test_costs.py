"""The cost of a window: estimated by `rlprof plan` or read from an earlier run, and reduced."""

import time

import attrs
import pytest

import rlprof
from rlprof.config import check_config
from rlprof_cli import _calibration, main
from rlprof_cli._calibration import Calibration
from tests.cases import cases
from tests.core.steps import through, train


@pytest.fixture(name="use")
def _use(config, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _, uses = check_config(config(tool="costly"))
    return uses["actor"][0]


def notes(prof):
    return [" ".join(capture.notes) for capture in rlprof.read(prof.run_dir).captures]


def levels(prof):
    return [capture.applied["level"] for capture in rlprof.read(prof.run_dir).captures]


@pytest.mark.slow
def test_a_tool_is_measured_once_in_its_own_process(use, monkeypatch):
    """A tool's sample runs in another process; the second call reads the stored figures."""
    found = _calibration.measured(use)
    monkeypatch.setattr(_calibration, "begin", lambda _: 1 / 0)

    assert isinstance(found, _calibration.Calibration)
    assert found.slowdown >= 1
    assert found.bytes_per_s > 0
    assert _calibration.measured(use) == found


@pytest.mark.slow
@cases(
    "hook, why",
    ("start", "RuntimeError: start went wrong"),
    ("export", "it is measured without a device, and refuses that: export says no"),
)
def test_a_failed_measurement_returns_the_reason(use, hook, why):
    """A measurement that fails returns the reason and stores nothing, so that it is tried again."""
    broken = attrs.evolve(use, asked={"raises_in": hook})

    assert _calibration.measured(broken) == why
    assert not _calibration.file_of(broken).exists()


def test_plan_refuses_what_check_refuses(tmp_path, capsys):
    """`plan` refuses an unknown tool in the words of `check`; --no-estimate needs no plugin."""
    file = tmp_path / "p.yaml"
    file.write_text("{tool: nowhere, steps: [1], roles: {actor: {}}}")

    assert [main([command, str(file)]) for command in ("check", "plan")] == [1, 1]
    out, err = capsys.readouterr()
    assert (out, err.count(f"rlprof: {file}:1: tool: tool 'nowhere' is not installed")) == ("", 2)
    assert main(["plan", str(file), "--no-estimate"]) == 0


@pytest.mark.slow
def test_a_window_larger_than_the_bytes_left_makes_the_next_one_lighter(config):
    """A window larger than the bytes left makes the next one use lighter options and note it."""
    given = config(tool="costly", tools={"costly": {"level": 2}}, limits={"bytes": 80})

    with rlprof.open(given) as prof:
        for step in range(3):
            train(prof, [step])
            while prof.tracks[0].instruments.spent < 30 * (step + 1):  # each leaves some 30 bytes
                prof.scribe._wake.set()
                time.sleep(0.01)

    assert levels(prof) == [2, 2, 1]
    assert notes(prof)[:2] == ["", ""]
    assert "recorded less than asked: level: 1; the last window took" in notes(prof)[2]
    assert "of its share of limits.bytes are left" in notes(prof)[2]


@pytest.mark.slow
def test_a_slow_stop_makes_the_next_window_lighter(config):
    """A stop that took over half of stop_timeout_s makes the next window use lighter options."""
    given = config(tool="costly", tools={"costly": {"level": 1}})

    with rlprof.open(given) as prof:
        train(prof, [0])
        prof.tracks[0].instruments._recorders["costly"].last_stop_s = 61.0
        train(prof, [1, 2])

    assert levels(prof) == [1, 0, 0]
    assert "the last stop took 61.0 s of limits.stop_timeout_s" in notes(prof)[1]


@pytest.fixture(name="plan")
def _plan(calls, monkeypatch, tmp_path, shell):
    """Return a function that plans a config and returns the costs it prints, and stderr."""
    cost = Calibration(slowdown=2.0, bytes_per_s=3e6, stop_per_s=5.0)
    monkeypatch.setattr(_calibration, "known", lambda _: cost)
    file = tmp_path / "p.yaml"

    def run(*argv, text="{tool: costly, steps: [1], roles: {actor: {phases: [rollout]}}}"):
        file.write_text(text)
        code, out, err = shell("plan", file, *argv)
        assert code == 0
        return out.partition(">/\n\n")[2], err

    return run


def work(prof, steps):
    for _ in prof.steps(steps):
        with prof.phase("rollout"), prof.phase("inner"):
            pass
        through(prof.phase("update"))


@pytest.fixture(name="earlier")
def _earlier(config):
    given = config(tool="costly", steps=[2], roles={"actor": {"phases": ["rollout"]}})
    with rlprof.open(given) as prof:
        work(prof, range(1, 4))
    return prof.run_dir


def test_an_estimate_names_the_length_of_its_window(plan):
    """`plan` estimates for one second or for --window-s and names the options that tell it more."""
    usual, _ = plan()
    said, _ = plan("--window-s", "0.1")

    assert "a window of 1.0 s in which the tool has no pause" in " ".join(usual.split())
    assert "--window-s S" in usual
    assert "actor costly rollout 100 ms 2.0 x 300 kB 500 ms" in " ".join(said.split())
    assert "an upper bound, for a window of 100 ms" in said
    assert "--like RUN" in said
    assert "--window-s" not in said


@pytest.mark.slow
def test_a_run_that_recorded_the_tool_gives_its_own_figures(plan, earlier):
    """`plan --like` shows the sizes that the earlier run recorded and no estimate."""
    (capture,) = rlprof.read(earlier).captures
    size = sum(artifact.size for artifact in capture.artifacts)

    said, _ = plan("--like", earlier)

    assert said.startswith(f"one window cost in {earlier}, by the median:\n")
    (row,) = (line.split() for line in said.splitlines() if line.startswith("actor"))
    assert row[:4] == ["actor", "costly", "rollout", "1"]
    assert f"  {size} B  " in said
    assert "upper bound" not in said


@pytest.mark.slow
def test_plan_like_estimates_phases_the_run_did_not_record(plan, earlier):
    """`plan --like` estimates an unrecorded phase from its length; inner phases have no window."""
    said, _ = plan("--like", earlier, text="{tool: costly, steps: [1], roles: {actor: {}}}")

    there, _, bound = said.partition("one window costs at most, measured on this host:\n")
    assert "rollout" in there
    assert "update" in bound
    assert "inner" not in said
    assert "recorded none of these" in " ".join(bound.split())
