"""Failures of plugins are recorded and logged once; training never sees them."""

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
def test_a_start_that_returns_too_late_is_stopped(config, calls):
    """A recording that starts after its timeout is stopped by the thread that started it."""
    options = {"anywhere": {"hangs_in": "start"}}
    limits = {"start_timeout_s": 0.1}
    prof = rlprof.open(config(tool="anywhere", tools=options, limits=limits))
    train(prof, [1])

    tools.gate.set()
    wait_until(lambda: any(call[1] == "stop" for call in calls))

    prof.close()
    assert [call[1] for call in calls if call[1] != "configure"] == ["start", "stop"]


def test_kept_raw_data_keep_their_empty_folders(config, tmp_path, monkeypatch):
    """Raw data of a failed export keep their empty folders."""
    started = tools.Fake.start

    @rlprof.hookimpl
    def start(self, window, folder):
        (folder / "PROF_1/device_0").mkdir(parents=True)
        return started(self, window, folder)

    monkeypatch.setattr(tools.Fake, "start", start)

    record(config(options={"raises_in": "export"}))

    left = {path.name for path in tmp_path.rglob("raw/**/*")}
    assert left == {"raw.txt", "PROF_1", "device_0"}


def test_the_exception_that_ends_training_is_a_problem(config):
    """The exception that ends training is the run's only problem; its step is skipped for that."""
    with pytest.raises(OSError, match="gone"), rlprof.open(config(steps=[1])) as prof:
        for _ in prof.steps([1]):
            raise OSError("the node\nis gone")

    run = rlprof.read(prof.run_dir)
    assert run.problems == ("actor 0/1: training ended in step 1 with OSError: the node is gone",)
    assert [one.reason.partition(":")[0] for one in run.skipped] == [
        "training left its loop in this step"
    ]


@attrs.frozen
class Impatient:
    """A signal handler that is an object and raises an error."""

    error: BaseException

    def __call__(self, number, frame):
        raise self.error


@pytest.fixture(name="alarm")
def _alarm():
    """Return a function that raises an error in the main thread after some seconds."""
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
def test_an_error_of_the_users_signal_handler_passes_through_start(
    config, alarm, tool, error, monkeypatch
):
    """A signal handler's error passes through a start that hangs; the next window is whole."""
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
    """After a signal handler interrupts close, a second close finishes the exports."""
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
def test_a_log_handler_that_raises_does_not_stop_training(config, monkeypatch):
    """A logging handler that raises does not stop training; the manifest has the failed windows."""

    class Broken(logging.Handler):
        def emit(self, record):
            raise ValueError("no room for logs")

    monkeypatch.setattr(logging.getLogger("rlprof"), "handlers", [Broken()])

    prof = record(config(options={"raises_in": "start"}), [1, 2])

    assert [c.state for c in rlprof.read(prof.run_dir).captures] == ["failed", "failed"]


# failures.md: not-answered
@pytest.mark.slow
@pytest.mark.parametrize("hook", ["start", "stop"])
def test_a_thread_bound_tool_that_was_slow_is_not_used_again(config, calls, hook):
    """A tool of the training thread that exceeds a timeout finishes its window and is dropped."""
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
    """A session stays off and makes no run if other users may write to its scratch folder."""
    home = tmp_path / "scratch" / f"rlprof-{os.getuid()}"
    home.mkdir(parents=True)
    home.chmod(0o777)

    with rlprof.open(config()) as prof:
        done = train(prof, [1, 2])

    assert done == [1, 2]
    assert isinstance(prof, rlprof.Off)
    assert f"{home}: others may write there; remove it or name another scratch_dir" in caplog.text
    assert not (tmp_path / "runs").exists()
