"""Trajectories of an agent loop: each span has the id of its own trajectory only."""

import asyncio
import random
from collections import Counter

import pytest

import rlprof
from tests.core.steps import through


@rlprof.annotate("call_tool", span=True)
async def call_tool(seconds):
    """Make spans deep below the loop, without a session or path at hand."""
    through(rlprof.span("connect"))
    await asyncio.sleep(seconds)
    async with rlprof.span("read", {"bytes": 3}):
        await asyncio.sleep(0)


@rlprof.annotate("score", span=True)
def score(n):
    return n % 7


async def agent(n, turns=2):
    """Run one trajectory, whose timing depends on its number alone."""
    chance = random.Random(n)  # noqa: S311 -- the same each time
    async with rlprof.trajectory(n) as path:
        for turn in range(turns):
            async with path.turn(turn):
                async with path.request({"tokens": n}):
                    await asyncio.sleep(chance.random() / 100)
                with path.tool_call("search"):
                    await call_tool(chance.random() / 100)
        with path.reward() as reward:
            reward.note("value", await asyncio.to_thread(score, n))


def read(prof):
    return [span for span in rlprof.read(prof.run_dir).spans() if span.kind == "span"]


@pytest.mark.slow
def test_thousands_of_trajectories_are_never_mixed(config):
    """Every span of 2,000 interleaved loops, with calls in threads, has its own id and parent."""
    count = 2_000

    async def loops():
        await asyncio.gather(*map(agent, range(count)))

    with rlprof.open(config(steps="none")) as prof:
        prof.step(3)
        with prof.phase("rollout"):
            asyncio.run(loops())

    assert prof.scribe.dropped == 0
    found = read(prof)
    parents = {span.id: span for span in rlprof.read(prof.run_dir).spans()}
    shapes = {n: Counter() for n in range(count)}
    for span in found:
        parent = parents[span.parent]
        own, above = span.attributes["trajectory"], parent.attributes.get("trajectory")
        shapes[own][f"{parent.name} > {span.name}"] += 1
        assert parent.name == "rollout" or own == above
        assert (span.step, parent.start_ns <= span.start_ns) == (3, True)
        assert span.end_ns <= parent.end_ns
    each = Counter({
        "rollout > trajectory": 1, "trajectory > turn": 2, "turn > request": 2,
        "turn > tool_call": 2, "tool_call > call_tool": 2, "call_tool > connect": 2,
        "call_tool > read": 2, "trajectory > reward": 1, "reward > score": 1,
    })  # fmt: skip
    assert [each] * count == list(shapes.values())


def test_a_span_has_the_id_of_the_trajectory_around_it_or_its_own(config):
    """A span has the id of the trajectory around it; a nested trajectory has its own id."""
    with rlprof.open(config(steps="none")) as prof:
        prof.step(1)
        with rlprof.trajectory("outer") as outer, prof.phase("generate"):
            with rlprof.trajectory("inner"), rlprof.span("deep"), outer.tool_call("shared"):
                pass
            with prof.span("one", {"trajectory": 17}), rlprof.span("two"):
                pass
        through(rlprof.span("after"))

    found = rlprof.read(prof.run_dir).spans()
    spans = {(span.name, span.attributes.get("trajectory")): span for span in found}
    keys = {span.id: key for key, span in spans.items()}
    step, root, sub = ("step 1", None), ("trajectory", "outer"), ("trajectory", "inner")
    assert {key: keys.get(span.parent) for key, span in spans.items()} == {
        step: None, root: step, ("generate", "outer"): root, sub: ("generate", "outer"),
        ("deep", "inner"): sub, ("tool_call", "outer"): root, ("one", 17): ("generate", "outer"),
        ("two", "outer"): ("one", 17), ("after", None): step,
    }  # fmt: skip


def test_a_task_that_outlives_its_trajectory_leaves_it(config):
    """A task that outlives its trajectory keeps the id for open spans and has none for new ones."""

    async def late(ended):
        with rlprof.span("begun before"):
            await ended.wait()
            through(rlprof.span("inside it"))
        through(rlprof.span("begun after"))

    async def main():
        ended = asyncio.Event()
        async with rlprof.trajectory(1) as path:
            task = asyncio.create_task(late(ended))
            await asyncio.sleep(0)
        async with rlprof.trajectory(2):
            ended.set()
            await task
            with path.reward(), rlprof.span("scored"):  # explicitly of the first one
                pass

    with rlprof.open(config(steps="none")) as prof:
        prof.step(1)
        asyncio.run(main())

    found = {span.name: span for span in read(prof)}
    ids = {name: span.attributes.get("trajectory") for name, span in found.items()}
    del ids["trajectory"]
    assert ids == {
        "begun before": 1, "inside it": 1, "begun after": None, "reward": 1, "scored": 1,
    }  # fmt: skip
    assert found["inside it"].parent == found["begun before"].id
    step = next(span for span in rlprof.read(prof.run_dir).spans() if span.kind == "step")
    assert found["begun after"].parent == step.id


def test_a_failed_or_cancelled_trajectory_has_the_error(config):
    """Spans of a trajectory that failed or was cancelled have an `error` attribute."""

    async def fails(n, exc):
        async with rlprof.trajectory(n) as path, path.turn(0):
            if exc:
                raise exc
            await asyncio.sleep(60)

    async def main():
        waiting = asyncio.create_task(fails(0, None))
        failing = asyncio.create_task(fails(1, ValueError()))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, failing, return_exceptions=True)
        await agent(2, turns=1)

    with rlprof.open(config(steps="none")) as prof:
        asyncio.run(main())

    errors = {(s.attributes["trajectory"], s.name): s.attributes.get("error") for s in read(prof)}
    for n, error in enumerate(["CancelledError", "ValueError"]):
        assert [errors.pop((n, name)) for name in ("trajectory", "turn")] == [error] * 2
    assert set(errors.values()) == {None}


@pytest.mark.parametrize("is_on", [False, True], ids=["off", "on"])
def test_results_and_errors_are_the_same_on_and_off(config, is_on):
    """A trajectory passes errors through on and off, and a session keeps all of its notes."""

    async def main():
        async with rlprof.trajectory("t", {"a": 1}) as path:
            path.note("b", 2)
            async with path.turn(1, {"c": 3}) as turn, path.request({"d": 4}), path.reward({}):
                turn.note("tokens", 5)
            given = {"e": 6, "tool": "mine", "trajectory": "b"}
            with path.tool_call("search", given), rlprof.span("deep", {"f": 7}) as deep:
                deep.note("g", 8)
                await asyncio.sleep(0)
        with prof.trajectory("u"):
            raise KeyError("mine")

    with (
        rlprof.open(config(steps="none") if is_on else None) as prof,
        pytest.raises(KeyError, match="mine"),
    ):
        asyncio.run(main())

    if is_on:
        ours = {"trajectory": "t"}
        assert [(span.name, dict(span.attributes)) for span in read(prof)] == [
            ("reward", ours), ("request", ours | {"d": 4}),
            ("turn", ours | {"turn": 1, "c": 3, "tokens": 5}), ("deep", ours | {"f": 7, "g": 8}),
            ("tool_call", ours | {"tool": "search", "e": 6}),
            ("trajectory", ours | {"a": 1, "b": 2}),
            ("trajectory", {"trajectory": "u", "error": "KeyError"}),
        ]  # fmt: skip


def test_after_the_session_nothing_is_written(config):
    """A path used after its session has closed raises nothing in strict mode and writes nothing."""
    with rlprof.open(config(steps="none", strict=True)) as prof:
        path = prof.trajectory(1)
        path.__enter__()

    with path.turn(1), rlprof.span("deep"), rlprof.trajectory(2) as other, other.reward():
        pass
    path.__exit__(None, None, None)

    assert read(prof) == []
