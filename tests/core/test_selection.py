"""A part of a run: `Run.only`, what it keeps, and what it says where nothing is left."""

import attrs
import pytest

import rlprof
from rlprof import Selection, Window
from rlprof.errors import RunError
from rlprof.types import Target
from tests.cases import cases, refused
from tests.timeline.builder import NOW, RunBuilder

SECOND = 10**9


def step(process, number, *, phases=("rollout", "update")):
    """Write a step of one second that begins at *number* seconds, and its phases, half each."""
    start = NOW + number * SECOND
    outer = process.span("step", str(number), start, start + SECOND, step=number)
    for nth, name in enumerate(phases):
        begun = start + nth * SECOND // 2
        process.span("phase", name, begun, begun + SECOND // 2, step=number, parent=outer)


def record(process, number, phase, *, tool="torch"):
    """Record a phase of the step into a file, for as long as the phase took."""
    window = Window(number, number + 1, phase)
    start = NOW + number * SECOND + (SECOND // 2 if phase == "update" else 0)
    process.artifact(window, b"any", tool=tool, at=start, ns=SECOND // 2)


@pytest.fixture(name="path", scope="module")
def _path(tmp_path_factory):
    """Build a run: a driver with an engine, two actors, an agent whose spans have no step."""
    run = RunBuilder(tmp_path_factory.mktemp("runs"))
    driver = run.process("driver", size=1)
    actors = [run.process("actor", rank) for rank in range(2)]
    agent = run.process("agent", size=1)
    for number in range(5):
        step(driver, number)
        for actor in actors:
            step(actor, number, phases=("wait", "update"))
        start = NOW + number * SECOND
        agent.span("span", f"turn {number}", start + SECOND // 4, start + SECOND * 3 // 4)
    for number in (1, 3):
        for actor in actors:
            record(actor, number, "update")
            record(actor, number, "update", tool="torch_memory")
        driver.engine = Target("rollout", replica=0)
        record(driver, number, "rollout", tool="vllm")
        driver.engine = None
    return run.path


@pytest.fixture(name="run")
def _run(path):
    return rlprof.read(path)


def captured(run):
    return {(one.window.id, one.target.role, one.tool) for one in run.captures}


def roles(run):
    return {one.target.role for one in run.processes}


def spans(run):
    return {(one.target.role, one.name, one.step) for one in run.spans()}


@cases("steps, found", ([4, 1], {1}), ([range(2, 9)], {3}), ([range(0, 10, 2)], set()),
       ([range(3, 2**62)], {3}))  # fmt: skip
def test_steps_may_be_any_ranges(run, steps, found):
    """Numbers, stretches, every other one, and ranges without an end."""
    assert {one.window.start_step for one in run.only(Selection(steps=steps)).captures} == found


def test_an_engine_s_role_keeps_who_holds_the_engine(run):
    """The capture belongs to the driver's process; the driver's own spans are not of the role."""
    part = run.only(Selection(roles="rollout"))

    assert captured(part) == {("1/rollout", "rollout", "vllm"), ("3/rollout", "rollout", "vllm")}
    assert roles(part) == {"driver"}
    assert spans(part) == set()
    assert {one.process for one in part.captures} <= set(part.by_name)


def test_a_role_it_only_stands_in_is_an_actor_s_role_too(tmp_path):
    """An actor of a fleet that is attached as two roles writes as the first, and is of both."""
    built = RunBuilder(tmp_path)
    driver, actor = built.process("driver", size=1), built.process("actor", size=1)
    target = attrs.asdict(Target("actor"))
    driver.tell("attached", role="critic", target=target, ranks=[0])
    step(actor, 1)
    record(actor, 1, "update")

    part = rlprof.read(built.path).only(Selection(roles="critic"))

    assert captured(part) == {("1/update", "actor", "torch")}
    assert roles(part) == {"actor"}
    assert ("actor", "update", 1) in spans(part)


def test_only_windows(run):
    """Every capture, without what it recorded; of a tool that is named, too, with it."""
    part = run.only(Selection(only=["windows", "torch"]))

    assert captured(part) == captured(run)
    assert {one.tool for one in part.captures if one.artifacts} == {"torch"}
    assert spans(part) == set()


def test_a_time(run):
    """Captures and spans that have some of it; what ends as it begins has none."""
    part = run.only(Selection(from_ns=NOW + 3 * SECOND, until_ns=NOW + 3 * SECOND + SECOND // 2))

    assert captured(part) == {("3/rollout", "rollout", "vllm")}
    assert spans(part) == {
        ("driver", "3", 3), ("driver", "rollout", 3), ("actor", "3", 3), ("actor", "wait", 3),
        ("agent", "turn 3", None),
    }  # fmt: skip


def test_a_capture_that_was_never_closed_lasts_to_the_last_sign_of_life(tmp_path):
    """A process that died in its window may have recorded until then."""
    built = RunBuilder(tmp_path)
    actor = built.process(size=1)
    actor.open(Window(1, 2, "update"), NOW + SECOND)
    run = rlprof.read(built.path)

    def at(seconds):
        return run.only(Selection(from_ns=NOW + seconds * SECOND)).captures

    assert [one.state for one in at(50)] == ["lost"]
    assert "has nothing in the time selected" in refused(RunError, at, 61)


@cases(
    "asked, told",
    ({"roles": ["actro"]}, "has no role 'actro'; it has actor, agent, driver, rollout"),
    ({"roles": ["a", "b"], "steps": 99},
     "has no role 'a', 'b'; it has actor, agent, driver, rollout"),
    ({"steps": [99, range(200, 300)]}, "has no step 99, 200-299; it has 0-4"),
    ({"windows": ["2/update"]},
     "has no window '2/update'; it has 1/rollout, 1/update, 3/rollout, 3/update"),
    ({"only": ["tocrh"]}, "has no 'tocrh'; it has torch, torch_memory, vllm, spans, windows"),
    ({"from_ns": NOW + 90 * SECOND},
     "has nothing in the time selected; it goes from 0.0 s to 5.0 s"),
    ({"windows": ["update"], "steps": 2},
     "nothing in it is all that is selected at once; select less"),
    ({"from_ns": 9, "until_ns": 9}, "the time selected ends before it begins"),
)  # fmt: skip
def test_nothing_is_an_error_that_says_what_there_is(run, asked, told):
    """Which word matched nothing, and what there is instead."""
    assert refused(RunError, run.only, Selection(**asked)) == f"{run.path}: {told}"


def test_of_an_empty_run_there_is_no_part(tmp_path):
    """It says that there is none; all of it is all of it."""
    run = rlprof.read(RunBuilder(tmp_path).path)

    assert run.only(Selection()) == run
    for asked in ({"roles": "actor"}, {"windows": "7"}, {"only": "spans"}, {"steps": 1}):
        with pytest.raises(RunError, match="; it has none"):
            run.only(Selection(**asked))


def test_a_part_is_not_narrowed_again(run):
    """Two selections are one, made at once."""
    with pytest.raises(RunError, match="is a selection already"):
        run.only(Selection(steps=3)).only(Selection(roles="actor"))
