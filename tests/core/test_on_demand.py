"""Requests to a live run: the helper thread reads them, the next free step records."""

import re
import subprocess
import threading

import pytest

import rlprof
from rlprof import control
from rlprof.config import load_config
from rlprof_cli._requests import joined
from rlprof_live._slow import SlowSteps
from rlprof_live.control import cancel
from tests.cases import cases
from tests.core.steps import command, through
from tests.core.steps import train as take
from tests.waiting import wait_until


def asked(prof, **wanted):
    """Write a request, wait until the helper thread has answered it; return the answers."""
    request = control.Request(**({"id": control.new_id(), "role": "actor"} | wanted))
    control.write(prof.run_dir, request)

    def answers():
        prof.scribe.hurry()
        return [a for a in rlprof.read(prof.run_dir).answers if a.id == request.id]

    wait_until(answers, "an answer")
    return answers()


def ask(prof, **wanted):
    return asked(prof, **wanted)[0]


def train(prof, steps=range(3)):
    take(prof, steps, "rollout", "update")


def windows(prof):
    return [c.window.id for c in rlprof.read(prof.run_dir).captures]


@pytest.mark.slow
def test_a_run_without_steps_records_requests(config):
    """Without steps, a run records requests only: the next steps, or those from `at` on."""
    with rlprof.open(config(steps="none")) as prof:
        train(prof, range(3))
        late = ask(prof, at=6, phases=("rollout",))
        soon = ask(prof, next=2)
        train(prof, range(3, 8))

    run = rlprof.read(prof.run_dir)
    assert (late.state, soon.state) == ("waiting", "waiting")
    assert {one.id: (one.state, one.steps) for one in run.answers} == {
        late.id: ("served", (6,)), soon.id: ("served", (3, 4)),
    }  # fmt: skip
    assert windows(prof) == ["3/rollout", "3/update", "4/rollout", "4/update", "6/rollout"]
    assert [c.request for c in run.captures] == [soon.id] * 4 + [late.id]


def test_a_run_without_steps_loads_no_tool_and_starts_two_threads(config, calls, tmp_path, shell):
    """A run without steps starts two threads and loads no tool, scratch folder or counters."""
    before = set(threading.enumerate())

    with rlprof.open(config(steps="none", counters="none")) as prof:
        train(prof, range(3))
        started = set(threading.enumerate()) - before
        for thread in started:
            if thread.name == "rlprof-open":  # it has joined the run, and ends soon
                thread.join()
        threads = sorted(thread.name for thread in started if thread.is_alive())

    assert threads == ["rlprof-live", "rlprof-scribe"]
    assert [call for call in calls if call[2:3] != ("launch",)] == []
    assert list((tmp_path / "scratch").rglob("actor-*")) == []
    assert not (prof.run_dir / "counters").exists()
    assert "was captured; nothing is recorded until it is asked" in shell("ls", prof.run_dir)[1]


# failures.md: step-over
def test_a_step_that_is_over_is_refused(config):
    """A request for a step that has begun or is over is refused, and no other step is recorded."""
    with rlprof.open(config(steps="none")) as prof:
        train(prof, range(5))
        prof.step(5)
        answer = ask(prof, at=3)
        begun = ask(prof, at=5)
        train(prof, range(6, 9))

    assert (answer.state, answer.error) == ("refused", "step 3 is over; the run is at step 5")
    assert (begun.state, begun.error) == ("refused", "step 5 has begun already")
    assert windows(prof) == []


def words(prof, shell):
    said = shell("ls", prof.run_dir)[1].partition("requests:\n")[2].splitlines()[0]
    return said.partition(", actor 0/1: ")[2]


# failures.md: partly-served
@pytest.mark.slow
@cases(
    "options, wanted, how",
    ({}, {"next": 2, "phases": ("other",)}, "served 1 of 2 (step 2); step 1 was skipped"),
    ({"raises_in": "start"}, {}, "served 0 of 1; step 1 failed"),
    ({"artifacts": 0}, {}, "served 0 of 1; step 1 left nothing"),
    ({"raises_in": "export:update"}, {}, "served 0 of 1; step 1 failed in part"),
)
def test_a_step_with_a_failed_or_skipped_window_is_not_served(config, shell, options, wanted, how):
    """A step that was skipped, failed or left nothing does not count as served."""
    with rlprof.open(config(steps="none", options=options)) as prof:
        ask(prof, **wanted)
        train(prof, [1])
        prof.step(2)
        through(prof.phase("other"))

    assert words(prof, shell) == how


# failures.md: partly-served
@pytest.mark.slow
def test_a_request_can_be_cancelled_until_its_first_step(config, shell):
    """A request can be cancelled until its first step begins; one that has begun goes on."""
    with rlprof.open(config(steps="none")) as prof:
        ask(prof, id="begun", next=30)
        ask(prof, id="late", at=7)
        waiting = words(prof, shell)
        train(prof, range(1))
        prof.scribe.flush()
        took = shell("capture", prof.run_dir, "--cancel")
        kept = shell("capture", prof.run_dir, "--cancel", "begun")
        train(prof, range(1, 9))
        cancel(prof.run_dir, ["unread"], "ann")
        control.write(prof.run_dir, control.Request(id="unread", role="actor"))
        wait_until(lambda: len(rlprof.read(prof.run_dir).answers) == 3)

    assert took[:2] == (0, "request late: cancelled; nothing was recorded for it\n")
    assert "  not cancelled: actor 0/1: served 1 of 30 (step 0) so far\n" in kept[1]
    assert waiting == "waits for its next step"
    assert words(prof, shell) == "served 9 of 30 (steps 0-8), then the session was closed"
    answers = {one.id: (one.state, one.steps) for one in rlprof.read(prof.run_dir).answers[1:]}
    assert answers == {"late": ("unserved", ()), "unread": ("refused", ())}


@pytest.mark.slow
def test_options_and_tools_of_a_request_hold_for_its_windows_only(config, calls):
    """Options and tools of a request hold for its windows only."""
    with rlprof.open(config(steps=[1], options={"level": 2})) as prof:
        ask(prof, options={"fake": {"level": 5}}, phases=("update",))
        train(prof, range(1, 3))
        ask(prof, tool=("other",), phases=("update",))
        train(prof, range(3, 4))

    captures = rlprof.read(prof.run_dir).captures
    assert [(c.window.id, c.tool, dict(c.applied)) for c in captures] == [
        ("1/rollout", "fake", {"level": 2}),
        ("1/update", "fake", {"level": 2}),
        ("2/update", "fake", {"level": 5}),
        ("3/update", "other", {"level": 1}),
    ]
    assert {c.state for c in captures} == {"whole"}


@cases(
    "said, wanted, error",
    ({}, {"tool": ("fake",), "options": {"fake": {"levle": 1}}},
     "fake.levle: unknown key; did you mean 'level'?"),
    ({}, {"mode": "continuous", "phases": ("rollout",)}, "only discrete mode records by phase"),
    ({"roles": {"actor": {"tool": []}}}, {}, "actor has no tool; name one: --tool torch"),
    # instead of waiting without end
    ({"steps": {"every": 1, "first": 5}}, {},
     "the config records every step, none is left to ask for"),
)  # fmt: skip
def test_a_request_that_cannot_work_is_refused_and_training_goes_on(config, said, wanted, error):
    """A request that cannot work is refused with its fault in the manifest; training goes on."""
    with rlprof.open(config(**{"steps": "none", **said})) as prof:
        answer = ask(prof, **wanted)
        train(prof, range(2))

    assert answer.state == "refused"
    assert error in answer.error
    assert windows(prof) == []


@pytest.mark.slow
def test_a_process_answers_only_requests_to_its_role_and_rank(config, monkeypatch, tmp_path):
    """A process answers only requests to its own role and rank."""
    monkeypatch.setenv("RLPROF_RUN", str(tmp_path / "run"))
    with rlprof.open(config(steps="none"), rank=1, world_size=4) as prof:
        control.write(prof.run_dir, control.Request(id="a", role="critic", ranks=None))
        control.write(prof.run_dir, control.Request(id="b", role="actor", ranks=(0, 3)))
        answer = ask(prof, ranks=(1, 2))
        train(prof, range(2))

    (only,) = rlprof.read(prof.run_dir).answers
    assert only.id == answer.id
    assert windows(prof) == ["0/rollout", "0/update"]


def test_ranks_that_have_not_opened_the_run_are_waited_for_and_named(config, shell):
    """`capture` waits for ranks that have not opened the run, and names those it does not ask."""
    with rlprof.open(config(steps="none"), rank=0, world_size=2) as prof:
        prof.scribe.flush()
        code, out, _ = shell("capture", prof.run_dir, "--rank", "all", "--no-wait")
        alone, every = rlprof.read(prof.run_dir), control.Request("a", "actor", ranks=None)
        other = prof.manifest.read_text().replace('"rank":0', '"rank":1')
        prof.manifest.with_name("actor-1.jsonl").write_text(other)
        run, late = joined(alone, [every], 60)
        said = shell("capture", prof.run_dir, "--rank", "all", "--no-wait")[1]

    assert (code, late, len(run.processes)) == (1, [], 2)
    assert "\n  actor 1/2: has not opened the run, so it is not asked\n" in out
    assert ["each begins with its own" in one for one in (out, said)] == [False, True]


def test_a_later_session_ignores_older_requests(config, monkeypatch):
    """A process that joins a run later ignores older requests."""
    monkeypatch.setenv("RLPROF_RUN_ID", "one")
    with rlprof.open(config(steps="none")) as first:
        control.write(first.run_dir, control.Request(id="old", role="critic"))
        rlprof.session._current.session = None  # as in another process of this run
        with rlprof.open(config(steps="none", roles={"critic": {}})) as second:
            train(second, range(2))

    assert rlprof.read(first.run_dir).answers == ()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{", '{"id": "x", "role": "actor", "pahse": 1}'])
def test_a_file_that_is_no_request_is_skipped(config, caplog, text):
    """A file that is no request is logged once and skipped; the next request is served."""
    with rlprof.open(config(steps="none")) as prof:
        (prof.run_dir / "requests").mkdir()
        (prof.run_dir / "requests/bad.json").write_text(text)
        ask(prof)
        train(prof, range(1))

    assert windows(prof) == ["0/rollout", "0/update"]
    assert caplog.text.count("request: bad.json") == 1


PROGRAM = """
with rlprof.open(config | {"steps": "none"}) as prof:
    print("go", flush=True)
    for step in prof.steps(range(100000)):
        with prof.phase("rollout"):
            time.sleep(0.02)
"""


@pytest.fixture(name="live")
def _live(tmp_path):
    """Run a training process without steps to record; yield the parent of its run folder."""
    runs = tmp_path / "runs"
    program = command(PROGRAM, runs, tmp_path / "scratch")
    process = subprocess.Popen(**program, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    wait_until(lambda: [file for file in runs.glob("*/manifest/*") if file.stat().st_size])
    yield runs
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.slow
def test_capture_reports_why_a_request_failed(live, shell):
    """`capture` prints why a window failed, or the faults of a request that is refused."""
    asked = (["--set", "raises_in=start"], ["--set", "levle=1"], ["--role", "critic"],
             ["--next", "0", "--rank", "x", "--set", "level"], ["--at", "9" * 30],
             ["--timeout", "nan"])  # fmt: skip

    codes, outs, errs = zip(*(shell("capture", live, *words) for words in asked), strict=True)

    (run,) = live.iterdir()
    assert codes == (1, 1, 1, 1, 1, 2)
    assert "start: RuntimeError: start went wrong" in outs[0]
    assert "actor 0/1: served 0 of 1; step" in outs[0]
    assert outs[0].endswith(f"see the outcome with: rlprof ls {run}\n")
    assert "rlprof export" not in outs[0]
    assert "refused: fake.levle: unknown key; did you mean 'level'?" in outs[1]  # known there
    assert "no live process of critic (live: actor 0/1)\n" in errs[2]
    assert errs[3].startswith("rlprof: capture: 3 faults\n  --rank: expected 'all'")
    assert "--next: expected at least 1, got 0" in errs[3]
    assert errs[4].startswith("rlprof: --at: expected at most 999999999999999999, got 9999")
    assert errs[4].endswith("9\nrlprof capture --help explains this command\n")
    assert "--timeout: expected seconds, more than 0 and up to 86400, got 'nan'" in errs[5]


def test_capture_checks_options_before_it_asks(config, shell):
    """`capture` refuses a wrong option without asking the run, and an ended run with its time."""
    wrong = {
        "levle=1": "--set fake.levle: unknown key; did you mean 'level'?",
        "fake.level=high": "--set fake.level: expected a whole number, got 'high'",
        "fkae.level=1": "; did you mean 'fake'?",
    }
    with rlprof.open(config(steps="none", slow_step={})) as prof:
        prof.scribe.flush()
        for word, why in wrong.items():
            code, _, err = shell("capture", prof.run_dir, "--no-wait", "--set", word)
            assert code == 1
            assert why in err

    assert not list(prof.run_dir.glob("requests/*"))
    ended = [shell("capture", path) for path in (prof.run_dir, prof.run_dir.parent)]
    assert [code for code, *_ in ended] == [1, 1]
    now = r"ended at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.search(f": the run {now}, so no process can be asked", ended[0][2])
    latest = f"the latest, {prof.run.run_id}, {now}, and no newer one has opened"
    assert re.search(f": holds no live run: {latest}", ended[1][2])
    assert "captured; no step was slow enough, and nothing is" in shell("ls", prof.run_dir)[1]


def watched(config, seconds, **rule):
    """Let steps take *seconds*; return the messages about those found slow."""
    checked = load_config(config(slow_step=rule))
    slow = SlowSteps(checked.slow_step)
    for step, took_s in enumerate(seconds):
        slow.ended(step, took_s)
    return [request.by for request in slow.requests(checked)]


@pytest.mark.slow
def test_a_slow_step_requests_the_next_one(config, shell):
    """A slow step requests the next one, and the answer names the slow step."""
    given = config(steps="none", slow_step={"times": 1e5}, roles={"actor": {"ranks": "all"}})
    with rlprof.open(given) as prof:
        for step in prof.steps(range(10)):
            if step == 7:  # the steps before took next to no time
                prof._step_ns -= 10**13
            prof.scribe._wake.set()
            prof.scribe.flush()
            prof.context.listeners.settle()
            through(prof.phase("rollout"))

    run = rlprof.read(prof.run_dir)
    (answer,) = run.answers
    assert answer.state == "served"
    assert answer.asked["by"].startswith("rlprof: step 7 took 1")
    assert {answer.id} == {capture.request for capture in run.captures}
    assert answer.steps[0] in (8, 9)
    served = f"{answer.id}, actor 0/1: served step {answer.steps[0]} (step 7 took 1"
    assert served in shell("ls", prof.run_dir)[1]


def test_a_step_is_slow_by_the_median(config):
    """A step is slow by the median of those before it, which one slow step does not move."""
    steady = [1.0] * 6

    assert watched(config, [*steady, 1.9, 1.9]) == []
    assert watched(config, [*steady, 2.1, 1.0]) == [
        "rlprof: step 6 took 2.1 s, 2.1 times the median of 1 s"
    ]
    assert len(watched(config, [*steady, *[9.0] * 60], most=1)) == 1
    assert watched(config, [60.0, 1.0, 1.0, 30.0, 1.0]) == []  # steps that warm up do not count
    assert watched(config, [*[0.001] * 6, 0.09]) == []  # 90 times the median, but short


@pytest.mark.slow
def test_a_recorded_step_is_never_slow(config):
    """A step that was recorded is never reported as slow, because recording takes time."""
    with rlprof.open(config(steps=[7], slow_step={})) as prof:
        for step in prof.steps(range(10)):
            with prof.phase("rollout"):
                if step == 7:
                    prof._step_ns -= 10**12
            prof.scribe.flush()

    assert rlprof.read(prof.run_dir).answers == ()
