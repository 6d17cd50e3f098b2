"""A part of a run: the captures and spans that `Run.only` keeps, and its errors."""

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
    """Write a step of one second that begins at *number* seconds, with phases of half a second."""
    start = NOW + number * SECOND
    outer = process.span("step", str(number), start, start + SECOND, step=number)
    for nth, name in enumerate(phases):
        begun = start + nth * SECOND // 2
        process.span("phase", name, begun, begun + SECOND // 2, step=number, parent=outer)


def record(process, number, phase, *, tool="torch"):
    """Write an artifact for a phase of the step, as long as the phase."""
    window = Window(number, number + 1, phase)
    start = NOW + number * SECOND + (SECOND // 2 if phase == "update" else 0)
    process.artifact(window, b"any", tool=tool, at=start, ns=SECOND // 2)


@pytest.fixture(name="path", scope="module")
def _path(tmp_path_factory):
    """Build a run: a driver with an engine, two actors, and an agent whose spans have no step."""
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
    """Steps may be numbers, ranges with a stride, and ranges beyond the last step."""
    assert {one.window.start_step for one in run.only(Selection(steps=steps)).captures} == found


def test_the_role_of_an_engine_keeps_the_process_that_holds_it(run):
    """The role of an engine selects its captures and keeps the driver's process, not its spans."""
    part = run.only(Selection(roles="rollout"))

    assert captured(part) == {("1/rollout", "rollout", "vllm"), ("3/rollout", "rollout", "vllm")}
    assert roles(part) == {"driver"}
    assert spans(part) == set()
    assert {one.process for one in part.captures} <= set(part.by_name)


def test_a_second_role_of_an_actor_selects_it(tmp_path):
    """An actor that is attached as a second role is selected by that role, too."""
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


def test_only_windows_keeps_captures_without_artifacts(run):
    """`windows` keeps every capture without its artifacts; a named tool keeps its own."""
    part = run.only(Selection(only=["windows", "torch"]))

    assert captured(part) == captured(run)
    assert {one.tool for one in part.captures if one.artifacts} == {"torch"}
    assert spans(part) == set()


def test_a_selected_time_keeps_what_overlaps_it(run):
    """A selected time keeps captures and spans that overlap it, not those that end at its start."""
    part = run.only(Selection(from_ns=NOW + 3 * SECOND, until_ns=NOW + 3 * SECOND + SECOND // 2))

    assert captured(part) == {("3/rollout", "rollout", "vllm")}
    assert spans(part) == {
        ("driver", "3", 3), ("driver", "rollout", 3), ("actor", "3", 3), ("actor", "wait", 3),
        ("agent", "turn 3", None),
    }  # fmt: skip


def test_a_capture_that_was_never_closed_lasts_to_the_last_sign_of_life(tmp_path):
    """A lost capture lasts until the last moment at which its process may have lived."""
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
def test_a_selection_that_matches_nothing_is_an_error(run, asked, told):
    """A selection that matches nothing is an error that names the word and the alternatives."""
    assert refused(RunError, run.only, Selection(**asked)) == f"{run.path}: {told}"


def test_any_selection_of_an_empty_run_is_an_error(tmp_path):
    """An empty run equals its unrestricted selection; any other selection is an error."""
    run = rlprof.read(RunBuilder(tmp_path).path)

    assert run.only(Selection()) == run
    for asked in ({"roles": "actor"}, {"windows": "7"}, {"only": "spans"}, {"steps": 1}):
        with pytest.raises(RunError, match="; it has none"):
            run.only(Selection(**asked))


def test_a_selection_cannot_be_narrowed_again(run):
    """A selection of a selection is an error."""
    with pytest.raises(RunError, match="is a selection already"):
        run.only(Selection(steps=3)).only(Selection(roles="actor"))
