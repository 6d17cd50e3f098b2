"""Figures of the last step: their values, and the files where loggers find them."""

import asyncio
import gc
import random
import time

import pytest

import rlprof
from rlprof.types import Target
from rlprof_live import _pauses
from rlprof_live._figures import Figures
from rlprof_live._metrics import Metrics, text_of
from tests.core.steps import through
from tests.waiting import wait_until

S = 1_000_000_000
REPORT = pytest.importorskip("rlprof_report")


def raw(kind, name, start, end, number=0, *, parent=None, **noted):
    return kind, name, int(start * S), int(end * S), 7, 1, number, parent, 0, noted or None


def figures_of(*spans, end=100):
    """Return the figures that *spans* and a step around them make; a span alone makes none."""
    figures = Figures()
    *before, made = [figures.take(span) for span in [*spans, raw("step", "step 7", 0, end, 1)]]
    assert before == [None] * len(spans)
    return {key.removeprefix("rlprof/"): value for key, value in made.items()}


def test_phases_and_the_rest_add_up_to_the_step():
    """Outermost phases and unaccounted time add up to the step; names are valid for MLflow."""
    found = figures_of(
        raw("phase", "inner", 12, 18, 3, parent=2),
        raw("phase", "rollout", 10, 40, 2, parent=1),
        raw("phase", "update", 30, 60, 4, parent=1),
        raw("phase", "update", 70, 80, 5, parent=1),
        raw("phase", "rollout (v2)/a b.c:d", 80, 90, 6, parent=1),
    )

    assert found == {
        "step": 7.0, "step_s": 100.0, "phase/rollout_s": 30.0, "phase/update_s": 40.0,
        "phase/rollout _v2__a b.c:d_s": 10.0, "unaccounted_s": 30.0,
    }  # fmt: skip


async def solve(number, dice):
    async with rlprof.trajectory(number) as path:
        for turn in range(2):
            with path.turn(turn):
                noted = {"replica": number % 2, "tokens": number + 1, "queued_s": 0.001}
                async with path.request(noted):
                    await asyncio.sleep(dice.uniform(0.005, 0.03))
                async with path.tool_call("search"):
                    await asyncio.sleep(dice.uniform(0, 0.01))


async def rollout(dice):
    await asyncio.gather(*(solve(number, dice) for number in range(40)))


@pytest.mark.slow
def test_figures_are_those_of_the_report(config):
    """The session's figures are the report's; a metrics file exists until the session closes."""
    dice = random.Random(1)  # noqa: S311 -- no secret
    assert rlprof.Off().figures() == {}
    with rlprof.open(config(tool="none", steps="none")) as prof:
        assert prof.figures() == {}
        for step in prof.steps([3, 4]):
            with prof.phase("rollout"):
                asyncio.run(rollout(dice))
            with prof.phase("update"), rlprof.trajectory(step) as path, path.reward():
                time.sleep(0.01)
        prof.scribe.flush()
        found = prof.figures()
        (file,) = wait_until(lambda: list(prof.run_dir.glob("metrics/*.prom")))
        metrics = file.read_text()

    assert 'rlprof_step{run="' in metrics
    assert not file.exists()
    step = REPORT.analyse(rlprof.read(prof.run_dir)).steps[-1]
    rollouts = step.rollout
    expected = {
        "rlprof/step": 4,
        "rlprof/step_s": step.seconds,
        "rlprof/unaccounted_s": step.unaccounted_s,
        "rlprof/trajectories": rollouts.trajectories,
        "rlprof/trajectory_p99_s": rollouts.trajectory_s["p99"],
        "rlprof/tail95_s": rollouts.tail_s["0.95"],
        "rlprof/tokens": rollouts.tokens,
        "rlprof/tokens_per_s": rollouts.tokens_per_s,
        "rlprof/slots_used": rollouts.utilisation,
        **{f"rlprof/phase/{phase.name}_s": phase.seconds for phase in step.phases},
    }
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_metrics_have_the_format_of_node_exporter(tmp_path):
    """A metrics file has one gauge per figure, and its phases are escaped labels."""
    figures = {"rlprof/step_s": 1.5, "rlprof/phase/a_s": 0.5, 'rlprof/phase/"b"\n_s': 0.25}
    file = tmp_path / "metrics" / "actor.prom"
    metrics = Metrics(file, "r", Target("actor", 1, 2))

    metrics.write(figures)

    labels = 'run="r",role="actor",rank="1"'
    text = text_of(figures, {"run": "r", "role": "actor", "rank": "1"}, 12.0)
    assert text.splitlines() == [
        "# TYPE rlprof_step_s gauge",
        f"rlprof_step_s{{{labels}}} 1.5",
        "# TYPE rlprof_phase_s gauge",
        f'rlprof_phase_s{{{labels},phase="a"}} 0.5',
        f'rlprof_phase_s{{{labels},phase="\\"b\\"\\n"}} 0.25',
        "# TYPE rlprof_updated_timestamp_seconds gauge",
        f"rlprof_updated_timestamp_seconds{{{labels}}} 12.0",
    ]
    assert file.read_text().splitlines()[:-1] == text.splitlines()[:-1]
    metrics.remove()
    assert not file.parent.exists()


def test_spans_beyond_their_bound_are_summed_up(config):
    """Spans beyond spans.bytes are left out and summed up; steps and phases are all kept."""
    with rlprof.open(config(tool="none", steps="none", spans={"bytes": "10KB"})) as prof:
        for step in prof.steps(range(20)):
            with prof.phase("rollout"):
                for _ in range(50):
                    through(prof.span("request"))
            if step == 9:
                prof.scribe.flush()

    run = rlprof.read(prof.run_dir)
    names = [span.name for span in run.spans()]
    summaries = [span for span in run.spans() if span.name == "summary"]
    left_out = 1000 - names.count("request")
    assert (names.count("rollout"), sum(name.startswith("step") for name in names)) == (20, 20)
    assert left_out > 900
    assert sum(one.attributes["left_out"] for one in summaries) == left_out
    assert summaries[-1].attributes["figures"]["rlprof/step"] == 19.0
    (problem,) = run.problems
    assert f": {left_out} spans are left out beyond spans.bytes; steps" in problem


def test_a_long_garbage_collection_is_a_span(config, monkeypatch, request):
    """A long garbage collection is a span, a short one is not; close removes the gc callback."""
    monkeypatch.setattr(_pauses, "_LEAST_NS", 100_000_000)
    request.addfinalizer(gc.enable)
    gc.disable()  # a real collection may be a long one, too
    before = len(gc.callbacks)
    with rlprof.open(config(tool="none", steps="none")) as prof:
        prof.step(3)
        (watch,) = gc.callbacks[before:]
        watch("start", {"generation": 0})
        watch("stop", {"generation": 0, "collected": 1, "uncollectable": 0})
        watch("start", {"generation": 2})
        time.sleep(0.11)
        watch("stop", {"generation": 2, "collected": 5, "uncollectable": 0})

    (span,) = (one for one in rlprof.read(prof.run_dir).spans() if one.name == "gc")
    assert span.seconds >= 0.11
    assert (span.step, span.attributes) == (3, {"generation": 2, "collected": 5})
    assert len(gc.callbacks) == before
