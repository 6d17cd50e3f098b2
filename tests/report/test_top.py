"""`rlprof top`: its screen for a live run, and the files it reads."""

import json
import signal

import pytest

import rlprof
from rlprof_cli import main
from rlprof_report._top.live import Live
from rlprof_report._top.screen import screen
from tests.docs.pages import PAGES, blocks, section
from tests.docs.shell import agree, commands
from tests.report.folder import Driven
from tests.waiting import Terminal

ENGINE = {"role": "rollout", "rank": 0, "world_size": 1, "replica": 2, "coordinates": {}}
WINDOW = {"start_step": 3, "end_step": 4, "phase": "update_actor", "occurrence": 0}


@pytest.fixture(name="run")
def _run(tmp_path):
    """Start a run of a driver and three actors that has ended two steps."""
    run = Driven(tmp_path / "run", is_alive=True)
    run.actors = [run.process("actor", rank, world=2) for rank in range(3)]
    for step in (1, 2):
        start = run.now
        run.step(step, {"rollout": 2, "update_actor": 1}, tokens=10)
        for actor, seconds in zip(run.actors, (0.5, 0.5, 0.9), strict=True):
            run.span(actor, "phase", "update_actor", (start, start + seconds), step)
    return run


def shown(run, width=100, height=24):
    live = Live(rlprof.read(run.written()))
    live.look()
    return screen(live, width=width, height=height).splitlines()


def end(run):
    for stem in run.manifest:
        run.event(stem, "ended", run.now)
    run.written()


def test_phases_within_phases_are_counted_once(run):
    """A phase inside another is not counted, even with a span between them."""
    times, first = (run.now, run.now + 3), len(run.spans[run.driver]) + 1
    for name, kind, parent in (  # in the order of their ends
        ("inner", "phase", first + 1), ("outer", "span", first + 2), ("outer", "phase", None)
    ):  # fmt: skip
        run.span(run.driver, kind, name, times, 3, parent=parent)

    assert "step 3: outer 3.0 s, then 0 ms so far" in shown(run)


def test_time_in_no_phase_has_a_column(run):
    """A step that is in no phase for a tenth of its time shows how long."""
    for kind, name, seconds in ("phase", "rollout", 1), ("step", "3", 3):
        run.span(run.driver, kind, name, (run.now, run.now + seconds), 3)

    *_, head, _, _, last = shown(run)

    assert head.split()[2:5] == ["rollout", "update_actor", "no"]
    assert last.split() == ["3", "3.0", "s", "1.0", "s", "-", "2.0", "s"]


def test_a_step_without_ended_parts_shows_only_its_time(run):
    """A step and trajectories without ended parts show only their time and number."""
    run.span(run.driver, "span", "trajectory", (run.now, run.now), 3, trajectory="3-0")
    run.counters(run.driver, run.now, rss_bytes=45e6)
    lines = shown(run)
    run.span(run.driver, "span", "request", (run.now, run.now), 3, trajectory="3-1")

    assert lines[1:4] == ["step 3: 0 ms so far", "trajectories: 1 ended", "memory: 45.0 MB"]
    assert "trajectories: at least 1 in flight, 1 ended" in shown(run)


@pytest.mark.parametrize("end", ["closed", "failed"])
def test_an_open_window_is_shown_until_it_closes(run, end):
    """An open window is shown with tool, age and target; the step of its end is touched."""
    run.event(run.actors[0], "opened", run.now, window=WINDOW, tool="torch")
    opened = shown(run)
    run.step(3, {"rollout": 2})
    run.event(run.actors[0], end, run.now + 1, window=WINDOW, tool="torch", hook="start")
    run.step(4, {"rollout": 2})
    closed = shown(run)

    assert "recording 3/update_actor with torch for 0 ms: actor 0/2" in opened
    assert not any("recording 3" in line for line in closed)
    assert [line.split("-  ")[-1] for line in closed[-2:]] == ["recorded", "touched by recording"]


def test_the_last_step_with_a_repeated_number_counts(run, capsys):
    """Of steps with one number, the last counts, without the times of the others."""
    run.event(run.actors[0], "opened", 1.0, window=WINDOW | {"start_step": 1}, tool="torch")
    start = run.now
    for actor, seconds in zip(run.actors, (4, 4, 4.5), strict=True):
        run.span(actor, "phase", "update_actor", (start, start + seconds), 1)
    run.step(1, {"update_actor": 5})
    lines = shown(run)
    run.phase(2, "update_actor", 7)

    assert main(["why", str(run.written()), "--step", "1"]) == main(["why", str(run.path)]) == 0
    assert [line.split()[:1] for line in lines[-2:]] == [["2"], ["1"]]
    assert lines[-1].endswith("5.0 s  actor 2 +500 ms in update_actor")
    assert "step 2: update_actor 7.0 s, then 0 ms so far" in shown(run)
    out = capsys.readouterr().out
    assert out.index("Step 1 comes 2 times") < out.index("Step numbers repeat (1 of 3)")


def test_ranks_that_end_together_have_no_slow_one(run):
    """Of ranks that end a phase together, the one that takes longest is not named as slow."""
    start = run.now
    run.step(3, {"backward": 8})
    for actor, begun in zip(run.actors, (0, 6, 6), strict=True):
        run.span(actor, "phase", "backward", (start + begun, start + 8), 3)

    assert shown(run)[-1].endswith("8.0 s")


def test_phases_that_a_driver_wrote_for_its_members_count(run):
    """Phases that a driver wrote for its members count for the slowest rank."""
    start = run.now
    run.step(3, {"update_actor": 1})
    told = [
        {"of": actor, "kind": "phase", "name": "update_actor", "step": 3, "id": rank,
         "w0": round(start * 1e9), "w1": round((start + seconds) * 1e9)}
        for rank, (actor, seconds) in enumerate(zip(run.actors, (1, 1, 7), strict=True))
    ]  # fmt: skip
    file = run.written() / f"spans/+ray-{run.driver}.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in told))

    assert shown(run)[-1].endswith("actor 2 +6.0 s in update_actor")


def test_each_look_reads_only_new_lines(run):
    """Each look at a run reads only lines that are new."""
    live = Live(rlprof.read(run.written()))
    live.look()
    before = live.finished()
    read = {file: file.stat().st_size for file in (run.path / "spans").iterdir()}
    run.step(3, {"rollout": 5})
    run.written()
    for file, size in read.items():  # lines before the offsets are never read
        file.write_bytes(b" " * size + file.read_bytes()[size:])
    live.look()

    assert [number for number, _ in before] == [1, 2]
    assert [(number, step.phases) for number, step in live.finished()][2] == (3, {"rollout": 5.0})


def test_no_line_is_wider_than_the_terminal(run):
    """Long names are cut, odd characters escaped, and the screen has the terminal's height."""
    run.step(3, {"\x1b[2J" + "x" * 200: 1, "b": 1})

    lines = shown(run, width=60, height=6)

    assert max(map(len, lines)) <= 60
    assert len(lines) == 6
    assert "\x1b" not in "".join(lines)


def test_top_in_a_pipe_prints_one_screen(run, capsys, monkeypatch, tmp_path):
    """In a pipe, `top` prints one screen; a run has the state of its driver."""
    end(run)
    run.process("critic", 0)
    run.written()
    monkeypatch.setattr("rlprof_report._top.live.is_alive", lambda _: False)

    assert main(["top", str(tmp_path)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "run run: ended, 5 processes, 1 died"
    assert lines[-1].startswith("Too few steps to compare: 1 clean step")


def test_the_example_in_the_docs_is_what_top_prints(run, capsys, monkeypatch):
    """`rlprof top` prints the example of docs/commands.md."""
    run.phase(3, "rollout", 2)
    run.now += 1e-3
    run.span(run.driver, "span", "request", (run.now, run.now), 3, trajectory="3-0")
    run.event(run.actors[0], "opened", run.now, window=WINDOW, tool="torch")
    run.counters(run.driver, run.now, rss_bytes=2.5e9, device0_busy=0.9)
    run.counters(run.actors[0], run.now, rss_bytes=0.8e9)
    asked = {"requests_running": 12, "requests_waiting": 3, "kv_cache_use": 0.71}
    run.counters(run.driver, run.now, ENGINE, **asked)
    recorded = rlprof.read(run.written())
    (block,) = blocks(section(PAGES["docs/commands.md"], "`rlprof top`"), "console")
    ((command, shown_),) = commands(block.text)
    monkeypatch.setattr("rlprof_report.commands.top.read", lambda _: recorded)

    assert main(command.split()[1:]) == 0

    printed = capsys.readouterr().out.replace("run run:", "run 20261121-140259-c3f1:")
    assert agree(shown_, printed), printed


@pytest.mark.parametrize("command", ["top", "why"])
def test_another_live_run_is_named_if_none_was_given(run, capsys, tmp_path, command):
    """If a folder was given, `top` and `why` note another live run and its command."""
    latest = Driven(tmp_path / "b", is_alive=True).written()
    for path in (tmp_path, latest, run.written()):
        assert main([command, str(path)]) == 0

    said = f"rlprof: {latest} is the latest run; another run is live: rlprof {command} {run.path}\n"
    assert capsys.readouterr().err == said


@pytest.mark.slow
def test_top_in_a_terminal_follows_the_run_to_its_end(run):
    """In a terminal, `top` redraws in place and ends with the verdict of `rlprof why`."""
    terminal = Terminal("top", run.written())
    terminal.until("after step 2")
    run.step(3, {"rollout": 2, "update_actor": 1})
    run.written()
    terminal.until("after step 3")
    end(run)

    code = terminal.rest()

    assert code == 0
    assert "\x1b[J" in terminal.text
    assert "\nA step takes 3.00 s" in terminal.text.replace("\r", "")
    assert " ".join(terminal.text.split()).endswith("the order of causes may change.")


@pytest.mark.slow
def test_ctrl_c_ends_top_quietly(run):
    """Ctrl-C ends `top` with exit code 0 and no message."""
    terminal = Terminal("top", run.written())
    terminal.until("after step 2")
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.rest() == 0
    assert not any(word in terminal.text for word in ("Traceback", "interrupted"))
