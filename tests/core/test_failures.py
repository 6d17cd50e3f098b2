"""What goes wrong in plugins is recorded and told once; training never sees it."""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import nullcontext

import pytest

import rlprof
from tests.fakes import tools


def train(prof, steps=(1, 2)):
    """Run steps with one phase each; return what the working code got done."""
    done = []
    for step in prof.steps(steps):
        with prof.phase("rollout"):
            done.append(step)
    return done


def captures(prof):
    return {(c.window.id, c.tool): c for c in rlprof.read(prof.run_dir).captures}


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["configure", "start", "stop", "push", "export"])
def test_a_hook_that_raises_is_recorded_and_training_lives(config, hook):
    """Each hook may raise: every step is done, the manifest names the hook and the error."""
    with rlprof.open(config(options={"raises_in": hook})) as prof:
        done = train(prof)

    assert done == [1, 2]
    for capture in captures(prof).values():
        assert capture.state in ("failed", "partial")
        assert any("went wrong" in note or "export says no" in note for note in capture.notes)


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["configure", "start", "stop", "push"])
def test_a_failure_is_logged_once(config, caplog, hook):
    """Ten windows that fail alike are one warning."""
    options = {"raises_in": hook}

    with caplog.at_level(logging.WARNING, "rlprof"), rlprof.open(config(options=options)) as prof:
        train(prof, range(1, 11))

    told = [record for record in caplog.records if f"fake.{hook}" in record.getMessage()]
    assert len(told) == 1


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["start", "stop", "push"])
def test_strict_passes_the_failure_on(config, hook):
    """With strict: true the user asked to be stopped, and the manifest still has the error."""
    prof = rlprof.open(config(options={"raises_in": hook}, strict=True))

    with pytest.raises(RuntimeError, match=f"{hook} went wrong"):
        train(prof)

    prof.close()
    assert any("went wrong" in note for c in captures(prof).values() for note in c.notes)


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_what_fails_as_the_last_step_ends_keeps_nothing_open(config, monkeypatch, strict):
    """A fault of our own there is told, or raised with strict: true; close does all the rest."""
    prof = rlprof.open(config(mode="continuous", strict=strict))
    prof.step(1)
    monkeypatch.setattr(prof, "_say_shortfall", lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError) if strict else nullcontext():
        prof.close()

    run = rlprof.read(prof.run_dir)
    assert [c.state for c in run.captures] == ["whole"]
    assert [p.state for p in run.processes] == ["ended"]


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_one_tool_failing_stops_no_other(config, calls, strict):
    """The others start, stop and export as if it were not there."""
    raising = {"fake": {"raises_in": "stop"}}
    prof = rlprof.open(config(tool=["other", "fake", "anywhere"], tools=raising, strict=strict))

    if strict:
        with pytest.raises(RuntimeError):
            train(prof, [1])
    else:
        train(prof, [1])
    prof.close()

    found = captures(prof)
    assert found["1/rollout", "other"].state == "whole"
    assert found["1/rollout", "anywhere"].state == "whole"
    assert {"fake", "other", "anywhere"} == {call[0] for call in calls if call[1] == "stop"}


# failures.md: hook-raised
def test_stop_is_called_after_a_failed_start(config, calls):
    """A start that raised may have begun something; stop is asked to end it."""
    with rlprof.open(config(options={"raises_in": "start"})) as prof:
        train(prof, [1])

    assert [(call[1], call[2]) for call in calls if call[1] in ("start", "stop")] == [
        ("start", "1/rollout"),
        ("stop", "1/rollout"),
    ]


@pytest.mark.slow
def test_an_exception_of_the_user_passes_and_the_window_is_whole(config):
    """The user's exception is the user's; what was recorded until then is exported."""
    prof = rlprof.open(config())

    with pytest.raises(ZeroDivisionError), prof:
        for _ in prof.steps([1]):
            with prof.phase("rollout"):
                _ = 1 / 0

    assert [(k[0], c.state) for k, c in captures(prof).items()] == [("1/rollout", "whole")]
    phase = next(s for s in rlprof.read(prof.run_dir).spans() if s.kind == "phase")
    assert phase.attributes == {"error": "ZeroDivisionError"}


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["start", "stop"])
def test_a_tool_of_the_process_that_hangs_is_given_up(config, calls, hook):
    """The step goes on after the timeout, and the tool is not asked again in this run."""
    limits = {f"{hook}_timeout_s": 0.2}
    options = {"anywhere": {"hangs_in": hook}}
    prof = rlprof.open(config(tool="anywhere", tools=options, limits=limits))

    done = train(prof, [1, 2, 3])

    tools.gate.set()  # only now does the hook return
    prof.close()
    assert done == [1, 2, 3]
    assert [call[2] for call in calls if call[1] == "start"] == ["1/rollout"]
    notes = captures(prof)["1/rollout", "anywhere"].notes
    assert f"{hook} was not answered within {hook}_timeout_s 0.2" in " ".join(notes)
    later = captures(prof)["3/rollout", "anywhere"]
    assert later.state == "failed"
    assert "not started" in later.notes[0]


# failures.md: not-answered
def test_a_start_answered_too_late_is_stopped(config, calls):
    """A recording that begins after it was given up is ended by the thread that began it."""
    options = {"anywhere": {"hangs_in": "start"}}
    limits = {"start_timeout_s": 0.1}
    prof = rlprof.open(config(tool="anywhere", tools=options, limits=limits))
    train(prof, [1])

    tools.gate.set()
    deadline = time.monotonic() + 30
    while not any(call[1] == "stop" for call in calls) and time.monotonic() < deadline:
        time.sleep(0.02)

    prof.close()
    assert [call[1] for call in calls if call[1] != "configure"] == ["start", "stop"]


# failures.md: not-answered
@pytest.mark.slow
def test_a_tool_of_a_thread_that_was_slow_is_not_used_again(config, calls):
    """It cannot be cut, but its time is measured, and once is enough."""
    limits = {"stop_timeout_s": 0.05}
    prof = rlprof.open(config(limits=limits))
    slow = tools.FakeOptions(hangs_in="stop")
    prof._tracks[0]._instruments._recorders["fake"].now.plugin.options = slow
    threading.Timer(0.2, tools.gate.set).start()

    train(prof, [1, 2])

    prof.close()
    assert [call[2] for call in calls if call[1] == "start"] == ["1/rollout"]
    assert captures(prof)["1/rollout", "fake"].state == "whole"
    assert "more than stop_timeout_s 0.05" in captures(prof)["2/rollout", "fake"].notes[0]


def test_a_system_exit_of_a_plugin_does_not_end_training(config):
    """On core's own thread a SystemExit can only be the plugin's."""
    options = {"anywhere": {"raises_in": "start:exit"}}

    with rlprof.open(config(tool="anywhere", tools=options)) as prof:
        done = train(prof)

    assert done == [1, 2]
    assert "raised SystemExit: 9" in captures(prof)["1/rollout", "anywhere"].notes[0]


@pytest.mark.slow
def test_an_export_that_hangs_is_ended(config):
    """The helper process is killed at its deadline; the raw data are kept and named."""
    limits = {"export_timeout_s": 1}

    with rlprof.open(config(options={"hangs_in": "export"}, limits=limits)) as prof:
        train(prof, [1])

    capture = captures(prof)["1/rollout", "fake"]
    assert capture.state == "failed"
    assert capture.notes[0].startswith("export: took longer than export_timeout_s 1; raw data are")
    assert capture.scratch in capture.notes[0]


@pytest.mark.slow
def test_what_cannot_be_had_is_said(config):
    """What a tool was asked and cannot do is in the manifest beside what it applied."""
    with rlprof.open(config(options={"unsupported": ["cuda"], "level": 3})) as prof:
        train(prof, [1])

    capture = captures(prof)["1/rollout", "fake"]
    assert capture.asked == {"unsupported": ["cuda"], "level": 3}
    assert capture.applied == {"level": 3}
    assert capture.unsupported == {"cuda": "not here"}


@pytest.mark.slow
def test_a_window_without_artifacts_is_empty(config):
    """Nothing written is said to be nothing."""
    with rlprof.open(config(options={"artifacts": 0})) as prof:
        train(prof, [1])

    assert captures(prof)["1/rollout", "fake"].state == "empty"


def test_closing_twice_and_using_a_closed_session_are_harmless(config):
    """After close every method is still there and does nothing."""
    prof = rlprof.open(config())

    prof.close()
    prof.close()

    assert train(prof, [1]) == [1]
    assert rlprof.read(prof.run_dir).captures == ()


@pytest.mark.slow
def test_the_scratch_folder_is_left_clean(config, tmp_path):
    """What was exported leaves nothing behind on the local disk."""
    with rlprof.open(config()) as prof:
        train(prof)

    assert [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()] == []


def test_raw_data_that_are_kept_keep_their_empty_folders(config, tmp_path, monkeypatch):
    """What could not be exported stays as its tool has left it: a folder without files, too."""
    started = tools.Fake.start

    @rlprof.hookimpl
    def start(self, window, folder):
        (folder / "PROF_1/device_0").mkdir(parents=True)
        return started(self, window, folder)

    monkeypatch.setattr(tools.Fake, "start", start)

    with rlprof.open(config(options={"raises_in": "export"})) as prof:
        train(prof, [1])

    left = {path.name for path in tmp_path.rglob("raw/**/*")}
    assert left == {"raw.txt", "PROF_1", "device_0"}


def test_an_artifact_outside_its_folder_is_refused(config, monkeypatch, calls):
    """A tool names files below its own folder; anything else is an error of the export."""
    from pathlib import Path

    from rlprof.session import export_process

    class Escaping(tools.Fake):
        @rlprof.hookimpl
        def export(self, capture, folder: Path, out: Path):
            (out.parent / "x.txt").write_text("x")
            return [rlprof.Artifact("../x.txt", kind="files", format="text")]

    monkeypatch.setattr(tools, "Escaping", Escaping, raising=False)
    Escaping.__module__, Escaping.__qualname__ = tools.__name__, "Escaping"
    monkeypatch.setattr(
        "rlprof.session._exports._spawn",
        lambda jobs, _: _Done([export_process.export(j.folder, j.out, j.root) for j in jobs]),
    )
    rlprof.register("tool", "escaping", Escaping)

    with rlprof.open(config(tool="escaping")) as prof:
        train(prof, [1])

    (note,) = captures(prof)["1/rollout", "escaping"].notes
    assert "artifact '../x.txt' lies outside its folder" in note


class _Done:
    """Stands for a helper process that has ended."""

    returncode = 0

    def __init__(self, _):
        pass

    def poll(self):
        return 0


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["fake", "anywhere"])
@pytest.mark.parametrize("hook", ["configure", "start", "stop", "push"])
def test_a_plugin_that_calls_exit_does_not_end_training(config, hook, tool):
    """SystemExit from a hook is the plugin's, on whatever thread it is called."""
    options = {tool: {"raises_in": f"{hook}:exit"}}

    with rlprof.open(config(tool=tool, tools=options)) as prof:
        done = train(prof)

    assert done == [1, 2]
    notes = " ".join(note for capture in captures(prof).values() for note in capture.notes)
    assert "SystemExit: 9" in notes


# failures.md: interrupted
def test_what_the_users_signal_handler_raises_passes_through_a_hook(config, monkeypatch):
    """A handler that calls sys.exit while a hook runs ends the process as the user wants."""
    import os
    import signal
    import sys

    def handler(number, frame):
        sys.exit(42)

    def start(self, window):
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(1)

    monkeypatch.setattr(tools.Bare, "start", rlprof.hookimpl(start))
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(SystemExit) as raised, rlprof.open(config(tool="bare")) as prof:
            train(prof)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert raised.value.code == 42


class Impatient:
    """A signal handler that is an object, and raises what an `except Exception` would catch."""

    def __call__(self, number, frame):
        raise TimeoutError("too long")


@pytest.fixture(name="alarm")
def _alarm():
    """Return a function that has TimeoutError raised in the main thread, so many seconds later."""
    before = signal.signal(signal.SIGALRM, Impatient())
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


# failures.md: interrupted
@pytest.mark.slow
@pytest.mark.parametrize("tool", ["fake", "anywhere"])
def test_a_timeout_of_the_users_own_passes_through_a_start(config, calls, alarm, tool):
    """Bounding a reward check with SIGALRM works as without rlprof; the next window records."""
    hangs = {tool: {"hangs_in": "start"}}
    with rlprof.open(config(tool=tool, tools=hangs, steps=[1, 2])) as prof:
        prof.step(1)
        alarm(0.2)
        with pytest.raises(TimeoutError, match="too long"), prof.phase("rollout"):
            pass
        tools.gate.set()
        train(prof, [2])

    found = {c.window.id: c for c in rlprof.read(prof.run_dir).captures}
    assert found["1/rollout"].state == "failed"
    assert "start: interrupted by TimeoutError: too long" in found["1/rollout"].notes
    assert found["2/rollout"].state == "whole"


# failures.md: interrupted
@pytest.mark.slow
def test_a_close_that_a_signal_cuts_short_can_be_called_again(config, calls, alarm):
    """What the handler raises passes; the second close waits for the exports that are left."""
    prof = rlprof.open(config())
    train(prof)
    alarm(0.05)  # an interpreter takes longer to start

    with pytest.raises(TimeoutError, match="too long"):
        prof.close()
    prof.close()

    run = rlprof.read(prof.run_dir)
    assert [c.state for c in run.captures] == ["whole", "whole"]
    assert [p.state for p in run.processes] == ["ended"]


# failures.md: all-whole
def test_a_log_handler_that_raises_reaches_nobody(config):
    """Training would not have called it; what it was to be told stands in the manifest."""

    class Broken(logging.Handler):
        def emit(self, record):
            raise ValueError("no room for logs")

    handler = Broken()
    logging.getLogger("rlprof").addHandler(handler)
    try:
        with rlprof.open(config(options={"raises_in": "start"})) as prof:
            train(prof)
    finally:
        logging.getLogger("rlprof").removeHandler(handler)

    assert [c.state for c in rlprof.read(prof.run_dir).captures] == ["failed", "failed"]


# failures.md: second-session
def test_of_threads_that_open_at_once_one_wins(config):
    """A process has one session, however close they come."""
    at_once, opened, refused = threading.Barrier(4), [], []

    def open_one():
        at_once.wait()
        try:
            opened.append(rlprof.open(config()))
        except rlprof.RlprofError as exc:
            refused.append(str(exc))

    threads = [threading.Thread(target=open_one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened[0].close()

    assert len(opened) == 1
    assert len(refused) == 3
    assert "a session is open in this process" in refused[0]


@pytest.mark.slow
def test_a_failed_export_is_logged(config, caplog):
    """It happens in another process, and is told in this one."""
    with rlprof.open(config(options={"raises_in": "export"})) as prof:
        train(prof)

    told = [r for r in caplog.records if "fake.export: CaptureError: export says no" in r.message]
    assert len(told) == 1


# failures.md: bad-step
@pytest.mark.slow
def test_a_step_that_is_refused_ends_the_one_before(config):
    """What follows a step number that is none belongs to no step, and is not recorded as one."""
    with rlprof.open(config()) as prof:
        for step in (1, 2.0):
            prof.step(step)
            with prof.phase("rollout"):
                pass

    assert list(captures(prof)) == [("1/rollout", "fake")]
    phases = [s.step for s in rlprof.read(prof.run_dir).spans() if s.kind == "phase"]
    assert phases == [1, None]


# failures.md: disk-full
def test_spans_a_full_disk_refused_are_counted(config, caplog, monkeypatch):
    """At close what could not be written is said, in the log and in the manifest."""
    from rlprof.rundir import Journal

    write = Journal.write

    def full(self, lines):
        if self._path.parent.name == "spans":
            self._waiting += b"".join(lines)
            raise OSError(28, "No space left on device")
        write(self, lines)

    monkeypatch.setattr(Journal, "write", full)

    with rlprof.open(config(steps="none")) as prof:
        for _ in range(5):
            with prof.span("work"):
                pass

    assert "5 could not be written and are lost" in caplog.text
    assert any("5 spans could not be written" in p for p in rlprof.read(prof.run_dir).problems)


@pytest.mark.slow
def test_ls_keeps_hostile_names_on_their_lines(config, capsys):
    """Line breaks, escape sequences and endless names do not break the table."""
    from rlprof_cli import main

    with rlprof.open(config()) as prof:
        prof.step(1)
        with prof.phase("a\nb\x1b[31m" + "x" * 500):
            pass

    assert main(["ls", str(prof.run_dir)]) == 0
    out = capsys.readouterr().out
    (row,) = [line for line in out.splitlines() if line.startswith("1/a")]
    assert row.startswith("1/a\\nb\\x1b[31mxxx")
    assert len(row) < 250


@pytest.mark.slow
def test_a_start_that_was_slow_is_stopped_all_the_same(config, calls):
    """A tool of a thread whose start took too long has started: it records, stops and exports."""
    prof = rlprof.open(config(limits={"start_timeout_s": 0.05}))
    slow = tools.FakeOptions(hangs_in="start")
    prof._tracks[0]._instruments._recorders["fake"].now.plugin.options = slow
    threading.Timer(0.2, tools.gate.set).start()

    train(prof, [1, 2])

    prof.close()
    assert [call[1] for call in calls if call[1] in ("start", "stop")] == ["start", "stop"]
    assert captures(prof)["1/rollout", "fake"].state == "whole"
    assert "more than start_timeout_s 0.05" in captures(prof)["2/rollout", "fake"].notes[0]


@pytest.mark.slow
def test_strict_does_not_end_the_helper_thread(config, monkeypatch):
    """A disk that is full for a moment is nobody's error to raise; what waited is written later."""
    from rlprof.rundir import Journal

    write, refused = Journal.write, []

    def full(self, lines):
        if len(refused) < 3:
            self._waiting += b"".join(lines)
            refused.append(1)
            raise OSError(28, "No space left on device")
        write(self, lines)

    monkeypatch.setattr(Journal, "write", full)

    with rlprof.open(config(strict=True)) as prof:
        for _ in range(3000):
            if len(refused) == 3:
                break
            prof.scribe._wake.set()
            threading.Event().wait(0.02)
        train(prof, [1])

    assert len(refused) == 3
    assert captures(prof)["1/rollout", "fake"].state == "whole"


# failures.md: no-folder
def test_a_scratch_folder_others_may_write_to_is_refused(config, tmp_path, caplog):
    """What lies there says which code an export runs; rlprof stays off, and no run is made."""
    import os

    home = tmp_path / "scratch" / f"rlprof-{os.getuid()}"
    home.mkdir(parents=True)
    home.chmod(0o777)

    with rlprof.open(config()) as prof:
        done = train(prof)

    assert done == [1, 2]
    assert isinstance(prof, rlprof.Off)
    assert f"{home}: others may write there; remove it or name another scratch_dir" in caplog.text
    assert not (tmp_path / "runs").exists()
