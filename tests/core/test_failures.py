"""What goes wrong in plugins is recorded and told once; training never sees it."""

import logging
import os
import signal
import threading

import attrs
import pytest

import rlprof
from tests.cases import refused
from tests.core.steps import record, train
from tests.fakes import tools
from tests.waiting import wait_until


# failures.md: not-answered
def test_a_start_answered_too_late_is_stopped(config, calls):
    """A recording that begins after it was given up is ended by the thread that began it."""
    options = {"anywhere": {"hangs_in": "start"}}
    limits = {"start_timeout_s": 0.1}
    prof = rlprof.open(config(tool="anywhere", tools=options, limits=limits))
    train(prof, [1])

    tools.gate.set()
    wait_until(lambda: any(call[1] == "stop" for call in calls))

    prof.close()
    assert [call[1] for call in calls if call[1] != "configure"] == ["start", "stop"]


def test_raw_data_that_are_kept_keep_their_empty_folders(config, tmp_path, monkeypatch):
    """What could not be exported stays as its tool has left it: a folder without files, too."""
    started = tools.Fake.start

    @rlprof.hookimpl
    def start(self, window, folder):
        (folder / "PROF_1/device_0").mkdir(parents=True)
        return started(self, window, folder)

    monkeypatch.setattr(tools.Fake, "start", start)

    record(config(options={"raises_in": "export"}))

    left = {path.name for path in tmp_path.rglob("raw/**/*")}
    assert left == {"raw.txt", "PROF_1", "device_0"}


def test_what_ends_training_is_named(config):
    """The run has ended in order, and not by itself."""
    with pytest.raises(KeyboardInterrupt), rlprof.open(config(steps="none")) as prof:
        raise KeyboardInterrupt

    (problem,) = rlprof.read(prof.run_dir).problems
    assert problem == "actor 0/1: training ended with KeyboardInterrupt"


@attrs.frozen
class Impatient:
    """A signal handler that is an object, and raises what an `except Exception` would catch."""

    error: BaseException

    def __call__(self, number, frame):
        raise self.error


@pytest.fixture(name="alarm")
def _alarm():
    """Return a function that has an error raised in the main thread, so many seconds later."""
    before = signal.getsignal(signal.SIGALRM)

    def alarm(seconds, error):
        signal.signal(signal.SIGALRM, Impatient(error))
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


# failures.md: interrupted
@pytest.mark.slow
@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("tool", ["fake", "anywhere"])
@pytest.mark.parametrize("error", [TimeoutError("too long"), SystemExit(42)], ids=repr)
def test_what_the_users_signal_handler_raises_passes_through_a_start(
    config, alarm, tool, error, monkeypatch
):
    """A reward check bounded by SIGALRM, or sys.exit, works as without; the next window records."""
    hangs, own = {tool: {"hangs_in": "start"}}, tools.gate.wait

    def wait(bound_s):
        if not tools.gate.is_set():
            signal.setitimer(signal.ITIMER_REAL, 0.2)
        return own(bound_s)

    monkeypatch.setattr(tools.gate, "wait", wait)
    with rlprof.open(config(tool=tool, tools=hangs, steps=[1, 2])) as prof:
        prof.step(1)
        alarm(0, error)  # the timer begins as `start` hangs
        with pytest.raises(type(error)) as raised, prof.phase("rollout"):
            pass
        tools.gate.set()
        train(prof, [2])

    found = {c.window.id: c for c in rlprof.read(prof.run_dir).captures}
    assert raised.value is error
    assert found["1/rollout"].state == "failed"
    assert f"start: interrupted by {type(error).__name__}: {error}" in found["1/rollout"].notes
    assert found["2/rollout"].state == "whole"


# failures.md: interrupted
@pytest.mark.slow
def test_a_close_that_a_signal_cuts_short_can_be_called_again(config, calls, alarm):
    """What the handler raises passes; the second close waits for the exports that are left."""
    prof = rlprof.open(config())
    train(prof, [1, 2])

    def close():
        alarm(0.05, TimeoutError("too long"))  # an interpreter takes longer to start
        prof.close()

    assert "too long" in refused(TimeoutError, close)
    prof.close()

    run = rlprof.read(prof.run_dir)
    assert [c.state for c in run.captures] == ["whole", "whole"]
    assert [p.state for p in run.processes] == ["ended"]


# failures.md: all-whole
def test_a_log_handler_that_raises_reaches_nobody(config, monkeypatch):
    """Training would not have called it; what it was to be told stands in the manifest."""

    class Broken(logging.Handler):
        def emit(self, record):
            raise ValueError("no room for logs")

    monkeypatch.setattr(logging.getLogger("rlprof"), "handlers", [Broken()])

    prof = record(config(options={"raises_in": "start"}), [1, 2])

    assert [c.state for c in rlprof.read(prof.run_dir).captures] == ["failed", "failed"]


# failures.md: not-answered
@pytest.mark.slow
@pytest.mark.parametrize("hook", ["start", "stop"])
def test_a_tool_of_a_thread_that_was_slow_is_not_used_again(config, calls, hook):
    """It cannot be cut: it records, stops and exports, and once is enough."""
    prof = rlprof.open(config(limits={f"{hook}_timeout_s": 0.05}))
    slow = tools.FakeOptions(hangs_in=hook)
    hooks = prof.tracks[0].instruments._recorders["fake"].now.hooks
    hooks._found[hook].function.__self__.options = slow
    threading.Timer(0.2, tools.gate.set).start()

    train(prof, [1, 2])

    prof.close()
    assert [call[1] for call in calls if call[1] in ("start", "stop")] == ["start", "stop"]
    first, second = rlprof.read(prof.run_dir).captures
    assert first.state == "whole"
    assert f"more than {hook}_timeout_s 0.05" in second.notes[0]


# failures.md: no-folder
def test_a_scratch_folder_others_may_write_to_is_refused(config, tmp_path, caplog):
    """What lies there says which code an export runs; rlprof stays off, and no run is made."""
    home = tmp_path / "scratch" / f"rlprof-{os.getuid()}"
    home.mkdir(parents=True)
    home.chmod(0o777)

    with rlprof.open(config()) as prof:
        done = train(prof, [1, 2])

    assert done == [1, 2]
    assert isinstance(prof, rlprof.Off)
    assert f"{home}: others may write there; remove it or name another scratch_dir" in caplog.text
    assert not (tmp_path / "runs").exists()
